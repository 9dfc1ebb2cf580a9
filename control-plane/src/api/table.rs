//! The table of operators' paths: each says which role it needs and how it treats an operator who is confined to namespaces.
//! There is no way to add a path without that.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, Request};
use axum::handler::Handler;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use http::Uri;
use net::problem::Problem;

use crate::auth::{Operator, Role};
use crate::core::Core;

/// How a path treats an operator who is confined to namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// It tells and changes nothing that belongs to a namespace.
    None,
    /// Its query names the namespace: the door checks it, and fills it in where there is only one.
    Query,
    /// It looks at the operator's reach itself.
    Own,
    /// It concerns every namespace: who is confined is refused.
    All,
}

/// One path and method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "read by the test that walks all paths")
    )]
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) role: Role,
    pub(super) scope: Scope,
}

/// All paths, as they are added.
pub(super) struct Table {
    router: Router<Arc<Core>>,
    entries: Vec<Entry>,
}

macro_rules! methods {
    ($($name:ident: $filter:ident, $word:literal;)*) => {
        impl Table {
            $(
                pub(super) fn $name<H, T>(self, path: &'static str, role: Role, scope: Scope, handler: H) -> Self
                where
                    H: Handler<T, Arc<Core>>,
                    T: 'static,
                {
                    let method = $word;
                    self.add(MethodFilter::$filter, Entry { method, path, role, scope }, handler)
                }
            )*
        }
    };
}

methods! {
    get: GET, "GET";
    post: POST, "POST";
    put: PUT, "PUT";
    patch: PATCH, "PATCH";
    delete: DELETE, "DELETE";
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            router: Router::new(),
            entries: Vec::new(),
        }
    }

    fn add<H, T>(mut self, filter: MethodFilter, entry: Entry, handler: H) -> Self
    where
        H: Handler<T, Arc<Core>>,
        T: 'static,
    {
        let admit = middleware::from_fn(move |request: Request, next: Next| admit(entry, request, next));
        self.router = self
            .router
            .route(entry.path, on(filter, handler).route_layer(admit));
        self.entries.push(entry);
        self
    }

    pub(super) fn into_router(self) -> Router<Arc<Core>> {
        self.router
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// The guard has found out who it is; here it is decided whether that is enough for this path.
async fn admit(entry: Entry, mut request: Request, next: Next) -> Response {
    // INVARIANT: the guard is around every path of the table.
    let Some(operator) = request.extensions().get::<Operator>() else {
        return Problem::unauthenticated("this path is for operators").into_response();
    };
    let admitted = operator.acting_as(entry.role).and_then(|operator| {
        let uri = match entry.scope {
            Scope::None | Scope::Own => None,
            Scope::All => operator.reach().everywhere().map(|()| None)?,
            Scope::Query => confined(&operator, request.uri())?,
        };
        Ok((operator, uri))
    });
    match admitted {
        Ok((operator, uri)) => {
            request.extensions_mut().insert(operator);
            if let Some(uri) = uri {
                *request.uri_mut() = uri;
            }
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// The URI with the namespace that a confined operator means; `None`: it is well as it is.
fn confined(operator: &Operator, uri: &Uri) -> Result<Option<Uri>, Problem> {
    if operator.reach().namespaces().is_none() {
        return Ok(None);
    }
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|error| {
        Problem::bad_request(format!("the query is not as expected: {}", error.body_text()))
    })?;
    let mut named = pairs.into_iter().filter(|(name, _)| name == "namespace");
    let (first, second) = (named.next(), named.next());
    if second.is_some() {
        return Err(Problem::bad_request("the query names several namespaces"));
    }
    let is_named = first.is_some();
    let namespace = operator.reach().choose(first.map(|(_, value)| value), "")?;
    if is_named {
        return Ok(None);
    }
    let path = uri.path();
    let query = uri.query().map_or(String::new(), |query| format!("{query}&"));
    let target = format!("{path}?{query}namespace={}", encoded(&namespace));
    target.parse().map(Some).map_err(|_| Problem::internal())
}

/// Percent-encoded for a query.
fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut encoded, byte| {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    encoded.push(char::from(byte))
                }
                // Writing to a String does not fail.
                other => drop(write!(encoded, "%{other:02X}")),
            }
            encoded
        })
}

//! Errors towards HTTP clients: RFC 9457 problem details, with `error` beside `detail` for clients that
//! read that name.

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};

/// A problem: its status, what happened in words, and members of its own. Details are read by strangers:
/// they never hold secrets or inner errors.
#[derive(Clone)]
pub struct Problem(Box<Parts>);

#[derive(Clone)]
struct Parts {
    status: StatusCode,
    kind: String,
    title: Option<String>,
    detail: String,
    extensions: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem of the general type `about:blank`, whose title is the status' own name.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            status,
            kind: "about:blank".to_owned(),
            title: None,
            detail: detail.into(),
            extensions: Map::new(),
            headers: Vec::new(),
        }))
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 401: no credential, or one that is not valid. Carries `WWW-Authenticate: Bearer`.
    pub fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// 403: known, and not permitted.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// 404: there is no such thing, or the caller may not know of it.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 409: the state of the thing does not permit it.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// 503: not now; `detail` says what is missing.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// 500: a fault of ours. The cause belongs in the log, not in the answer.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "an internal error occurred; the server's log has the cause",
        )
    }

    /// Sets the type, a URI that names this kind of problem, and its title.
    pub fn with_type(mut self, kind: impl Into<String>, title: impl Into<String>) -> Self {
        self.0.kind = kind.into();
        self.0.title = Some(title.into());
        self
    }

    /// Adds a member. One that cannot be JSON is left out; the standard members are not overwritten.
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        if let Ok(value) = serde_json::to_value(value) {
            self.0.extensions.insert(name.to_owned(), value);
        }
        self
    }

    /// Sets or replaces a response header.
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.retain(|(have, _)| *have != name);
        self.0.headers.push((name, value));
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// What happened, in words.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The JSON body.
    pub fn body(&self) -> Value {
        let parts = &self.0;
        let title = parts
            .title
            .as_deref()
            .or(parts.status.canonical_reason())
            .unwrap_or("Error");
        let mut body = parts.extensions.clone();
        for (name, value) in [
            ("type", Value::from(parts.kind.as_str())),
            ("title", Value::from(title)),
            ("status", Value::from(parts.status.as_u16())),
            ("detail", Value::from(parts.detail.as_str())),
            ("error", Value::from(parts.detail.as_str())),
        ] {
            body.insert(name.to_owned(), value);
        }
        Value::Object(body)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.status, self.0.detail)
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Problem({})", self.body())
    }
}

impl std::error::Error for Problem {}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.0.status, self.body().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        for (name, value) in self.0.headers {
            headers.insert(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problem_has_the_standard_members_and_error_beside_detail() {
        let problem =
            Problem::forbidden("denied by policy support").with("denied_by", json!({"rule_index": 3}));
        assert_eq!(
            problem.body(),
            json!({"type": "about:blank", "title": "Forbidden", "status": 403, "detail": "denied by policy support",
                   "error": "denied by policy support", "denied_by": {"rule_index": 3}})
        );
    }

    #[test]
    fn a_member_cannot_hide_a_standard_one() {
        assert_eq!(
            Problem::bad_request("x").with("status", 200).body()["status"],
            400
        );
    }

    #[test]
    fn a_problem_becomes_a_response_with_its_media_type_and_headers() {
        let response = Problem::unauthenticated("no credential").into_response();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "application/problem+json"
        );
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
    }
}

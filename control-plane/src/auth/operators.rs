//! Who is an operator, and how that was proved.

use std::net::SocketAddr;

use http::{HeaderMap, Method, Uri, header};
use net::host;
use net::problem::Problem;
use serde_json::{Value, json};
use tools::id::AgentId;

use crate::core::Core;
use crate::store::Act;

/// How a caller proved to be an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Proof {
    /// It presented the operator's token.
    Token,
    /// It calls from this machine, and the installation takes every such caller for an operator.
    Loopback {
        /// The agent that it names itself after, if it does.
        agent: Option<AgentId>,
    },
}

/// A caller that may use the operators' API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator(Proof);

impl Operator {
    /// The agent that the caller names itself after; only under `auth.loopback_operators`.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match &self.0 {
            Proof::Token => None,
            Proof::Loopback { agent } => agent.as_ref(),
        }
    }

    /// What is proven of the caller.
    #[must_use]
    pub fn credential(&self) -> String {
        match &self.0 {
            Proof::Token => "operator token".to_owned(),
            Proof::Loopback { agent: None } => "loopback".to_owned(),
            Proof::Loopback { agent: Some(agent) } => format!("loopback as agent:{agent}"),
        }
    }

    /// The name that an act is kept under. Neither the token nor the address is a person's, so a name that the caller gives is taken.
    ///
    /// # Errors
    /// When the given name is none.
    pub fn by(&self, given: Option<&str>) -> Result<String, Problem> {
        match given.map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) if name.len() <= 256 && !name.chars().any(char::is_control) => Ok(name.to_owned()),
            Some(_) => Err(Problem::bad_request(
                "the name of who acts is longer than 256 bytes or holds control characters",
            )),
            None => Ok(match self.agent() {
                Some(agent) => agent.as_str().to_owned(),
                None => "operator".to_owned(),
            }),
        }
    }

    /// An act of this operator; its record also says what was proven.
    #[must_use]
    pub fn act(&self, name: &str, by: &str, mut details: Value) -> Act {
        if let Some(fields) = details.as_object_mut() {
            fields.insert("credential".to_owned(), json!(self.credential()));
        }
        Act::new(name, by, details)
    }
}

/// Takes a caller for an operator, or refuses it. `peer` is the address of the connection; headers that speak of another are not read.
///
/// # Errors
/// 401 without a valid credential, 403 for an agent's, or for a page of another site in a browser.
pub(crate) fn authenticate(
    core: &Core,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    peer: Option<SocketAddr>,
) -> Result<Operator, Problem> {
    let presented = bearer(headers)?;
    if presented.is_some_and(|token| core.admin_token.matches(token)) {
        return Ok(Operator(Proof::Token));
    }
    let agent = presented.and_then(|token| token.strip_prefix("agent:"));
    let is_local = peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    if core.loopback_operators && is_local {
        check_browser(core, method, uri, headers)?;
        let agent = agent
            .map(AgentId::try_from)
            .transpose()
            .map_err(|error| Problem::unauthenticated(error.to_string()))?;
        return Ok(Operator(Proof::Loopback { agent }));
    }
    Err(match (presented, agent) {
        (_, Some(_)) => Problem::forbidden("an agent's credential opens no operator path"),
        (Some(_), None) => Problem::unauthenticated("the credential is not that of an operator"),
        (None, None) => Problem::unauthenticated(
            "this path is for operators: send the operator token as `Authorization: Bearer <token>`",
        ),
    })
}

/// The one bearer token of a request.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(Problem::unauthenticated("the request has several credentials"));
    }
    let text = first.and_then(|value| value.to_str().ok());
    Ok(text.and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    }))
}

/// Without a token, a page in a browser on this machine must not pass for its reader.
fn check_browser(core: &Core, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    core.hosts.check(uri, headers)?;
    let is_foreign = headers.contains_key(header::ORIGIN) && !host::is_same_origin(uri, headers);
    let is_cross_site = headers
        .get("sec-fetch-site")
        .is_some_and(|site| site != "same-origin" && site != "none");
    if (is_foreign || is_cross_site) && !method.is_safe() {
        return Err(Problem::forbidden(
            "a page of another origin cannot act as an operator; use the operator token",
        ));
    }
    Ok(())
}

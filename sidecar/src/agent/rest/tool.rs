//! `POST /tool/{name}` and `GET /calls/{id}`.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header as names};
use net::problem::Problem;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tools::json::{Document, Kind, Limits};

use super::outcome::{Outcome, pending};
use crate::agent::attended::{Attended, WhenAbandoned};
use crate::agent::body::{self, BodyError};
use crate::agent::caller::Caller;
use crate::agent::calls::Known;
use crate::agent::state::AgentState;
use crate::gate::{Arguments, CallRequest, Patience, PendingApproval, TraceContext, Unreadable, Waits};
use crate::identity::Identity;
use crate::upstream::Origin;
use crate::upstream::mcp::scan;

/// The variable part of a path; one that is not text is refused with a problem.
pub(super) struct Segment(String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(text)) => Ok(Self(text)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// Handles `POST /tool/{name}`: runs the call, and waits for people as long as the fleet says.
pub(super) async fn call(
    State(state): State<Arc<AgentState>>,
    Segment(name): Segment,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let identity = match super::identify(&state, Caller::from(&parts)).await {
        Ok(identity) => identity,
        Err(problem) => return problem.into_response(),
    };
    let body = match body::read(body, state.limits().message_bytes).await {
        Ok(body) => body,
        Err(BodyError::TooLarge { limit }) => return super::too_large(limit).into_response(),
        Err(error @ BodyError::Broken) => return Problem::bad_request(error.to_string()).into_response(),
    };
    let hold = if prefers_async(&parts.headers) {
        std::time::Duration::ZERO
    } else {
        state.gate.rest_hold()
    };
    let (tell, told) = oneshot::channel();
    let owner = identity.clone();
    let work = Box::pin(run(Arc::clone(&state), identity, name, parts.headers, body, tell));
    let mut work = Attended::new(work, WhenAbandoned::GoOn, state.tasks.clone());
    let waiting = tokio::select! {
        biased;
        outcome = &mut work => return outcome.into_response(),
        Ok(waiting) = told => waiting,
    };
    tokio::select! {
        biased;
        outcome = &mut work => outcome.into_response(),
        () = tokio::time::sleep(hold) => defer(&state, &owner, &waiting),
    }
}

/// Answers before the call's end; the work goes on where it was attended to.
fn defer(state: &AgentState, owner: &Identity, waiting: &PendingApproval) -> Response {
    let known = pending(waiting);
    state.calls.defer(&waiting.call, owner, known.clone());
    let mut response = answer(known);
    if let Ok(location) = HeaderValue::try_from(format!("/calls/{}", waiting.call)) {
        response.headers_mut().insert(names::LOCATION, location);
    }
    response
}

/// Handles `GET /calls/{id}`: what became of a call that was answered with 202.
pub(super) async fn outcome_of(
    State(state): State<Arc<AgentState>>,
    Segment(id): Segment,
    parts: Parts,
) -> Response {
    let identity = match super::identify(&state, Caller::from(&parts)).await {
        Ok(identity) => identity,
        Err(problem) => return problem.into_response(),
    };
    match state.calls.find(&id, &identity) {
        Some(known) => answer(known),
        None => Problem::not_found(
            "no call of this agent with that id waits here or ended in the last ten minutes; its record is under /traces",
        )
        .into_response(),
    }
}

fn answer(known: Known) -> Response {
    let kind = if known.status.is_client_error() || known.status.is_server_error() {
        "application/problem+json"
    } else {
        "application/json"
    };
    let headers = [(names::CONTENT_TYPE, HeaderValue::from_static(kind))];
    (known.status, headers, known.body).into_response()
}

async fn run(
    state: Arc<AgentState>,
    identity: Identity,
    name: String,
    headers: HeaderMap,
    body: Bytes,
    tell: oneshot::Sender<PendingApproval>,
) -> Outcome {
    let bytes = arguments_of(&body);
    let limits = Limits {
        max_bytes: state.limits().argument_bytes,
        max_depth: state.limits().argument_depth,
    };
    let parsed = bytes.as_ref().map(|bytes| Document::parse(bytes, limits));
    let arguments = match &parsed {
        None => Arguments::Absent,
        Some(Err(error)) => Arguments::Unreadable(Unreadable::Json(*error)),
        Some(Ok(document)) if document.root().kind() == Kind::Object => Arguments::Object(document.root()),
        Some(Ok(_)) => Arguments::Unreadable(Unreadable::NoObject),
    };
    let origin = Arc::new(Origin::without_session(
        identity.agent.clone(),
        identity.user.clone(),
        super::session(&headers).map(|session| session.id),
    ));
    let request = CallRequest {
        identity,
        session: super::session(&headers),
        tool: &name,
        other: None,
        names: &state.names,
        arguments,
        body: &body,
        meta: None,
        extra: None,
        continuation: None,
        trace: TraceContext::begin(super::header(&headers, "traceparent").as_deref()),
        tracestate: super::header(&headers, "tracestate"),
        cancel: CancellationToken::new(),
        origin: Some(origin),
        audience: None,
        patience: Patience {
            wait: None,
            on_pending: Some(Box::new(move |pending| {
                let _ = tell.send(pending);
                Waits::default()
            })),
        },
    };
    let report = state.gate.call(request).await;
    let id = report.id.clone();
    let outcome = Outcome::of(report);
    state.calls.end(&id, || outcome.known());
    outcome
}

/// The arguments within a body: the value of `params` where that is the only key and an object, else the whole.
fn arguments_of(body: &Bytes) -> Option<Bytes> {
    if body.trim_ascii().is_empty() {
        return None;
    }
    let mut members = scan::members(body);
    if let (Some(Ok(first)), None) = (members.next(), members.next())
        && first.is("params")
        && first.value.first() == Some(&b'{')
    {
        return Some(body.slice_ref(first.value));
    }
    Some(body.clone())
}

/// RFC 7240: the client prefers an answer at once.
fn prefers_async(headers: &HeaderMap) -> bool {
    headers
        .get_all("prefer")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|preference| preference.trim().eq_ignore_ascii_case("respond-async"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(body: &'static str) -> Option<Bytes> {
        arguments_of(&Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn params_alone_hold_the_arguments_and_any_other_object_is_them() {
        assert_eq!(arguments(r#" {"params": {"a":1}} "#).unwrap(), r#"{"a":1}"#);
        for whole in [
            r#"{"params":{"a":1},"b":2}"#,
            r#"{"params":[1]}"#,
            r#"{"path":"/x"}"#,
            r#"{"params":{},"params":{}}"#,
            "[1]",
            "not json",
            r#"{"params":{"a":1}"#,
        ] {
            assert_eq!(arguments(whole).unwrap(), whole);
        }
        assert_eq!(arguments("  "), None);
    }

    #[test]
    fn a_client_can_prefer_an_answer_at_once() {
        let mut headers = HeaderMap::new();
        assert!(!prefers_async(&headers));
        headers.append("prefer", "wait=5, Respond-Async".parse().unwrap());
        assert!(prefers_async(&headers));
    }
}

//! `POST /decide`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use net::problem::Problem;
use serde_json::{Map, Value, json};
use tools::id::AgentId;
use tools::json::{Document, Kind, Node};

use crate::agent::body::{self, BodyError};
use crate::agent::caller::Caller;
use crate::agent::mcp::denial;
use crate::agent::state::AgentState;
use crate::gate::{Arguments, AskReport, AskRequest, TraceContext, Unreadable};
use crate::identity::{Identities, Identity, Strength};

/// The fields of the body.
#[derive(Default)]
struct Asked<'d> {
    agent: Option<AgentId>,
    tool: String,
    arguments: Option<Node<'d>>,
    explain: bool,
}

/// Handles `POST /decide`.
pub(super) async fn decide(State(state): State<Arc<AgentState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // Callers without an acceptable credential are told so before their body is read, operators apart.
    let caller = Caller::from(&parts);
    let identity = match state.identify(caller).await {
        Ok(identity) => Some(identity),
        Err(error) => match state.check_operator(&parts.headers).await {
            Ok(()) => None,
            Err(problem) if problem.status() == StatusCode::FORBIDDEN => return problem.into_response(),
            Err(_) => return state.refuse(caller, &error).problem().into_response(),
        },
    };
    let body = match body::read(body, state.limits().message_bytes).await {
        Ok(body) => body,
        Err(BodyError::TooLarge { limit }) => return super::too_large(limit).into_response(),
        Err(error @ BodyError::Broken) => return Problem::bad_request(error.to_string()).into_response(),
    };
    let document = match super::parse(&body, &state) {
        Ok(document) => document,
        Err(problem) => return problem.into_response(),
    };
    match answer(&state, &parts.headers, identity, &document).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn answer(
    state: &AgentState,
    headers: &HeaderMap,
    identity: Option<Identity>,
    document: &Document<'_>,
) -> Result<Response, Problem> {
    let asked = read(document.root())?;
    let identity = speaker(state, headers, identity, asked.agent).await?;
    let limit = state.limits().argument_bytes;
    let arguments = match asked.arguments {
        None => Arguments::Absent,
        Some(node) if node.is_null() => Arguments::Absent,
        Some(node) if node.kind() != Kind::Object => Arguments::Unreadable(Unreadable::NoObject),
        Some(node) if node.raw().len() > limit => Arguments::Unreadable(Unreadable::TooLarge { limit }),
        Some(node) => Arguments::Object(node),
    };
    let report = state
        .gate
        .ask(AskRequest {
            identity,
            session: super::session(headers),
            tool: &asked.tool,
            names: &state.names,
            arguments,
            trace: TraceContext::begin(super::header(headers, "traceparent").as_deref()),
            explain: asked.explain,
        })
        .await;
    Ok(render(&report))
}

/// Reads the body's fields; an unknown one is an error.
fn read(root: Node<'_>) -> Result<Asked<'_>, Problem> {
    if root.kind() != Kind::Object {
        return Err(Problem::bad_request(
            "the request body must be a JSON object with \"tool\"",
        ));
    }
    let mut asked = Asked::default();
    let mut arguments_key: Option<String> = None;
    let text = |key: &str, value: Node<'_>| {
        let text = value.as_str().map(std::borrow::Cow::into_owned);
        text.ok_or_else(|| Problem::bad_request(format!("{key:?} must be a string")))
    };
    for (key, value) in root.members() {
        match key.as_ref() {
            "agent" => {
                let agent = text("agent", value)?;
                let agent = AgentId::try_from(agent.as_str())
                    .map_err(|error| Problem::bad_request(error.to_string()))?;
                asked.agent = Some(agent);
            }
            "tool" => asked.tool = text("tool", value)?,
            "arguments" | "params" => {
                if arguments_key.replace(key.into_owned()).is_some() {
                    return Err(Problem::bad_request("give \"arguments\" or \"params\", not both"));
                }
                asked.arguments = Some(value);
            }
            "explain" => {
                asked.explain = value
                    .as_bool()
                    .ok_or_else(|| Problem::bad_request("\"explain\" must be true or false"))?;
            }
            unknown => {
                return Err(Problem::bad_request(format!(
                    "unknown field {unknown:?}; the fields are agent, tool, arguments (or params), explain"
                )));
            }
        }
    }
    if asked.tool.is_empty() {
        return Err(Problem::bad_request("\"tool\" is missing"));
    }
    Ok(asked)
}

/// For whom is asked. Only plaintext identity and operators may name an agent in the body.
async fn speaker(
    state: &AgentState,
    headers: &HeaderMap,
    identity: Option<Identity>,
    agent: Option<AgentId>,
) -> Result<Identity, Problem> {
    let scope = state.gate.scope();
    let asserted = |agent| Identities::asserted(agent, &scope).map_err(|error| super::refused(&error));
    match (identity, agent) {
        (Some(identity), None) => Ok(identity),
        (Some(identity), Some(agent)) if identity.agent == agent => Ok(identity),
        (Some(identity), Some(agent)) => match identity.strength {
            Strength::Asserted => asserted(agent),
            _ if state.check_operator(headers).await.is_ok() => asserted(agent),
            Strength::Anonymous => Err(Problem::forbidden(
                "the \"agent\" field needs a credential beside it; send \"Authorization: Bearer agent:<id>\"",
            )),
            Strength::Bound | Strength::Verified => Err(Problem::forbidden(
                "the \"agent\" field differs from the credential, which is what counts; leave it out",
            )),
        },
        (None, Some(agent)) => asserted(agent),
        (None, None) => Err(Problem::bad_request(
            "an operator has to say for which agent; add the \"agent\" field",
        )),
    }
}

fn render(report: &AskReport) -> Response {
    let action = report.action();
    let rule = report.summary.rule.as_ref();
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    put("action", json!(action.as_str()));
    put("rule", json!(rule.map(|rule| rule.policy.as_str())));
    put("rule_index", json!(rule.map(|rule| rule.index)));
    put("reason", json!(words(report)));
    put("agent", json!(report.agent));
    put("tool", json!(report.tool));
    put("id", json!(report.id));
    put("trace_id", json!(report.trace_id));
    put("revision", json!(report.summary.revision.to_string()));
    put("floors", json!(denial::floors(&report.summary)));
    if let Some(message) = &report.summary.message {
        put("message", json!(message));
    }
    if let Some(grant) = &report.summary.grant {
        put("grant", json!(grant));
    }
    if let Some(shadow) = &report.summary.shadow {
        put("shadow", json!(shadow));
    }
    if !report.warnings.is_empty() {
        put("warnings", json!(report.warnings));
    }
    if let Some(classification) = &report.classification {
        put("classification", json!(classification));
    }
    if let Some(explanation) = &report.explanation {
        put("explain", json!(explanation));
    }
    let mut response = if let Some(refusal) = &report.refusal {
        put("code", json!(refusal.reason.name()));
        let wait = refusal.retry_after;
        if let Some(wait) = wait {
            put(
                "retry_after_ms",
                json!(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            );
        }
        let mut response = (StatusCode::FORBIDDEN, Value::Object(body).to_string()).into_response();
        let seconds = wait.map(|wait| wait.as_millis().div_ceil(1000).max(1).to_string());
        if let Some(seconds) = seconds.and_then(|seconds| HeaderValue::try_from(seconds).ok()) {
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    } else {
        (StatusCode::OK, Value::Object(body).to_string()).into_response()
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The reason, for people: always there, also for what is allowed.
fn words(report: &AskReport) -> String {
    match (&report.refusal, &report.summary.grant) {
        (Some(refusal), _) => refusal.message.clone(),
        (None, Some(grant)) => format!("grant:{grant}"),
        (None, None) => report.summary.decided_by(),
    }
}

#[cfg(test)]
mod tests {
    use tools::json::Limits;

    use super::*;

    fn problem(text: &str) -> String {
        let document = Document::parse(text.as_bytes(), Limits::MESSAGE).unwrap();
        read(document.root()).err().unwrap().detail().to_owned()
    }

    #[test]
    fn arguments_may_be_called_params() {
        for key in ["arguments", "params"] {
            let text = format!(r#"{{"tool":"Bash","{key}":{{"command":"ls"}},"agent":"claude"}}"#);
            let document = Document::parse(text.as_bytes(), Limits::MESSAGE).unwrap();
            let asked = read(document.root()).unwrap();
            assert_eq!(asked.tool, "Bash");
            assert_eq!(asked.arguments.unwrap().raw_str(), r#"{"command":"ls"}"#);
            assert_eq!(asked.agent.unwrap().as_str(), "claude");
        }
    }

    #[test]
    fn what_is_wrong_with_a_question_is_named() {
        assert!(problem(r#"{"tool":"x","tols":1}"#).contains("\"tols\""));
        assert!(problem(r#"{"arguments":{}}"#).contains("\"tool\" is missing"));
        assert!(problem(r#"{"tool":1}"#).contains("must be a string"));
        assert!(problem(r#"{"tool":"x","arguments":{},"params":{}}"#).contains("not both"));
        assert!(problem("[]").contains("must be a JSON object"));
    }
}

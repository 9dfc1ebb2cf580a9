//! Event streams towards MCP clients on which they are told what no request asked for.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderMap, StatusCode, header};
use tokio_util::sync::CancellationToken;
use tools::json::Node;

use super::answer::{self, notification};
use super::call_stream::{self, LAST_EVENT_ID, Resumed};
use super::error::ProtocolError;
use super::hub::{self, MAX_SUBSCRIPTIONS};
use super::legacy;
use super::mailbox::Mailbox;
use super::serve::{Answer, Exchange, SESSION_ID};
use super::session::{SESSION_STREAM, Use};
use super::{subscribe, tasks};
use crate::agent::caller::Caller;
use crate::agent::sse::{self, COMMENT, KEEP_ALIVE};
use crate::agent::state::AgentState;
use crate::gate::{ChangedLists, Changes};
use crate::identity::Identity;
use crate::registry::Registry;

/// Handles `GET /mcp`: the stream of a legacy session, on which list changes are told.
pub async fn get(State(state): State<Arc<AgentState>>, request: Request) -> Response {
    let identity = match state.admit(Caller::from(&request)).await {
        Ok(identity) => identity,
        Err(refused) => return refused.response(),
    };
    match open_session_stream(&state, request.headers(), identity) {
        Ok(response) => response,
        Err(error) => error.response(None),
    }
}

fn open_session_stream(
    state: &Arc<AgentState>,
    headers: &HeaderMap,
    identity: Identity,
) -> Result<Response, ProtocolError> {
    legacy::check_version(headers).map_err(|mut error| {
        error.status = StatusCode::METHOD_NOT_ALLOWED;
        error
    })?;
    let accepts = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"));
    if !accepts {
        return Err(ProtocolError::refused(
            StatusCode::NOT_ACCEPTABLE,
            "the stream is text/event-stream; the Accept header does not list it",
        ));
    }
    let session = legacy::session(state, headers, &identity)?.ok_or_else(|| {
        ProtocolError::refused(
            StatusCode::METHOD_NOT_ALLOWED,
            "there is no stream without a session; send initialize first",
        )
    })?;
    if let Some(last) = headers.get(LAST_EVENT_ID) {
        let resumed = call_stream::resumed(state, &session, last)?;
        if let Resumed::Call(response) = resumed {
            return Ok(response);
        }
    }
    let ended = session.mailbox().reader(session.ended());
    let watch = ListWatch {
        changes: state.gate.changes(&identity),
        identity,
        state: Arc::clone(state),
        ended,
        mailbox: session.mailbox(),
        session: Some(state.sessions.keep(&session)),
    };
    let primer = call_stream::primer(&session, SESSION_STREAM);
    let events = watch.events(Wanted::ALL, None, None);
    Ok(sse::response(stream::iter(primer).chain(events)))
}

/// Handles `DELETE /mcp`: ends a session.
pub async fn delete(State(state): State<Arc<AgentState>>, request: Request) -> Response {
    let headers = request.headers();
    let identity = match state.admit(Caller::from(&request)).await {
        Ok(identity) => identity,
        Err(refused) => return refused.response(),
    };
    let id = headers.get(SESSION_ID).map(|id| id.to_str().unwrap_or_default());
    match id {
        Some(id) if state.sessions.end(id, &identity) => {
            hub::sweep(&state);
            Answer::Status(StatusCode::NO_CONTENT).into_response()
        }
        Some(_) => ProtocolError::unknown_session().response(None),
        None => ProtocolError::refused(StatusCode::METHOD_NOT_ALLOWED, "there is no session to end")
            .response(None),
    }
}

/// `subscriptions/listen` of modern clients: what was asked for and is there, then each change.
pub(super) async fn listen(exchange: &Exchange<'_>) -> Answer {
    let filter = exchange.params.and_then(|params| params.get("notifications"));
    let wanted = Wanted::of(filter, exchange.state.gate.registry());
    let id = String::from_utf8_lossy(exchange.id.raw()).into_owned();
    let subscription = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    let meta = format!(r#""_meta":{subscription}"#);
    let mailbox: Arc<Mailbox> = Arc::default();
    let mut honoured = wanted.honoured();
    match tasks::heard(exchange, filter, &mailbox, &subscription) {
        Ok(ids) if ids.is_empty() => {}
        Ok(ids) => drop(honoured.insert("taskIds".to_owned(), ids.into())),
        Err(error) => return exchange.error(&error),
    }
    let subscribed = subscribed(exchange, filter, &mailbox, &id).await;
    if !subscribed.is_empty() {
        honoured.insert("resourceSubscriptions".to_owned(), subscribed.into());
    }
    let honoured = serde_json::Value::Object(honoured);
    let acknowledged = format!(r#"{{{meta},"notifications":{honoured}}}"#);
    let first = sse::event(&notification(
        "notifications/subscriptions/acknowledged",
        Some(acknowledged.as_bytes()),
    ));
    let end = format!(r#"{{"resultType":"complete",{meta}}}"#);
    let last = sse::event(&answer::result_message(exchange.id, end.as_bytes()));
    let watch = ListWatch {
        changes: exchange.state.gate.changes(exchange.identity),
        identity: exchange.identity.clone(),
        state: Arc::clone(exchange.state),
        ended: exchange.state.shutdown.child_token(),
        mailbox,
        session: None,
    };
    let changes = watch.events(wanted, Some(format!("{{{meta}}}")), Some(last));
    let events = stream::once(std::future::ready(first)).chain(changes);
    Answer::Stream(sse::response(events))
}

/// The resources of a filter that the client may hear of, as it wrote them.
async fn subscribed(
    exchange: &Exchange<'_>,
    filter: Option<Node<'_>>,
    mailbox: &Arc<Mailbox>,
    id: &str,
) -> Vec<String> {
    let is_offered = exchange
        .state
        .gate
        .registry()
        .is_offered(|offers| offers.subscriptions);
    let uris = filter
        .and_then(|filter| filter.get("resourceSubscriptions"))
        .filter(|_| is_offered);
    let mut honoured = Vec::new();
    let uris = uris.into_iter().flat_map(Node::elements).filter_map(Node::as_str);
    // Each is decided and recorded, whether it may be heard or not.
    for uri in uris.take(MAX_SUBSCRIPTIONS) {
        let (_, is_allowed) = subscribe::subscribe(exchange, &uri, mailbox, Some(Arc::from(id))).await;
        if is_allowed {
            honoured.push(uri.into_owned());
        }
    }
    honoured
}

/// The lists whose changes a client wants to hear of.
#[derive(Debug, Clone, Copy)]
struct Wanted(ChangedLists);

impl Wanted {
    const ALL: Self = Self(ChangedLists {
        tools: true,
        resources: true,
        prompts: true,
    });

    /// What a filter asks for, as far as it is there.
    fn of(filter: Option<Node<'_>>, registry: &Registry) -> Self {
        let wants = |member: &str| {
            filter
                .and_then(|filter| filter.get(member))
                .and_then(Node::as_bool)
                == Some(true)
        };
        Self(ChangedLists {
            tools: wants("toolsListChanged"),
            resources: wants("resourcesListChanged") && registry.is_offered(|offers| offers.resources),
            prompts: wants("promptsListChanged") && registry.is_offered(|offers| offers.prompts),
        })
    }

    fn honoured(self) -> serde_json::Map<String, serde_json::Value> {
        let mut honoured = serde_json::Map::new();
        for (member, is_wanted) in [
            ("toolsListChanged", self.0.tools),
            ("resourcesListChanged", self.0.resources),
            ("promptsListChanged", self.0.prompts),
        ] {
            if is_wanted {
                honoured.insert(member.to_owned(), true.into());
            }
        }
        honoured
    }

    /// The notifications of a change, as one piece of the stream; a comment when none of it is wanted.
    fn told(self, changed: ChangedLists, params: Option<&str>) -> Bytes {
        let mut told = Vec::new();
        for (method, is_told) in [
            ("notifications/tools/list_changed", self.0.tools && changed.tools),
            (
                "notifications/resources/list_changed",
                self.0.resources && changed.resources,
            ),
            (
                "notifications/prompts/list_changed",
                self.0.prompts && changed.prompts,
            ),
        ] {
            if is_told {
                told.extend_from_slice(&sse::event(&notification(method, params.map(str::as_bytes))));
            }
        }
        if told.is_empty() {
            COMMENT
        } else {
            Bytes::from(told)
        }
    }
}

/// Waits for the lists of one identity to change.
struct ListWatch {
    changes: Changes,
    identity: Identity,
    state: Arc<AgentState>,
    ended: CancellationToken,
    mailbox: Arc<Mailbox>,
    /// Keeps the session from ending for idleness; its streams can be resumed.
    session: Option<Use>,
}

impl ListWatch {
    fn events(
        self,
        wanted: Wanted,
        params: Option<String>,
        last: Option<Bytes>,
    ) -> impl Stream<Item = Bytes> + Send + 'static {
        stream::unfold(Some(self), move |watch| {
            let (params, last) = (params.clone(), last.clone());
            async move {
                let mut watch = watch?;
                tokio::select! {
                    biased;
                    () = watch.ended.cancelled() => last.map(|last| (last, None)),
                    () = watch.state.shutdown.cancelled() => last.map(|last| (last, None)),
                    changed = watch.changes.next(&watch.state.gate, &watch.identity) => {
                        let told = wanted.told(changed, params.as_deref());
                        if watch.session.is_some() && told != COMMENT {
                            watch.mailbox.put(told);
                            Some((COMMENT, Some(watch)))
                        } else {
                            Some((told, Some(watch)))
                        }
                    }
                    event = watch.mailbox.next() => event.map(|(number, event)| {
                        let event = match watch.session {
                            Some(_) => sse::numbered(&call_stream::event_id(SESSION_STREAM, number), &event),
                            None => event,
                        };
                        (event, Some(watch))
                    }),
                    () = tokio::time::sleep(KEEP_ALIVE) => Some((COMMENT, Some(watch))),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_list_is_told_of_where_it_is_wanted() {
        let changed = ChangedLists {
            tools: true,
            resources: true,
            prompts: false,
        };
        let all = String::from_utf8(Wanted::ALL.told(changed, None).to_vec()).unwrap();
        assert!(all.contains("tools/list_changed") && all.contains("resources/list_changed"));
        assert!(!all.contains("prompts/list_changed"));
        let only = Wanted(ChangedLists {
            tools: false,
            resources: false,
            prompts: true,
        });
        assert_eq!(only.told(changed, None), COMMENT);
        assert_eq!(only.honoured().keys().collect::<Vec<_>>(), ["promptsListChanged"]);
    }
}

//! The event stream of one call: its progress and what its client is asked, then its answer. A legacy session can resume it.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderValue, StatusCode};
use tokio_util::sync::CancellationToken;

use super::error::ProtocolError;
use super::mailbox::Mailbox;
use super::serve::Answer;
use super::session::{SESSION_STREAM, Session, Use};
use super::version::Legacy;
use crate::agent::attended::{Attended, Tasks, WhenAbandoned};
use crate::agent::sse::{self, COMMENT, KEEP_ALIVE};
use crate::agent::state::AgentState;

/// The header by which a client resumes a stream.
pub(super) const LAST_EVENT_ID: &str = "last-event-id";
/// How long a client is asked to wait before it resumes a stream that broke off.
const RETRY: Duration = Duration::from_secs(1);

/// A call wants its answer to be a stream: where the messages of that wait.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    pub(super) mailbox: Arc<Mailbox>,
    /// The session and the stream's number in it, where it can be resumed.
    of: Option<(Arc<Session>, u64)>,
}

impl Opening {
    pub(super) fn of(session: Option<&Arc<Session>>) -> Self {
        match session {
            Some(session) => {
                let (number, mailbox) = session.begin_stream();
                Self {
                    mailbox,
                    of: Some((Arc::clone(session), number)),
                }
            }
            None => Self {
                mailbox: Arc::default(),
                of: None,
            },
        }
    }
}

/// The stream of one call. When nobody reads it any more, the call goes on as `when_abandoned` says.
pub(super) fn of_call(
    work: Attended<Answer>,
    stream: Opening,
    when_abandoned: WhenAbandoned,
    tasks: Tasks,
) -> Response {
    let mailbox = Arc::clone(&stream.mailbox);
    let filling = Box::pin(async move { mailbox.finish(final_event(work.await)) });
    let (ended, first) = match &stream.of {
        Some((session, number)) => (session.ended().clone(), primer(session, *number)),
        None => (CancellationToken::new(), None),
    };
    let reading = Reading {
        reader: stream.mailbox.reader(&ended),
        stream,
        filling: Some(Attended::new(filling, when_abandoned, tasks)),
        _in_use: None,
    };
    sse::response(stream::iter(first).chain(reading.events()))
}

fn final_event(answer: Answer) -> Bytes {
    match answer {
        Answer::Message { bytes, .. } => sse::event(&bytes),
        Answer::Status(_) | Answer::Stream(_) => COMMENT,
    }
}

/// One reader of a call's stream.
struct Reading {
    stream: Opening,
    reader: CancellationToken,
    /// What fills the mailbox, where nobody else sees to it.
    filling: Option<Attended<()>>,
    _in_use: Option<Use>,
}

impl Reading {
    fn events(self) -> impl Stream<Item = Bytes> + Send + 'static {
        stream::unfold(Some(self), |reading| async {
            let mut reading = reading?;
            loop {
                let filled = async {
                    match &mut reading.filling {
                        Some(filling) => filling.await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    () = reading.reader.cancelled() => return None,
                    next = reading.stream.mailbox.next() => {
                        let (number, event) = next?;
                        let event = match &reading.stream.of {
                            Some((_, stream)) => sse::numbered(&event_id(*stream, number), &event),
                            None => event,
                        };
                        return Some((event, Some(reading)));
                    }
                    (last, retry) = reading.stream.mailbox.paused() => {
                        let (_, stream) = reading.stream.of.as_ref()?;
                        return Some((sse::primer(&event_id(*stream, last), retry), None));
                    }
                    () = filled => reading.filling = None,
                    () = tokio::time::sleep(KEEP_ALIVE) => return Some((COMMENT, Some(reading))),
                }
            }
        })
    }
}

/// The id of an event: its stream in the session, and its number there.
pub(super) fn event_id(stream: u64, number: u64) -> String {
    format!("{stream}-{number}")
}

/// What a stream begins with for clients that know it (2025-11-25, transports: Sending Messages to the Server).
pub(super) fn primer(session: &Session, stream: u64) -> Option<Bytes> {
    (session.version() >= Legacy::V20251125).then(|| sse::primer(&event_id(stream, 0), RETRY))
}

/// A stream that goes on behind its last event.
pub(super) enum Resumed {
    /// That of the session.
    Session,
    /// That of a call.
    Call(Response),
}

/// Goes on with the stream that the last event's id names.
///
/// # Errors
/// When what came behind that event is no longer kept, or there never was one.
pub(super) fn resumed(
    state: &AgentState,
    session: &Arc<Session>,
    last: &HeaderValue,
) -> Result<Resumed, ProtocolError> {
    let lost = || {
        ProtocolError::refused(
            StatusCode::BAD_REQUEST,
            "what came behind the event that Last-Event-ID names is no longer kept; open a stream without it, and make the request again",
        )
    };
    let (stream, number) = last
        .to_str()
        .ok()
        .and_then(|last| last.split_once('-'))
        .and_then(|(stream, number)| Some((stream.parse().ok()?, number.parse().ok()?)))
        .ok_or_else(lost)?;
    if stream == SESSION_STREAM {
        // The events of the session's own stream go on with what is left of them.
        session.mailbox().rewind(number);
        return Ok(Resumed::Session);
    }
    let mailbox = session.stream(stream).ok_or_else(lost)?;
    // A reader who asks for what there is not takes the stream from nobody.
    if !mailbox.keeps(number) {
        return Err(lost());
    }
    let reader = mailbox.reader(session.ended());
    if !mailbox.rewind(number) {
        return Err(lost());
    }
    mailbox.resume();
    let reading = Reading {
        stream: Opening {
            mailbox,
            of: Some((Arc::clone(session), stream)),
        },
        reader,
        filling: None,
        _in_use: Some(state.sessions.keep(session)),
    };
    Ok(Resumed::Call(sse::response(reading.events())))
}

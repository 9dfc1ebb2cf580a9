//! Requests over a connection of their party's own, and how such a connection is opened and kept.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Era;
use super::attendance::{Attendance, Renewal};
use super::envelope::Answer;
use super::failure::Failure;
use super::handshake;
use super::hearing::{Hearing, Whose};
use super::http::HttpLink;
use super::http::endpoint::Endpoint;
use super::http::legacy_sse;
use super::link::Link;
use super::message;
use super::own::{Key, Own};
use super::session::Session;
use super::stdio;
use super::upstream::McpUpstream;
use crate::upstream::{Origin, Party, TransportSpec, UpstreamRequest};

/// Connections of one upstream's own over HTTP, and child processes.
const MAX_HTTP: usize = 4096;
const MAX_CHILDREN: usize = 64;
/// How long a request waits for the stream of what comes outside requests.
const LISTEN_PATIENCE: Duration = Duration::from_secs(2);

/// A connection that is being opened; it ends when that comes to nothing.
struct Opening(Option<Link>);

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(link) = self.0.take() {
            link.give_up();
        }
    }
}

impl McpUpstream {
    /// Whose connection the request goes over, where that is not the one that all share.
    pub(super) fn party<'r>(
        &self,
        shared: &Session,
        request: &'r UpstreamRequest,
    ) -> Option<&'r Arc<Origin>> {
        let origin = request.origin.as_ref()?;
        let has_session = shared.opened.wire.session_id.is_some();
        (!self.spec.is_shared(has_session)).then_some(origin)
    }

    /// Forwards a request over the connection of its party.
    pub(super) async fn forward_alone(
        self: &Arc<Self>,
        origin: &Arc<Origin>,
        shared: &Session,
        request: &UpstreamRequest,
    ) -> Result<Answer, Failure> {
        let dialect = &shared.opened.wire.dialect;
        let with_tasks = dialect.era == Era::Legacy && origin.owner.is_some();
        let key = (
            origin.party.clone(),
            dialect.asks.of_agent(&origin.capabilities, with_tasks),
        );
        let mut is_first = true;
        loop {
            let claimed = self.own.claim(&key, self.most())?;
            let own = &claimed.0;
            let session = match self.opened(own, &key, origin, shared).await {
                Ok(session) => session,
                Err(failure) => {
                    if own.standing.is_empty() {
                        self.own.forget(&key, own);
                    }
                    return Err(failure);
                }
            };
            if let Some(answer) = own.standing.note_without_request(session, request) {
                return Ok(answer);
            }
            self.tell_level(&own.told, session, request).await;
            let outcome = Link::call(session, request, self.spec.forward_identity).await;
            let is_gone = matches!(outcome, Err(Failure::SessionExpired | Failure::Unreachable(_)));
            if !is_gone {
                if request.method.is_some() {
                    own.standing.note_answered(request, &outcome);
                }
                return outcome;
            }
            self.ended(&key, own, origin);
            // The upstream did not look at the request: it is made once more, over a new connection.
            if !std::mem::take(&mut is_first) {
                return outcome;
            }
        }
    }

    /// Tells the upstream, over the connections of this party, that the party's roots have changed.
    pub(in crate::upstream) fn tell_of_roots(self: &Arc<Self>, party: &Party) {
        if !self.spec.asks().roots {
            return;
        }
        for own in self.own.of(party) {
            let Some(session) = own.0.session.get().cloned() else {
                continue;
            };
            self.tasks.spawn(async move {
                let changed = message::notification("notifications/roots/list_changed", None);
                if let Err(failure) = session.link.notify(&session.opened.wire, changed).await {
                    tracing::debug!("a change of roots was not taken: {failure}");
                }
                drop(own);
            });
        }
    }

    fn most(&self) -> usize {
        match self.spec.transport {
            TransportSpec::Stdio(_) => MAX_CHILDREN,
            TransportSpec::Sse(_) | TransportSpec::StreamableHttp(_) => MAX_HTTP,
        }
    }

    /// The session over a connection, opened by who asks first.
    pub(super) async fn opened<'o>(
        self: &Arc<Self>,
        own: &'o Arc<Own>,
        key: &Key,
        origin: &Arc<Origin>,
        shared: &Session,
    ) -> Result<&'o Arc<Session>, Failure> {
        own.session
            .get_or_try_init(|| async {
                let mut opening = Opening(Some(self.another_link(&shared.link, origin)?));
                let opened = match &opening.0 {
                    Some(link) => {
                        handshake::open_another(link, &self.spec.limits, &shared.opened, &key.1).await?
                    }
                    None => return Err(Failure::Unreachable("it was closed".to_owned())),
                };
                let Some(link) = opening.0.take() else {
                    return Err(Failure::Unreachable("it was closed".to_owned()));
                };
                let session = Session::new(shared.number, link, opened, own.standing.subscribed());
                session.mirrors.store(shared.mirrors.load_full());
                let abandoned = CancellationToken::new();
                let attending = Attendance {
                    abandoned: abandoned.clone(),
                    upstream: Arc::clone(self),
                    key: key.clone(),
                    own: Arc::clone(own),
                    session: Arc::clone(&session),
                    origin: Arc::clone(origin),
                };
                self.tasks.spawn(attending.run());
                // Whoever opens it may be cancelled while it waits below; the next one opens another.
                let unplaced = abandoned.drop_guard();
                if session.opened.wire.dialect.era == Era::Legacy && session.opened.has_news() {
                    // What a server says before anybody listens is lost, its questions among it.
                    let _ = tokio::time::timeout(LISTEN_PATIENCE, session.link.listens()).await;
                }
                self.ask_again(&session, &own.standing).await;
                let _ = unplaced.disarm();
                Ok(session)
            })
            .await
    }

    /// A connection has ended and its party has not: another is opened where something is to be heard over it.
    pub(super) fn ended(self: &Arc<Self>, key: &Key, own: &Arc<Own>, origin: &Arc<Origin>) {
        let successor = self.own.succeed(key, own);
        own.close.cancel();
        if let Some(own) = successor {
            let renewal = Renewal {
                upstream: Arc::clone(self),
                key: key.clone(),
                own,
                origin: Arc::clone(origin),
            };
            self.tasks.spawn(renewal.run());
        }
    }

    fn another_link(&self, shared: &Link, origin: &Origin) -> Result<Link, Failure> {
        let name = Arc::clone(&self.spec.name);
        let hearing = Hearing::new(
            Arc::clone(&name),
            Whose::One(origin.owner.clone()),
            self.spec.asks(),
        );
        match (shared, &self.spec.transport) {
            (Link::Http(shared), _) => Ok(Link::Http(HttpLink::new(
                name,
                shared.endpoint(),
                self.spec.limits.clone(),
                hearing,
                &self.tasks,
            ))),
            (Link::Duplex(_), TransportSpec::Stdio(program)) => stdio::start(
                name,
                program,
                &self.children,
                self.spec.limits.clone(),
                hearing,
                &self.tasks,
                &self.stop,
            )
            .map(Link::Duplex),
            (Link::Duplex(_), TransportSpec::Sse(http)) => {
                let endpoint =
                    Endpoint::new(http).map_err(|error| Failure::Unreachable(error.to_string()))?;
                Ok(Link::Duplex(legacy_sse::start(
                    name,
                    Arc::new(endpoint),
                    self.spec.limits.clone(),
                    hearing,
                    &self.tasks,
                    &self.stop,
                )))
            }
            (Link::Duplex(_), TransportSpec::StreamableHttp(_)) => {
                Err(Failure::Unreachable("it has no program".to_owned()))
            }
        }
    }
}

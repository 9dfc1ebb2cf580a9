//! Connections of one party each, to upstreams that keep state: an agent session's, or those of what one agent asks without a
//! session. They are opened by the first request that needs one, and end with their party.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Era;
use super::envelope::Answer;
use super::failure::Failure;
use super::handshake;
use super::hearing::{Hearing, Whose};
use super::http::HttpLink;
use super::http::endpoint::Endpoint;
use super::http::legacy_sse;
use super::link::Link;
use super::message;
use super::session::Session;
use super::stdio;
use super::upstream::McpUpstream;
use crate::upstream::{Origin, Party, TransportSpec, UpstreamRequest};

/// Connections of one upstream's own over HTTP, and child processes.
const MAX_HTTP: usize = 4096;
const MAX_CHILDREN: usize = 64;
/// One agent's share of them.
const SHARE: usize = 4;
/// A connection of a party that has no session ends when it is not used for this long.
const IDLE: Duration = Duration::from_secs(300);

/// How long a request waits for the stream of what comes outside requests.
const LISTEN_PATIENCE: Duration = Duration::from_secs(2);

/// The party, and what it says that its client can do, which a legacy upstream is told once.
type Key = (Party, Bytes);

/// The connections of one party each.
#[derive(Debug, Default)]
pub(super) struct OwnConnections {
    by_key: Mutex<HashMap<Key, Arc<Own>>>,
}

#[derive(Debug)]
struct Own {
    session: OnceCell<Arc<Session>>,
    in_use: AtomicUsize,
    last_used: Mutex<Instant>,
    close: CancellationToken,
}

/// A connection that is being opened; it ends when that comes to nothing.
struct Opening(Option<Link>);

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(link) = self.0.take() {
            link.give_up();
        }
    }
}

/// A use of a connection, which keeps it from being given up.
struct Use(Arc<Own>);

impl Use {
    fn begin(own: &Arc<Own>) -> Self {
        own.in_use.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(own))
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Own {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            session: OnceCell::new(),
            in_use: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            close: CancellationToken::new(),
        })
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) > 0
    }
}

impl OwnConnections {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Own>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The connection of this key, or room for one. Where there is none, the one that was not used for the longest is given up.
    fn claim(&self, key: &Key, limit: usize) -> Result<Use, Failure> {
        let mut by_key = self.lock();
        if let Some(own) = by_key.get(key) {
            return Ok(Use::begin(own));
        }
        let is_same_agent = |other: &Key| other.0.agent == key.0.agent;
        let share = (limit / SHARE).max(1);
        let is_over_share = by_key.keys().filter(|other| is_same_agent(other)).count() >= share;
        if is_over_share || by_key.len() >= limit {
            let oldest = by_key
                .iter()
                .filter(|(other, own)| !own.is_in_use() && (!is_over_share || is_same_agent(other)))
                .min_by_key(|(_, own)| own.last_used())
                .map(|(other, _)| other.clone());
            let given_up = oldest
                .and_then(|oldest| by_key.remove(&oldest))
                .ok_or(Failure::Busy(if is_over_share { share } else { limit }))?;
            given_up.close.cancel();
        }
        let own = Own::new();
        by_key.insert(key.clone(), Arc::clone(&own));
        Ok(Use::begin(&own))
    }

    /// The connections of a party.
    fn of(&self, party: &Party) -> Vec<Use> {
        let by_key = self.lock();
        let of_party = by_key.iter().filter(|(key, _)| key.0 == *party);
        of_party.map(|(_, own)| Use::begin(own)).collect()
    }

    /// Forgets a connection, if it is still the one of its key.
    fn forget(&self, key: &Key, own: &Arc<Own>) {
        let mut by_key = self.lock();
        if by_key.get(key).is_some_and(|known| Arc::ptr_eq(known, own)) {
            by_key.remove(key);
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
        let key = (
            origin.party.clone(),
            shared.opened.wire.dialect.asks.of_agent(&origin.capabilities),
        );
        let mut is_first = true;
        loop {
            let claimed = self.own.claim(&key, self.most())?;
            let session = match self.opened(&claimed.0, &key, origin, shared).await {
                Ok(session) => session,
                Err(failure) => {
                    self.own.forget(&key, &claimed.0);
                    return Err(failure);
                }
            };
            let outcome = Link::call(session, request, self.spec.forward_identity).await;
            let is_gone = matches!(outcome, Err(Failure::SessionExpired | Failure::Unreachable(_)));
            if !is_gone {
                return outcome;
            }
            self.own.forget(&key, &claimed.0);
            claimed.0.close.cancel();
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
    async fn opened<'o>(
        self: &Arc<Self>,
        own: &'o Arc<Own>,
        key: &Key,
        origin: &Origin,
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
                let session = Session::new(shared.number, link, opened, self.subscribed.subscribe());
                session.mirrors.store(shared.mirrors.load_full());
                let attending = Attendance {
                    upstream: Arc::clone(self),
                    key: key.clone(),
                    own: Arc::clone(own),
                    session: Arc::clone(&session),
                    ended: origin.ended.clone(),
                };
                self.tasks.spawn(attending.run());
                if session.opened.wire.dialect.era == Era::Legacy && session.opened.has_news() {
                    // What a server says before anybody listens is lost, its questions among it.
                    let _ = tokio::time::timeout(LISTEN_PATIENCE, session.link.listens()).await;
                }
                Ok(session)
            })
            .await
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

/// Keeps a connection until it, its party or the sidecar ends.
struct Attendance {
    upstream: Arc<McpUpstream>,
    key: Key,
    own: Arc<Own>,
    session: Arc<Session>,
    ended: Option<CancellationToken>,
}

impl Attendance {
    async fn run(self) {
        {
            let listening = Link::listen(&self.session);
            tokio::pin!(listening);
            let over = self.over();
            tokio::pin!(over);
            tokio::select! {
                () = &mut over => {}
                never = &mut listening => match never {},
            }
        }
        self.upstream.own.forget(&self.key, &self.own);
        self.session.link.close(Some(&self.session.opened.wire)).await;
    }

    async fn over(&self) {
        let party_ended = async {
            match &self.ended {
                Some(ended) => ended.cancelled().await,
                None => self.unused().await,
            }
        };
        tokio::pin!(party_ended);
        let link = &self.session.link;
        loop {
            tokio::select! {
                () = self.upstream.stop.cancelled() => return,
                () = self.own.close.cancelled() => return,
                () = &mut party_ended => return,
                reason = link.ended() => {
                    tracing::debug!(upstream = %self.upstream.name(), "a session's own connection ended: {reason}");
                    return;
                }
                _ = link.expired() => return,
                () = link.changed().notified() => self.upstream.look_again(),
            }
        }
    }

    /// Returns when nobody has used the connection for a while.
    async fn unused(&self) {
        loop {
            let until = self.own.last_used() + IDLE;
            if self.own.is_in_use() {
                tokio::time::sleep(IDLE).await;
            } else if until <= Instant::now() {
                return;
            } else {
                tokio::time::sleep_until(until).await;
            }
        }
    }
}

//! Connects an upstream, keeps its catalogue current, and connects again when the connection ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::catalogue::{self, Catalogue};
use super::failure::Failure;
use super::handshake;
use super::hearing::{Hearing, Whose};
use super::http::HttpLink;
use super::http::endpoint::Endpoint;
use super::http::legacy_sse;
use super::link::Link;
use super::session::Session;
use super::stdio;
use super::upstream::McpUpstream;
use crate::upstream::retry::RetrySchedule;
use crate::upstream::{SpecError, TransportSpec};

/// Changes that follow one another this closely are read once.
const SETTLE: Duration = Duration::from_millis(20);
/// The least time between two readings.
const SPACING: Duration = Duration::from_secs(1);
const ENDING: &str = "the sidecar is ending";

/// Runs until `stop`, or until it is clear that no try can succeed.
pub(super) async fn run(upstream: Arc<McpUpstream>, tasks: TaskTracker, stop: CancellationToken) {
    let supervisor = match Supervisor::new(upstream, tasks, stop) {
        Ok(supervisor) => supervisor,
        Err((upstream, error)) => {
            tracing::error!(upstream = %upstream.name(), "cannot be connected to: {error}");
            let mut status = upstream.status();
            status.last_error = Some(error.to_string());
            status.is_failed = true;
            return;
        }
    };
    supervisor.run().await;
}

struct Supervisor {
    upstream: Arc<McpUpstream>,
    endpoint: Option<Arc<Endpoint>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    sessions: u64,
    /// An upstream that ended on the first modern request is not sent one the next time.
    probes: bool,
}

impl Supervisor {
    fn new(
        upstream: Arc<McpUpstream>,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Result<Self, (Arc<McpUpstream>, SpecError)> {
        let endpoint = match &upstream.spec.transport {
            TransportSpec::Stdio(_) => None,
            TransportSpec::Sse(http) | TransportSpec::StreamableHttp(http) => match Endpoint::new(http) {
                Ok(endpoint) => Some(Arc::new(endpoint)),
                Err(error) => return Err((upstream, error)),
            },
        };
        Ok(Self {
            upstream,
            endpoint,
            tasks,
            stop,
            sessions: 0,
            probes: true,
        })
    }

    async fn run(mut self) {
        let mut schedule = RetrySchedule::new(self.upstream.spec.retry);
        while !self.stop.is_cancelled() {
            let (error, wait) = match self.connect().await {
                Ok(session) => {
                    let connected = Instant::now();
                    let reason = self.attend(session).await;
                    (reason, schedule.after_loss(connected.elapsed()))
                }
                Err(failure) => (failure.to_string(), schedule.after_failure()),
            };
            if self.stop.is_cancelled() {
                return;
            }
            tracing::warn!(upstream = %self.upstream.name(), "not connected, tried again in {wait:?}: {error}");
            {
                let mut status = self.upstream.status();
                status.last_error = Some(error);
                status.next_try = Some(Instant::now() + wait);
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = sleep(wait) => self.upstream.status().next_try = None,
            }
        }
    }

    /// Opens a connection and reads the catalogue; calls can be made when it returns.
    async fn connect(&mut self) -> Result<Arc<Session>, Failure> {
        let link = self.link()?;
        let stop = self.stop.clone();
        let opening = self.open(&link);
        let outcome = tokio::select! {
            outcome = opening => outcome,
            () = stop.cancelled() => Err(Failure::Unreachable(ENDING.to_owned())),
        };
        if outcome.is_err() {
            link.close(None).await;
        }
        outcome
    }

    fn link(&self) -> Result<Link, Failure> {
        let spec = &self.upstream.spec;
        let name = Arc::clone(&spec.name);
        let limits = spec.limits.clone();
        let everybody = Whose::Everybody(self.upstream.notices.clone());
        let hearing = Hearing::new(Arc::clone(&name), everybody, spec.asks());
        match (&spec.transport, &self.endpoint) {
            (TransportSpec::Stdio(program), _) => {
                let children = &self.upstream.children;
                stdio::start(name, program, children, limits, hearing, &self.tasks, &self.stop)
                    .map(Link::Duplex)
            }
            (TransportSpec::StreamableHttp(_), Some(endpoint)) => Ok(Link::Http(HttpLink::new(
                name,
                Arc::clone(endpoint),
                limits,
                hearing,
                &self.tasks,
            ))),
            (TransportSpec::Sse(_), Some(endpoint)) => Ok(Link::Duplex(legacy_sse::start(
                name,
                Arc::clone(endpoint),
                limits,
                hearing,
                &self.tasks,
                &self.stop,
            ))),
            (TransportSpec::Sse(_) | TransportSpec::StreamableHttp(_), None) => {
                Err(Failure::Unreachable("it has no endpoint".to_owned()))
            }
        }
    }

    async fn open(&mut self, link: &Link) -> Result<Arc<Session>, Failure> {
        let limits = &self.upstream.spec.limits;
        // What speaks the oldest transport is of the legacy era.
        let probes = self.probes && !matches!(self.upstream.spec.transport, TransportSpec::Sse(_));
        let opened = match handshake::open(link, limits, probes, self.upstream.spec.asks()).await {
            Ok(opened) => opened,
            Err(failure) => {
                self.probes = !(self.probes && matches!(failure, Failure::Lost(_)));
                return Err(failure);
            }
        };
        let catalogue = catalogue::read(self.upstream.name(), link, &opened, limits).await?;
        self.probes = true;
        self.sessions += 1;
        let subscribed = self.upstream.standing.subscribed();
        let session = Session::new(self.sessions, link.clone(), opened, subscribed);
        self.publish(&session, catalogue);
        {
            let mut status = self.upstream.status();
            status.next_try = None;
            status.last_error = None;
        }
        self.upstream.sessions.send_replace(Some(Arc::clone(&session)));
        self.upstream.ask_again(&session, &self.upstream.standing).await;
        let dialect = &session.opened.wire.dialect;
        tracing::info!(upstream = %self.upstream.name(), revision = dialect.revision, "connected");
        Ok(session)
    }

    fn publish(&self, session: &Session, catalogue: Catalogue) {
        session.mirrors.store(Arc::new(catalogue.mirrors));
        self.upstream.catalogue.send_replace(Arc::new(catalogue.declared));
    }

    /// Keeps an upstream in use until its connection ends; says why it did.
    async fn attend(&mut self, mut session: Arc<Session>) -> String {
        let reason = loop {
            match self.attend_session(&session).await {
                Next::Over(reason) => break reason,
                Next::Renew => match self.renew(&session).await {
                    Ok(renewed) => session = renewed,
                    Err(failure) => break failure.to_string(),
                },
            }
        };
        self.upstream.status().last_error = Some(reason.clone());
        self.upstream.sessions.send_replace(None);
        let goodbye = Some(&session.opened.wire).filter(|_| self.stop.is_cancelled());
        session.link.close(goodbye).await;
        reason
    }

    /// Listens to one session and reads its catalogue again when it changes.
    async fn attend_session(&self, session: &Session) -> Next {
        let listening = Link::listen(session);
        tokio::pin!(listening);
        let mut last_read = Instant::now();
        let mut read_at: Option<Instant> = None;
        loop {
            let due = read_at.unwrap_or(last_read);
            tokio::select! {
                () = self.stop.cancelled() => return Next::Over(ENDING.to_owned()),
                reason = session.link.ended() => return Next::Over(reason),
                number = session.link.expired() => if number >= session.number {
                    return Next::Renew;
                },
                never = &mut listening => match never {},
                () = session.link.changed().notified() => {
                    read_at.get_or_insert_with(|| (last_read + SPACING).max(Instant::now() + SETTLE));
                }
                () = sleep_until(due), if read_at.is_some() => {
                    read_at = None;
                    let limits = &self.upstream.spec.limits;
                    let outcome = tokio::select! {
                        outcome = catalogue::read(self.upstream.name(), &session.link, &session.opened, limits) => outcome,
                        never = &mut listening => match never {},
                        () = self.stop.cancelled() => continue,
                    };
                    match outcome {
                        Ok(catalogue) => self.publish(session, catalogue),
                        Err(Failure::SessionExpired) => return Next::Renew,
                        Err(failure) => return Next::Over(failure.to_string()),
                    }
                    last_read = Instant::now();
                }
            }
        }
    }

    async fn renew(&mut self, session: &Session) -> Result<Arc<Session>, Failure> {
        tracing::info!(upstream = %self.upstream.name(), "it no longer knows our session; a new one is opened");
        let stop = self.stop.clone();
        let opening = self.open(&session.link);
        tokio::select! {
            outcome = opening => outcome,
            () = stop.cancelled() => Err(Failure::Unreachable(ENDING.to_owned())),
        }
    }
}

/// What follows when a session is no longer attended.
enum Next {
    /// The upstream no longer knows it.
    Renew,
    /// The connection ended.
    Over(String),
}

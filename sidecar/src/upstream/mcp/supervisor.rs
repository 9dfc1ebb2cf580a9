//! Connects an upstream, keeps its catalogue current, and connects again when the connection ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::catalogue::{self, Catalogue};
use super::failure::Failure;
use super::handshake;
use super::http::HttpLink;
use super::http::endpoint::Endpoint;
use super::link::Link;
use super::session::Session;
use super::stdio::StdioLink;
use super::upstream::McpUpstream;
use crate::upstream::retry::RetrySchedule;
use crate::upstream::{DeclaredCatalogue, SpecError, TransportSpec};

/// Changes that follow one another this closely are read once.
const SETTLE: Duration = Duration::from_millis(50);

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
            TransportSpec::StreamableHttp(http) => match Endpoint::new(http) {
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
            () = stop.cancelled() => Err(Failure::Unreachable("the sidecar is ending".to_owned())),
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
        match (&spec.transport, &self.endpoint) {
            (TransportSpec::Stdio(stdio), _) => {
                StdioLink::start(name, stdio, limits, &self.tasks, &self.stop).map(Link::Stdio)
            }
            (TransportSpec::StreamableHttp(_), Some(endpoint)) => Ok(Link::Http(HttpLink::new(
                name,
                Arc::clone(endpoint),
                limits,
                &self.tasks,
            ))),
            (TransportSpec::StreamableHttp(_), None) => {
                Err(Failure::Unreachable("it has no endpoint".to_owned()))
            }
        }
    }

    async fn open(&mut self, link: &Link) -> Result<Arc<Session>, Failure> {
        let limits = &self.upstream.spec.limits;
        let opened = match handshake::open(link, limits, self.probes).await {
            Ok(opened) => opened,
            Err(failure) => {
                self.probes = !(self.probes && matches!(failure, Failure::Lost(_)));
                return Err(failure);
            }
        };
        let catalogue = catalogue::read(self.upstream.name(), link, &opened, limits).await?;
        self.probes = true;
        self.sessions += 1;
        let session = Session::new(self.sessions, link.clone(), opened, catalogue::no_mirrors());
        self.publish(&session, catalogue);
        {
            let mut status = self.upstream.status();
            status.next_try = None;
            status.last_error = None;
        }
        self.upstream.sessions.send_replace(Some(Arc::clone(&session)));
        let dialect = &session.opened.wire.dialect;
        tracing::info!(upstream = %self.upstream.name(), revision = dialect.revision, "connected");
        Ok(session)
    }

    fn publish(&self, session: &Session, catalogue: Catalogue) {
        session.mirrors.store(Arc::new(catalogue.mirrors));
        let declared = DeclaredCatalogue {
            upstream: Arc::clone(self.upstream.name()),
            is_read: true,
            tools: catalogue.tools,
        };
        self.upstream.catalogue.send_replace(Arc::new(declared));
    }

    /// Keeps the session in use until its connection ends; says why it did.
    async fn attend(&mut self, mut session: Arc<Session>) -> String {
        let reason = loop {
            match self.watch(&session).await {
                Event::Stopped => break "the sidecar is ending".to_owned(),
                Event::Ended(reason) => break reason,
                Event::Changed => {
                    sleep(SETTLE).await;
                    let limits = &self.upstream.spec.limits;
                    let read = catalogue::read(self.upstream.name(), &session.link, &session.opened, limits);
                    let outcome = tokio::select! {
                        outcome = read => outcome,
                        () = self.stop.cancelled() => continue,
                    };
                    match outcome {
                        Ok(catalogue) => self.publish(&session, catalogue),
                        Err(Failure::SessionExpired) => match self.renew(&session).await {
                            Ok(renewed) => session = renewed,
                            Err(failure) => break failure.to_string(),
                        },
                        Err(failure) => break failure.to_string(),
                    }
                }
                Event::Expired(number) if number < session.number => {}
                Event::Expired(_) => match self.renew(&session).await {
                    Ok(renewed) => session = renewed,
                    Err(failure) => break failure.to_string(),
                },
            }
        };
        self.upstream.status().last_error = Some(reason.clone());
        self.upstream.sessions.send_replace(None);
        session
            .link
            .close(Some(&session.opened.wire).filter(|_| self.stop.is_cancelled()))
            .await;
        reason
    }

    async fn renew(&mut self, session: &Session) -> Result<Arc<Session>, Failure> {
        tracing::info!(upstream = %self.upstream.name(), "it no longer knows our session; a new one is opened");
        let stop = self.stop.clone();
        let opening = self.open(&session.link);
        tokio::select! {
            outcome = opening => outcome,
            () = stop.cancelled() => Err(Failure::Unreachable("the sidecar is ending".to_owned())),
        }
    }

    async fn watch(&self, session: &Session) -> Event {
        tokio::select! {
            () = self.stop.cancelled() => Event::Stopped,
            reason = session.link.ended() => Event::Ended(reason),
            number = session.link.expired() => Event::Expired(number),
            () = session.link.changed().notified() => Event::Changed,
            () = Link::listen(session) => Event::Changed,
        }
    }
}

enum Event {
    Stopped,
    Ended(String),
    Expired(u64),
    Changed,
}

//! An MCP server that is configured as an upstream.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::envelope::Answer;
use super::failure::Failure;
use super::link::Link;
use super::own::OwnConnections;
use super::session::Session;
use super::standing::Standing;
use super::{Era, as_task, supervisor};
use crate::upstream::children::Children;
use crate::upstream::notice;
use crate::upstream::{
    Asks, Connection, DeclaredCatalogue, Notice, TransportSpec, UpstreamAnswer, UpstreamError,
    UpstreamRequest, UpstreamSpec, UpstreamState,
};

/// An MCP server that is configured as an upstream.
#[derive(Debug)]
pub(in crate::upstream) struct McpUpstream {
    pub(super) spec: UpstreamSpec,
    pub(super) sessions: watch::Sender<Option<Arc<Session>>>,
    pub(super) catalogue: watch::Sender<Arc<DeclaredCatalogue>>,
    pub(super) status: Mutex<Status>,
    pub(in crate::upstream) notices: broadcast::Sender<Notice>,
    /// What agents asked for over the connection that all share.
    pub(super) standing: Standing,
    pub(super) children: Arc<Children>,
    pub(super) tasks: TaskTracker,
    /// Cancelled when the sidecar ends.
    pub(super) stop: CancellationToken,
    /// Connections of one party each.
    pub(super) own: OwnConnections,
}

#[derive(Debug)]
pub(super) struct Status {
    pub(super) last_error: Option<String>,
    pub(super) next_try: Option<Instant>,
    pub(super) is_failed: bool,
}

impl McpUpstream {
    /// Starts to connect, until `stop`.
    pub(in crate::upstream) fn start(
        spec: UpstreamSpec,
        children: &Arc<Children>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let catalogue = DeclaredCatalogue::unread(Arc::clone(&spec.name));
        let upstream = Arc::new(Self {
            spec,
            sessions: watch::Sender::new(None),
            catalogue: watch::Sender::new(Arc::new(catalogue)),
            status: Mutex::new(Status {
                last_error: None,
                next_try: None,
                is_failed: false,
            }),
            notices: broadcast::Sender::new(notice::ROOM),
            standing: Standing::default(),
            children: Arc::clone(children),
            tasks: tasks.clone(),
            stop: stop.clone(),
            own: OwnConnections::default(),
        });
        tasks.spawn(supervisor::run(
            Arc::clone(&upstream),
            tasks.clone(),
            stop.clone(),
        ));
        upstream
    }

    pub(in crate::upstream) fn name(&self) -> &Arc<str> {
        &self.spec.name
    }

    pub(in crate::upstream) fn catalogue(&self) -> watch::Receiver<Arc<DeclaredCatalogue>> {
        self.catalogue.subscribe()
    }

    pub(in crate::upstream) fn state(&self) -> UpstreamState {
        let session = self.sessions.borrow().clone();
        let (last_error, next_try, is_failed) = {
            let status = self.status();
            (status.last_error.clone(), status.next_try, status.is_failed)
        };
        let connection = match session {
            Some(session) => Connection::Connected {
                era: session.opened.wire.dialect.era,
                revision: session.opened.wire.dialect.revision.to_owned(),
            },
            None if is_failed => Connection::Failed,
            None => Connection::Retrying {
                next_try: next_try
                    .map(|at| at.saturating_duration_since(Instant::now()))
                    .unwrap_or(Duration::ZERO),
            },
        };
        UpstreamState {
            name: Arc::clone(&self.spec.name),
            transport: match self.spec.transport {
                TransportSpec::Stdio(_) => "stdio",
                TransportSpec::Sse(_) => "sse",
                TransportSpec::StreamableHttp(_) => "streamable-http",
            },
            connection,
            last_error,
            tools: self.catalogue.borrow().tools.len(),
        }
    }

    pub(super) fn status(&self) -> std::sync::MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::upstream) async fn call(
        self: &Arc<Self>,
        mut request: UpstreamRequest,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        request.log_level = self.log_level(&request);
        let bound = match request.timeout {
            Some(bound) => bound,
            None if self.is_task(&request) => as_task::LONGEST,
            None => self.spec.limits.call_timeout,
        };
        let outcome = tokio::select! {
            biased;
            () = request.cancel.cancelled() => {
                return Err(UpstreamError::Cancelled { upstream: Arc::clone(&self.spec.name) });
            }
            outcome = self.forward_to_the_end(&request) => outcome,
            () = tokio::time::sleep(bound) => Err(Failure::Timeout(bound)),
        };
        match outcome {
            Ok((answer, era)) => Ok(UpstreamAnswer {
                kind: answer.kind,
                raw: answer.raw,
                era,
                exit_code: None,
            }),
            Err(failure) => Err(failure.of(&self.spec.name)),
        }
    }

    async fn forward_to_the_end(
        self: &Arc<Self>,
        request: &UpstreamRequest,
    ) -> Result<(Answer, Era), Failure> {
        if self.is_task(request) {
            return Box::pin(self.follow_task(request)).await;
        }
        let (answer, era) = self.forward(request).await?;
        let asks = request.origin.as_ref().filter(|origin| !origin.takes_rounds);
        match asks.and_then(|origin| origin.client.as_ref()) {
            Some(client) if era == Era::Modern => {
                let whole = Box::pin(self.finish_rounds(client, request, answer)).await?;
                Ok((whole, era))
            }
            Some(_) | None => Ok((answer, era)),
        }
    }

    pub(super) async fn forward(
        self: &Arc<Self>,
        request: &UpstreamRequest,
    ) -> Result<(Answer, Era), Failure> {
        let session = self.sessions.borrow().clone();
        let session = session.ok_or_else(|| Failure::Unreachable(self.absence()))?;
        let era = session.opened.wire.dialect.era;
        if let Some(answer) = self.level_without_request(&session, request) {
            return Ok((answer, era));
        }
        if let Some(origin) = self.party(&session, request) {
            let answer = Box::pin(self.forward_alone(origin, &session, request)).await?;
            return Ok((answer, era));
        }
        if let Some(answer) = self.standing.note_without_request(&session, request) {
            return Ok((answer, era));
        }
        let forwards_identity = self.spec.forward_identity;
        match Link::call(&session, request, forwards_identity).await {
            // The upstream refused the session before it looked at the call.
            Err(Failure::SessionExpired) => {
                let session = Box::pin(self.renewed(session.number)).await?;
                let outcome = Box::pin(Link::call(&session, request, forwards_identity)).await;
                self.standing.note_answered(request, &outcome);
                Ok((outcome?, session.opened.wire.dialect.era))
            }
            outcome => {
                if request.method.is_some() {
                    self.standing.note_answered(request, &outcome);
                }
                Ok((outcome?, era))
            }
        }
    }

    /// Whether what is asked for this party goes over a connection of its own, as far as is known.
    pub(in crate::upstream) fn is_shared(&self) -> bool {
        let session = self.sessions.borrow();
        let has_session = session
            .as_ref()
            .is_some_and(|session| session.opened.wire.session_id.is_some());
        self.spec.is_shared(has_session)
    }

    /// What it may ask agents for.
    pub(in crate::upstream) fn asks(&self) -> Asks {
        self.spec.asks()
    }

    /// Whether it is a legacy upstream that may ask agents.
    pub(in crate::upstream) fn asks_by_requests(&self) -> bool {
        let is_legacy = self
            .sessions
            .borrow()
            .as_ref()
            .is_some_and(|session| session.opened.wire.dialect.era == Era::Legacy);
        is_legacy && self.spec.asks() != Asks::default()
    }

    /// How many connections there are of one party each.
    pub(in crate::upstream) fn own_connections(&self) -> usize {
        self.own.len()
    }

    /// Reads the catalogue again soon.
    pub(super) fn look_again(&self) {
        if let Some(session) = &*self.sessions.borrow() {
            session.link.changed().notify_one();
        }
    }

    /// The session that follows the one of this number.
    async fn renewed(&self, number: u64) -> Result<Arc<Session>, Failure> {
        let mut sessions = self.sessions.subscribe();
        let newer =
            sessions.wait_for(|session| session.as_ref().is_none_or(|session| session.number > number));
        let session = match tokio::time::timeout(self.spec.limits.handshake_timeout, newer).await {
            Ok(Ok(session)) => session.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        session.ok_or_else(|| Failure::Unreachable(self.absence()))
    }

    fn absence(&self) -> String {
        self.status()
            .last_error
            .clone()
            .unwrap_or_else(|| "the first connection is under way".to_owned())
    }
}

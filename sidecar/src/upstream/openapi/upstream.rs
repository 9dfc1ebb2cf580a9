//! An OpenAPI service that is configured as an upstream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use net::outbound::Outbound;
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::fingerprint::Fingerprint;
use tools::json::Node;
use tools::model::ToolKind;
use tools::openapi::RequestTemplate;

use super::claims::{Claims, Holder};
use super::spec::OpenApiSpec;
use super::supervisor;
use crate::upstream::notice;
use crate::upstream::{Connection, DeclaredCatalogue, Notice, UpstreamState};

/// An OpenAPI service that is configured as an upstream.
#[derive(Debug)]
pub(in crate::upstream) struct OpenApiUpstream {
    pub(super) spec: OpenApiSpec,
    pub(super) claims: Arc<Claims>,
    /// As whom it claims names.
    pub(super) holder: Holder,
    pub(super) catalogue: watch::Sender<Arc<DeclaredCatalogue>>,
    /// How each tool's requests are made.
    pub(super) requests: ArcSwap<HashMap<Arc<str>, Prepared>>,
    pub(super) status: Mutex<Status>,
    pub(in crate::upstream) notices: broadcast::Sender<Notice>,
    /// What calls are sent by; there once the configuration has proven usable.
    pub(super) sender: ArcSwap<Option<Sender>>,
    pub(super) in_flight: Semaphore,
    pub(super) reread: Notify,
    /// Cancelled when it is no longer configured, or the sidecar ends.
    pub(super) stop: CancellationToken,
}

/// How the requests of a tool are made, and which declaration that belongs to.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) template: RequestTemplate,
    pub(super) fingerprint: Fingerprint,
}

/// The guarded client, and what every request carries.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) http: Outbound,
    pub(super) headers: http::HeaderMap,
}

#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) last_error: Option<String>,
    pub(super) next_try: Option<Instant>,
    pub(super) is_failed: bool,
}

impl OpenApiUpstream {
    /// Starts to read the document, until `stop`.
    pub(in crate::upstream) fn start(
        spec: OpenApiSpec,
        claims: Arc<Claims>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let catalogue = DeclaredCatalogue {
            kind: ToolKind::OpenApi,
            is_prefixed: spec.is_prefixed,
            ..DeclaredCatalogue::unread(Arc::clone(&spec.name))
        };
        let upstream = Arc::new(Self {
            in_flight: Semaphore::new(spec.limits.calls_in_flight),
            holder: claims.begin(spec.place, &spec.name),
            spec,
            claims,
            catalogue: watch::Sender::new(Arc::new(catalogue)),
            requests: ArcSwap::default(),
            status: Mutex::default(),
            notices: broadcast::Sender::new(notice::ROOM),
            sender: ArcSwap::default(),
            reread: Notify::new(),
            stop: stop.clone(),
        });
        tasks.spawn(supervisor::run(Arc::clone(&upstream)));
        upstream
    }

    pub(in crate::upstream) fn name(&self) -> &Arc<str> {
        &self.spec.name
    }

    pub(in crate::upstream) fn catalogue(&self) -> watch::Receiver<Arc<DeclaredCatalogue>> {
        self.catalogue.subscribe()
    }

    /// Reads the document again, soon.
    pub(in crate::upstream) fn reread(&self) {
        self.reread.notify_one();
    }

    /// Why no request can be made of a call's arguments, in words for a model.
    pub(in crate::upstream) fn refuses(&self, tool: &str, arguments: Option<Node<'_>>) -> Option<String> {
        let requests = self.requests.load();
        let built = requests.get(tool)?.template.build(arguments);
        built.err().map(|error| error.to_string())
    }

    pub(in crate::upstream) fn state(&self) -> UpstreamState {
        let (last_error, next_try, is_failed) = {
            let status = self.status();
            (status.last_error.clone(), status.next_try, status.is_failed)
        };
        let (is_read, tools) = {
            let catalogue = self.catalogue.borrow();
            (catalogue.is_read, catalogue.tools.len())
        };
        let connection = if is_failed {
            Connection::Failed
        } else if is_read {
            Connection::Ready
        } else {
            Connection::Retrying {
                next_try: next_try
                    .map(|at| at.saturating_duration_since(Instant::now()))
                    .unwrap_or(Duration::ZERO),
            }
        };
        UpstreamState {
            name: Arc::clone(&self.spec.name),
            transport: "openapi",
            connection,
            last_error,
            tools,
        }
    }

    pub(super) fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

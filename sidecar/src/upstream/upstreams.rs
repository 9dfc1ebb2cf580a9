//! All upstreams of a sidecar.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::json::Node;

use super::children::Children;
use super::cli::CliUpstream;
use super::mcp::McpUpstream;
use super::openapi::{Claims, OpenApiUpstream};
use super::{
    Asks, DeclaredCatalogue, Notice, Party, SourceSpec, UpstreamAnswer, UpstreamError, UpstreamRequest,
    UpstreamState,
};

/// The first descriptor beyond standard input, output and error.
const FIRST_INHERITED: i32 = 3;

/// One upstream; cheap to clone.
#[derive(Clone, Debug)]
pub struct Upstream {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Mcp(Arc<McpUpstream>),
    OpenApi(Arc<OpenApiUpstream>),
    Cli(Arc<CliUpstream>),
    #[cfg(test)]
    #[allow(dead_code, reason = "for the tests of whichever room forwards calls")]
    Scripted(Arc<super::scripted::Scripted>),
}

impl Upstream {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.name(),
            Kind::OpenApi(upstream) => upstream.name(),
            Kind::Cli(program) => program.name(),
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.name(),
        }
    }

    /// Forwards one call and waits for its answer.
    ///
    /// # Errors
    /// When there is no answer; a JSON-RPC error that the upstream answers with is an answer.
    pub async fn call(&self, request: UpstreamRequest) -> Result<UpstreamAnswer, UpstreamError> {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.call(request).await,
            Kind::OpenApi(upstream) => upstream.call(request).await,
            // Boxed: calls of programs must not make the state of every call larger.
            Kind::Cli(program) => Box::pin(program.call(request)).await,
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.call(request).await,
        }
    }

    /// What it says that answers no request, from now on.
    #[must_use]
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.notices.subscribe(),
            Kind::OpenApi(upstream) => upstream.notices.subscribe(),
            Kind::Cli(program) => program.notices.subscribe(),
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.notices.subscribe(),
        }
    }

    /// Nobody wants to hear of changes of this resource any more.
    pub fn forget(&self, uri: &str) {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.forget(uri),
            Kind::OpenApi(_) => {}
            Kind::Cli(_) => {}
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.forgotten.lock().unwrap().push(uri.to_owned()),
        }
    }

    /// Whether a request of any agent goes over one connection.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.is_shared(),
            Kind::OpenApi(_) | Kind::Cli(_) => true,
            #[cfg(test)]
            Kind::Scripted(_) => true,
        }
    }

    /// What it may ask agents for.
    #[must_use]
    pub fn asks(&self) -> Asks {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.asks(),
            Kind::OpenApi(_) | Kind::Cli(_) => Asks::default(),
            #[cfg(test)]
            Kind::Scripted(_) => Asks::ALL,
        }
    }

    /// Whether it may ask an agent by requests of its own, as legacy upstreams do.
    #[must_use]
    pub fn asks_by_requests(&self) -> bool {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.asks_by_requests(),
            Kind::OpenApi(_) | Kind::Cli(_) => false,
            #[cfg(test)]
            Kind::Scripted(_) => false,
        }
    }

    /// Tells it, over the connections of this party, that the party's roots have changed.
    pub fn tell_of_roots(&self, party: &Party) {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.tell_of_roots(party),
            Kind::OpenApi(_) | Kind::Cli(_) => {}
            #[cfg(test)]
            Kind::Scripted(_) => {}
        }
    }

    /// How many connections there are of one agent session each.
    #[must_use]
    pub fn own_connections(&self) -> usize {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.own_connections(),
            Kind::OpenApi(_) | Kind::Cli(_) => 0,
            #[cfg(test)]
            Kind::Scripted(_) => 0,
        }
    }

    /// What it declares; changes when it is read again.
    #[must_use]
    pub fn catalogue(&self) -> watch::Receiver<Arc<DeclaredCatalogue>> {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.catalogue(),
            Kind::OpenApi(upstream) => upstream.catalogue(),
            Kind::Cli(program) => program.catalogue(),
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.catalogue(),
        }
    }

    /// The program, where it is one.
    #[must_use]
    pub fn program(&self) -> Option<&Arc<CliUpstream>> {
        match &self.kind {
            Kind::Cli(program) => Some(program),
            Kind::Mcp(_) | Kind::OpenApi(_) => None,
            #[cfg(test)]
            Kind::Scripted(_) => None,
        }
    }

    /// Reads again what it declares, where that is a document; an MCP server tells by itself that it changed.
    pub fn reread(&self) {
        if let Kind::OpenApi(upstream) = &self.kind {
            upstream.reread();
        }
    }

    /// Why a call with these arguments, which fit the tool's schema, cannot be sent; in words for a model.
    #[must_use]
    pub fn refuses(&self, tool: &str, arguments: Option<Node<'_>>) -> Option<String> {
        match &self.kind {
            Kind::OpenApi(upstream) => upstream.refuses(tool, arguments),
            Kind::Cli(_) => None,
            Kind::Mcp(_) => None,
            #[cfg(test)]
            Kind::Scripted(_) => None,
        }
    }

    /// The state of its connection.
    #[must_use]
    pub fn state(&self) -> UpstreamState {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.state(),
            Kind::OpenApi(upstream) => upstream.state(),
            Kind::Cli(program) => program.state(),
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.state(),
        }
    }
}

/// All upstreams of a sidecar; which they are can change. Dropping it ends their connections and child processes.
#[derive(Debug)]
pub struct Upstreams {
    running: ArcSwap<Running>,
    changes: watch::Sender<u64>,
    /// Held while the set is changed.
    turn: Mutex<()>,
    /// Which OpenAPI service has which tool without a prefix.
    claims: Arc<Claims>,
    children: Arc<Children>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The upstreams of one moment, by name.
pub(super) type Running = BTreeMap<Arc<str>, Entry>;

/// An upstream and what ends it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Another one each time that an upstream is begun, whatever its name.
    pub(super) number: u64,
    pub(super) upstream: Upstream,
    spec: Option<Arc<SourceSpec>>,
    stop: CancellationToken,
}

/// How a set of upstreams changed; names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Those that were not there before.
    pub added: Vec<Arc<str>>,
    /// Those that are begun anew, since they are configured differently.
    pub changed: Vec<Arc<str>>,
    /// Those that are ended.
    pub removed: Vec<Arc<str>>,
}

impl Upstreams {
    /// Starts to connect to all of them; returns at once. Must be called within a runtime.
    #[must_use]
    pub fn start(specs: impl IntoIterator<Item = impl Into<SourceSpec>>) -> Self {
        Self::with(Children::of_groups(), specs)
    }

    /// As [`Upstreams::start`], and the programs among them are `children`.
    #[must_use]
    pub fn with(children: Arc<Children>, specs: impl IntoIterator<Item = impl Into<SourceSpec>>) -> Self {
        // What the sidecar was itself started with is not for the programs that it starts. Its own descriptors are marked already.
        close_fds::set_fds_cloexec_threadsafe(FIRST_INHERITED, &[]);
        let upstreams = Self::of(Running::new(), children);
        let watching = Arc::clone(&upstreams.children).watch(upstreams.stop.clone());
        upstreams.tasks.spawn(watching);
        upstreams.apply(specs);
        upstreams
    }

    fn of(running: Running, children: Arc<Children>) -> Self {
        Self {
            running: ArcSwap::from_pointee(running),
            changes: watch::Sender::new(0),
            turn: Mutex::default(),
            claims: Arc::default(),
            children,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Upstreams whose answers a test scripts.
    #[cfg(test)]
    #[allow(dead_code, reason = "for the tests of whichever room forwards calls")]
    pub(crate) fn scripted(all: impl IntoIterator<Item = super::scripted::Scripted>) -> Self {
        let entry = |scripted: super::scripted::Scripted| {
            let name = Arc::clone(scripted.name());
            let entry = Entry {
                number: 0,
                upstream: Upstream {
                    kind: Kind::Scripted(Arc::new(scripted)),
                },
                spec: None,
                stop: CancellationToken::new(),
            };
            (name, entry)
        };
        Self::of(all.into_iter().map(entry).collect(), Children::of_groups())
    }

    /// These are the upstreams from now on: what is new is connected to, what is configured as before goes on undisturbed, and what is
    /// no longer there is ended with the calls that it has. Returns at once; must be called within a runtime.
    pub fn apply(&self, specs: impl IntoIterator<Item = impl Into<SourceSpec>>) -> Applied {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.running.load_full();
        let specs: BTreeMap<Arc<str>, SourceSpec> = specs
            .into_iter()
            .map(|spec| {
                let spec: SourceSpec = spec.into();
                (Arc::clone(spec.name()), spec)
            })
            .collect();
        let goes_on = |name: &Arc<str>, entry: &Entry| {
            entry
                .spec
                .as_deref()
                .is_some_and(|spec| specs.get(name) == Some(spec))
        };
        let mut applied = Applied::default();
        let mut now = Running::new();
        for (name, entry) in before.iter() {
            if goes_on(name, entry) {
                entry.upstream.reread();
                now.insert(Arc::clone(name), entry.clone());
                continue;
            }
            entry.stop.cancel();
            if !specs.contains_key(name) {
                applied.removed.push(Arc::clone(name));
            }
        }
        let mut number = *self.changes.borrow();
        for (name, spec) in specs.into_iter() {
            if now.contains_key(&name) {
                continue;
            }
            if before.contains_key(&name) {
                applied.changed.push(Arc::clone(&name));
            } else {
                applied.added.push(Arc::clone(&name));
            }
            number += 1;
            now.insert(name, self.begin(number, spec));
        }
        self.running.store(Arc::new(now));
        self.changes.send_replace(number + 1);
        applied
    }

    fn begin(&self, number: u64, spec: SourceSpec) -> Entry {
        let stop = self.stop.child_token();
        let kept = Arc::new(spec.clone());
        let kind = match spec {
            SourceSpec::Mcp(spec) => Kind::Mcp(McpUpstream::start(spec, &self.children, &self.tasks, &stop)),
            SourceSpec::OpenApi(spec) => {
                let claims = Arc::clone(&self.claims);
                Kind::OpenApi(OpenApiUpstream::start(spec, claims, &self.tasks, &stop))
            }
            SourceSpec::Cli(spec) => Kind::Cli(CliUpstream::start(spec, &self.children, &self.tasks, &stop)),
        };
        Entry {
            number,
            upstream: Upstream { kind },
            spec: Some(kept),
            stop,
        }
    }

    /// The upstream called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Upstream> {
        let running = self.running.load();
        running.get(name).map(|entry| entry.upstream.clone())
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Upstream> {
        let running = self.running.load();
        running.values().map(|entry| entry.upstream.clone()).collect()
    }

    /// The state of each, by name.
    #[must_use]
    pub fn states(&self) -> Vec<UpstreamState> {
        self.all().iter().map(Upstream::state).collect()
    }

    /// Those of this moment, and a sign of each change after it.
    pub(super) fn watched(&self) -> (watch::Receiver<u64>, impl Fn() -> Arc<Running>) {
        (self.changes.subscribe(), || self.running.load_full())
    }

    /// Ends all connections and child processes, and waits until they are gone.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.children.finish().await;
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

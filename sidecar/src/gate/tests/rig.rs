//! A whole sidecar but for its listener: routes, gate, registry, spool and link; the plane and the upstream are scripted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use net::clock::Clock;
use net::host::AllowedHosts;
use proto::v1;
use proto::v1::approval_state::Status as Wire;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use crate::agent::attended::Tasks;
use crate::agent::caller::ProtectedResource;
use crate::agent::calls::Calls;
use crate::agent::mcp::hub::{self, Hub};
use crate::agent::mcp::rounds::Rounds;
use crate::agent::mcp::sessions::Sessions;
use crate::agent::mcp::tasks::OwnTasks;
use crate::agent::names::Names;
use crate::agent::state::{AgentState, Limits};
use crate::control::tests::plane::{
    Plane, State, WatchStream, approval, heartbeat, message, resource, revision,
};
use crate::control::{Control, Freshness, JoinProof, Link, Options, Secret};
use crate::gate::{Gate, LocalRules, Parts};
use crate::identity::Identities;
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::spool::{self, Spool};
use crate::upstream::scripted::Scripted;
use crate::upstream::{DeclaredCatalogue, DeclaredTool, Notice, UpstreamAnswer, UpstreamError, Upstreams};

type ApprovalFeed = mpsc::Sender<Result<v1::ApprovalState, tonic::Status>>;

pub(super) struct Rig {
    pub(super) plane: Plane,
    pub(super) clock: Clock,
    pub(super) gate: Arc<Gate>,
    pub(super) routes: Router,
    watch: AsyncMutex<WatchStream>,
    number: u64,
    spool: Spool,
    forwarded: Arc<Mutex<Vec<String>>>,
    cancelled: Arc<AtomicUsize>,
    notices: broadcast::Sender<Notice>,
    _dir: tempfile::TempDir,
}

fn policy(rules: &str, number: u64) -> v1::Resource {
    let text = format!("name: main\nagent: \"*\"\nrules:{rules}");
    let parsed = policy::Policy::parse_all(
        "test.yaml",
        &text,
        &policy::document::Source::Api,
        &policy::document::Lists::none(),
    );
    let parsed = parsed.unwrap_or_else(|problems| panic!("{problems:?}"));
    resource("policy", "main", number, parsed[0].to_sent().unwrap())
}

fn notes(forwarded: &Arc<Mutex<Vec<String>>>, cancelled: &Arc<AtomicUsize>) -> Scripted {
    let (forwarded, cancelled) = (Arc::clone(forwarded), Arc::clone(cancelled));
    let tools = [
        r#"{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#,
        r#"{"name":"write","inputSchema":{"type":"object"}}"#,
        r#"{"name":"delete","inputSchema":{"type":"object"}}"#,
        r#"{"name":"slow","inputSchema":{"type":"object"}}"#,
    ];
    let scripted = Scripted::new("notes", &tools, move |request| {
        let (asked, with) = match &request.method {
            Some(method) => (method, request.extra.clone()),
            None => (&request.tool, request.arguments.clone()),
        };
        let line = format!("{asked} {}", String::from_utf8_lossy(&with.unwrap_or_default()));
        forwarded.lock().unwrap().push(line);
        let cancelled = Arc::clone(&cancelled);
        async move {
            if &*request.tool == "slow" {
                request.cancel.cancelled().await;
                cancelled.fetch_add(1, Ordering::SeqCst);
                return Err(UpstreamError::Cancelled {
                    upstream: "notes".into(),
                });
            }
            let raw: &[u8] = match request.method {
                Some(_) => br#"{"n":1.00, "contents":[]}"#,
                None => br#"{"content":[]}"#,
            };
            Ok(UpstreamAnswer::result(Bytes::from_static(raw)))
        }
        .boxed()
    });
    scripted.offer(
        &[
            r#"{"uri":"file:///b.txt","name":"b", "size":1.0}"#,
            r#"{"uri":"file:///a.txt","name":"a"}"#,
            r#"{"uri":"secret://x","name":"x"}"#,
        ],
        &[r#"{"uriTemplate":"file:///{name}","name":"any"}"#],
        &[r#"{"name":"greet"}"#, r#"{"name":"hidden"}"#],
    );
    scripted
}

impl Rig {
    pub(super) async fn start(rules: &str) -> Self {
        let (plane, clock, dir) = (Plane::start(), Clock::manual(), tempfile::tempdir().unwrap());
        let spool = Spool::open(&spool::Options {
            sync: spool::SyncMode::Process,
            clock: clock.clone(),
            ..spool::Options::new(dir.path().join("records"))
        })
        .unwrap();
        let mut options = Options::new(Link::Channel(plane.channel()), dir.path());
        options.clock = clock.clone();
        options.join = Some(JoinProof::Token(Secret::new("join me")));
        let control = Control::start(&options, spool.clone()).unwrap();
        let mut watch = plane.watch().await;
        let ping = watch.ping().await;
        watch
            .tell(State::of([policy(rules, 1)]).full(revision(1, 1)))
            .await;
        watch.ack().await;
        watch
            .tell(heartbeat(&ping, revision(1, 1), v1::StopSet::default()))
            .await;
        until("the lease is taken", || control.freshness() == Freshness::Fresh).await;
        let (forwarded, cancelled) = (Arc::default(), Arc::default());
        let scripted = notes(&forwarded, &cancelled);
        let notices = scripted.notices.clone();
        let upstreams = Arc::new(Upstreams::scripted([scripted]));
        let (gate, routes) = routes(&control, &spool, upstreams, &clock).await;
        Self {
            plane,
            clock,
            gate,
            routes,
            watch: AsyncMutex::new(watch),
            number: 1,
            spool,
            forwarded,
            cancelled,
            notices,
            _dir: dir,
        }
    }

    pub(super) fn post<'a>(&self, path: &'a str, body: &str) -> impl Future<Output = (u16, Value)> + use<'a> {
        post(self.routes.clone(), path, body)
    }

    pub(super) async fn mcp(&self, headers: &[(&str, &str)], body: &str) -> Response {
        let mut request = Request::post("/mcp").header("host", "localhost");
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header("authorization", "Bearer agent:a");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.routes.clone().oneshot(request).await.unwrap()
    }

    /// The upstream notifies.
    pub(super) fn notify(&self, notice: Notice) {
        assert!(self.notices.send(notice).is_ok(), "nobody follows the upstream");
    }

    /// What the upstream was asked, one line each.
    pub(super) fn forwarded(&self) -> Vec<String> {
        self.forwarded.lock().unwrap().clone()
    }

    pub(super) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }

    pub(super) fn records(&self) -> u64 {
        assert_eq!(self.spool.status().open_intents, 0);
        self.spool.status().high_water
    }

    pub(super) async fn stop(&self, scope: v1::stop::Scope) {
        let stops = v1::StopSet {
            sequence: 1,
            stops: vec![v1::Stop {
                id: "stop".into(),
                sequence: 1,
                scope: Some(scope),
                ..v1::Stop::default()
            }],
        };
        let told = message(v1::watch_response::Message::Stops(stops));
        self.watch.lock().await.tell(told).await;
    }

    /// The policy has these rules from the next revision on.
    pub(super) async fn edit(&mut self, rules: &str) {
        self.number += 1;
        let state = State::of([policy(rules, self.number)]);
        let mut watch = self.watch.lock().await;
        watch.tell(state.full(revision(1, self.number))).await;
        watch.ack().await;
    }

    /// The upstream declares these tools from now on.
    pub(super) fn declare(&self, tools: &[&str]) {
        let declared = |text: &&str| DeclaredTool {
            name: serde_json::from_str::<Value>(text).unwrap()["name"]
                .as_str()
                .unwrap()
                .into(),
            declared: serde_json::value::RawValue::from_string((*text).to_owned())
                .unwrap()
                .into(),
        };
        self.gate.registry().take(&DeclaredCatalogue {
            is_read: true,
            tools: tools.iter().map(declared).collect(),
            ..DeclaredCatalogue::unread("notes".into())
        });
    }

    /// Resolves the approval that the call in flight waits for.
    pub(super) async fn resolve(&self, status: Wire) -> ApprovalFeed {
        let (asked, feed) = self.plane.approvals().await;
        let id = asked.ids.first().cloned().unwrap_or_default();
        feed.send(Ok(approval(&id, status, 7))).await.unwrap();
        feed
    }
}

async fn routes(
    control: &Control,
    spool: &Spool,
    upstreams: Arc<Upstreams>,
    clock: &Clock,
) -> (Arc<Gate>, Router) {
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let registry = Registry::new();
    registry.follow(&upstreams, &tasks, &stop);
    until("the tools are there", || registry.tools().len() == 4).await;
    let metrics = Arc::new(Metrics::new());
    let gate = Arc::new(Gate::new(Parts {
        control: control.clone(),
        spool: spool.clone(),
        registry,
        upstreams,
        local: LocalRules::default(),
        configured_agents: Vec::new(),
        metrics: Arc::clone(&metrics),
        clock: clock.clone(),
        shutdown: stop.clone(),
    }));
    tasks.spawn(Arc::clone(&gate).watch());
    let following = tasks.clone();
    let state = Arc::new(AgentState {
        gate: Arc::clone(&gate),
        identities: Identities::new(None, false),
        resource: ProtectedResource::default(),
        operators: None,
        sessions: Sessions::new(10, Duration::from_secs(1800), clock.clone()),
        rounds: Rounds::default(),
        hub: Hub::default(),
        calls: Calls::new(clock.clone()),
        own_tasks: OwnTasks::new(clock.clone()),
        tasks: Tasks::new(tasks),
        limits: arc_swap::ArcSwap::from_pointee(Limits::default()),
        names: Names::default(),
        metrics,
        shutdown: stop,
    });
    for upstream in gate.upstreams().all() {
        following.spawn(hub::follow(Arc::clone(&state), &upstream));
    }
    (gate, crate::agent::router(state, AllowedHosts::default()))
}

pub(super) fn post<'a>(
    routes: Router,
    path: &'a str,
    body: &str,
) -> impl Future<Output = (u16, Value)> + use<'a> {
    let body = Body::from(body.to_owned());
    async move {
        let request = Request::post(path)
            .header("host", "localhost")
            .header("authorization", "Bearer agent:a");
        let response = routes.oneshot(request.body(body).unwrap()).await.unwrap();
        (response.status().as_u16(), json_of(response).await)
    }
}

pub(super) async fn json_of(response: Response) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap_or(Value::Null)
}

/// Waits for a condition.
pub(super) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(10), waited).await;
    assert!(reached.is_ok(), "not reached: {what}");
}

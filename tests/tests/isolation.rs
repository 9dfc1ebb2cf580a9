//! Who sees and may do what: agents and sidecars open no operator path, and a namespace sees nothing of another.

use std::collections::BTreeSet;

use chain::record::SourceRecord;
use chain::source::SourceChain;
use chain::timestamp::Timestamp;
use chain::vocabulary::{Outcome, RecordKind};
use proto::v1::reports_request::Message as Report;
use proto::v1::watch_response::Message as Hear;
use proto::v1::{
    Binding, CancelApprovalRequest, ClaimRequest, DeclaredTool, OpenApprovalRequest, Opening, PublishRequest,
    Record, RecordBatch, ReportsRequest, WatchApprovalsRequest, catalogue_client::CatalogueClient,
    claim_response, pin_status,
};
use reqwest::Method;
use serde_json::{Value, json};
use tests::fleet::{Fleet, SidecarOptions, TOKEN};
use tests::operator::Operator;
use tests::process::Process;
use tests::programs::{built, checkout};
use tests::raw::RawSidecar;
use tests::wait;
use tonic::Code;

/// Credentials that do not end while a test uses them by hand.
const LASTING: &str = "credentials:\n  ttl: 1h\n";

/// Every guarded route of the operators' API, read from where it is put together, so that a new one is tested too.
fn operator_routes() -> Vec<(Method, String)> {
    let source = std::fs::read_to_string(checkout().join("control-plane/src/api/mod.rs")).unwrap();
    let public = ["/healthz", "/readyz", "/version"];
    let mut routes = Vec::new();
    for (word, method) in [
        (".get(", Method::GET),
        (".post(", Method::POST),
        (".put(", Method::PUT),
        (".patch(", Method::PATCH),
        (".delete(", Method::DELETE),
    ] {
        for route in source.split(word).skip(1) {
            let path = route
                .trim_start()
                .strip_prefix('"')
                .and_then(|rest| rest.split('"').next());
            let Some(path) = path.filter(|path| !public.contains(path)) else {
                continue;
            };
            let path = path.replace("{revision}", "latest").replace(['{', '}'], "");
            routes.push((method.clone(), path));
        }
    }
    let known = [
        "/policies/name",
        "/traces/export",
        "/sidecars/tokens",
        "/generation",
        "/metrics",
    ];
    for path in known {
        assert!(
            routes.iter().any(|(_, route)| route == path),
            "{path} is no route"
        );
    }
    assert!(routes.len() >= 55, "{}", routes.len());
    routes
}

async fn refused(operator: &Operator, credential: Option<&str>, method: &Method, path: &str) -> u16 {
    let request = match credential {
        Some(credential) => operator.with_token(credential).request(method.clone(), path),
        None => operator.anonymous(method.clone(), path),
    };
    let (status, body) = operator.try_send(request.json(&json!({"reason": "mine"}))).await;
    assert!([401, 403].contains(&status), "{method} {path}: {status} {body}");
    assert!(body["error"].is_string(), "{method} {path}: {body}");
    status
}

#[tokio::test]
async fn the_credentials_of_agents_and_sidecars_are_refused_on_every_operator_path() {
    let fleet = Fleet::on_sqlite(LASTING).await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("one")).await;
    let operator = fleet.operator();
    let all = vec!["*".to_owned()];
    let join_token = fleet.join_token("default", &all).await;
    let raw = RawSidecar::enrol(&fleet, &join_token, &all).await.unwrap();
    let before = operator.get("/traces?limit=1").await[0]["seq"].clone();
    let routes = operator_routes();
    for (method, path) in &routes {
        for agent in ["agent:one", "agent:*", "agent:operator"] {
            assert_eq!(
                refused(&operator, Some(agent), method, path).await,
                403,
                "{method} {path}"
            );
        }
        for stranger in [
            raw.credential(),
            &raw.enrolled.renewal_secret,
            &join_token,
            "guessed",
        ] {
            assert_eq!(
                refused(&operator, Some(stranger), method, path).await,
                401,
                "{method} {path}"
            );
        }
        assert_eq!(
            refused(&operator, None, method, path).await,
            401,
            "{method} {path}"
        );
    }
    assert_eq!(
        operator.get("/traces?limit=1").await[0]["seq"],
        before,
        "nothing was done"
    );
    assert_eq!(operator.get("/stops").await, json!([]));

    // On a sidecar there is no operator path, whoever asks.
    let own = BTreeSet::from(["/tools", "/health", "/metrics"]);
    let here = Operator::new(&sidecar.url, TOKEN, None);
    for (method, path) in routes.iter().filter(|(_, path)| !own.contains(path.as_str())) {
        for credential in ["agent:one", TOKEN] {
            let request = here.with_token(credential).request(method.clone(), path);
            let (status, body) = here.try_send(request).await;
            assert_eq!(status, 404, "{method} {path}: {body}");
        }
    }
}

#[tokio::test]
async fn an_agents_credential_is_refused_on_every_operator_path_of_one_machine() {
    let folder = tempfile::tempdir().unwrap();
    let port = tests::fleet::free_port();
    let file = folder.path().join("config.yaml");
    std::fs::write(
        &file,
        format!("port: {port}\ndata_dir: {}\n", folder.path().display()),
    )
    .unwrap();
    let mut command = std::process::Command::new(built("toolgate"));
    command
        .args(["up", "--config"])
        .arg(&file)
        .env("TOOLGATE_ADMIN_TOKEN", TOKEN);
    let mut up = Process::spawn(command, &folder.path().join("log"));
    let operator = Operator::new(&format!("http://127.0.0.1:{port}"), TOKEN, None);
    wait::until("both planes are up", || async {
        let ready = operator.try_send(operator.request(Method::GET, "/readyz")).await;
        (ready.0 == 200).then_some(())
    })
    .await;
    // Agents have these paths too, with answers of their own.
    let shared = BTreeSet::from(["/tools", "/health"]);
    let routes = operator_routes();
    for (method, path) in routes.iter().filter(|(_, path)| !shared.contains(path.as_str())) {
        assert_eq!(
            refused(&operator, Some("agent:one"), method, path).await,
            403,
            "{method} {path}"
        );
        assert_eq!(
            refused(&operator, None, method, path).await,
            401,
            "{method} {path}"
        );
    }
    assert!(up.terminate().success());
}

/// A fleet with a namespace `blue` that has one of everything, and a sidecar of it.
async fn blue(fleet: &Fleet) -> tests::fleet::Sidecar {
    let program = built("fixture-mcp");
    let sidecar = fleet
        .sidecar(&SidecarOptions {
            namespace: "blue".to_owned(),
            agents: vec!["blue-*".to_owned()],
            extra: format!(
                "mcp_servers:\n  - name: blue_server\n    transport: stdio\n    command: {}\n    args: [stdio, {}/blue-ran]\n",
                program.display(),
                fleet.folder.path().display()
            ),
            ..SidecarOptions::named("blue-sidecar")
        })
        .await;
    let operator = fleet.operator();
    let rules = "rules: [{tools: ['blue_server.write_item'], action: human_approval}, {tools: ['blue_server.*'], action: allow}]";
    let by_namespace = format!("name: blue-by-namespace\nnamespace: blue\nagent: '*'\n{rules}\n");
    let revision = operator.put_policy("blue-by-namespace", &by_namespace).await;
    // Raw sidecars acknowledge nothing, so the rollout is never complete.
    wait::until("the sidecar has applied its policy", || async {
        let rollout = operator.get(&format!("/rollouts/{revision}")).await;
        (rollout["applied"].as_u64() >= Some(1)).then_some(())
    })
    .await;
    let by_agent = format!("name: blue-by-agent\nagent: 'blue-*'\n{rules}\n");
    operator.put_policy("blue-by-agent", &by_agent).await;
    let grant = json!({"agent": "*", "tools": "blue_server.get_item", "duration": "1h", "namespace": "blue", "reason": "blue"});
    operator.post("/grants", grant).await;
    let stop = json!({"scope": "agent:blue-stopped", "namespace": "blue", "reason": "blue"});
    operator.post("/stops", stop).await;
    operator
        .post(
            "/stops",
            json!({"scope": "namespace:blue-other", "reason": "blue"}),
        )
        .await;
    wait::until("the upstream's tools are pinned", || async {
        let pins = operator.get("/tools/pins?all=true").await;
        (pins.as_array()?.len() == 4).then_some(())
    })
    .await;
    sidecar
}

async fn red(fleet: &Fleet) -> RawSidecar {
    let agents = vec!["red-*".to_owned()];
    let token = fleet.join_token("red", &agents).await;
    RawSidecar::enrol(fleet, &token, &agents).await.unwrap()
}

fn belongs_to_red(heard: &tests::raw::RawWatch) {
    for resource in heard.resources() {
        let body: Value = serde_json::from_slice(&resource.body).unwrap();
        match resource.r#type.as_str() {
            "policy" => assert!(resource.name.starts_with("red"), "{resource:?}"),
            "pin" | "grant" => assert_eq!(body["namespace"], "red", "{resource:?}"),
            "setting" => assert_eq!(resource.name, "fleet"),
            other => panic!("a resource of type {other}: {resource:?}"),
        }
    }
    let text = heard.text();
    let at = text.find("blue");
    assert!(
        at.is_none(),
        "{:?}",
        at.map(|at| &text[at.saturating_sub(200)..text.len().min(at + 200)])
    );
}

#[tokio::test]
async fn nothing_that_a_sidecar_receives_belongs_to_another_namespace() {
    let fleet = Fleet::on_sqlite(&format!("pin_tools: true\n{LASTING}")).await;
    let operator = fleet.operator();
    let red_policy =
        |name: &str| format!("name: {name}\nagent: 'red-*'\nrules: [{{tools: ['*'], action: allow}}]\n");
    operator.put_policy("red-first", &red_policy("red-first")).await;
    let red_one = red(&fleet).await;
    let mut early = red_one.watch().await;
    early
        .until("the first view", |message| matches!(message, Hear::Full(_)))
        .await;

    // What changes while it watches.
    let sidecar = blue(&fleet).await;
    operator.put_policy("red-second", &red_policy("red-second")).await;
    let grant = json!({"agent": "red-*", "tools": "x.y", "duration": "1h", "namespace": "red"});
    operator.post("/grants", grant).await;
    early
        .until("the grant of its namespace", |message| {
            tests::raw::resources(message)
                .iter()
                .any(|resource| resource.r#type == "grant")
        })
        .await;
    operator
        .post("/stops", json!({"scope": "namespace:red", "reason": "red drill"}))
        .await;
    let holds =
        |message: &Hear| matches!(message, Hear::Stops(set) if format!("{set:?}").contains("red drill"));
    early.until("the stop of its namespace", holds).await;
    early.ping().await;
    early
        .until("a heartbeat", |message| matches!(message, Hear::Heartbeat(_)))
        .await;
    let names: BTreeSet<String> = early
        .resources()
        .into_iter()
        .map(|resource| resource.name)
        .collect();
    assert!(
        names.contains("red-first") && names.contains("red-second"),
        "{names:?}"
    );
    belongs_to_red(&early);

    // What is there when it comes.
    let red_two = red(&fleet).await;
    let mut late = red_two.watch().await;
    late.ping().await;
    late.until("a heartbeat", |message| matches!(message, Hear::Heartbeat(_)))
        .await;
    assert!(late.text().contains("red-second") && late.text().contains("red drill"));
    belongs_to_red(&late);
    assert!(!format!("{:?}{:?}", red_one.enrolled, red_two.enrolled).contains("blue"));
    let blue_token = fleet.join_token("blue", &["blue-*".to_owned()]).await;
    let blue_raw = RawSidecar::enrol(&fleet, &blue_token, &[]).await.unwrap();
    assert_ne!(red_one.enrolled.digest_key, blue_raw.enrolled.digest_key);
    assert_eq!(red_one.enrolled.digest_key, red_two.enrolled.digest_key);

    // The other way round, the real sidecar of `blue` still serves its own, whom the stop of `red` does not concern.
    let called = sidecar
        .agent("blue-agent")
        .await
        .call("blue_server.get_item", json!({}))
        .await;
    assert!(called.is_ok(), "{}", called.answer);
    pins_of_one_namespace_say_nothing_about_another(&red_two).await;
}

async fn pins_of_one_namespace_say_nothing_about_another(red: &RawSidecar) {
    let publish = PublishRequest {
        upstream: "blue_server".to_owned(),
        tools: vec![DeclaredTool {
            name: "blue_server.get_item".to_owned(),
            fingerprint: vec![9; 32].into(),
            declared: br#"{"name":"get_item"}"#.as_slice().into(),
            kind: "mcp".to_owned(),
        }],
    };
    let mut client = CatalogueClient::new(red.channel.clone());
    let answer = client.publish(red.request(publish)).await.unwrap().into_inner();
    assert_eq!(answer.pins.len(), 1, "{answer:?}");
    assert_eq!(
        answer.pins[0].status(),
        pin_status::Status::Pinned,
        "first seen in its namespace"
    );
}

#[tokio::test]
async fn approvals_of_another_namespace_cannot_be_seen_joined_claimed_or_cancelled() {
    let fleet = Fleet::on_sqlite(LASTING).await;
    let sidecar = blue(&fleet).await;
    let operator = fleet.operator();
    let agent = sidecar.stateless_agent("blue-agent");
    let asked = agent.call_modern("blue_server.write_item", json!({"n": 1})).await;
    let id = asked.decision()["approval_id"].as_str().unwrap().to_owned();
    operator
        .post(&format!("/approvals/{id}/approve"), json!({}))
        .await;

    let red = red(&fleet).await;
    let binding = |agent: &str| Binding {
        agent: agent.to_owned(),
        tool: "blue_server.write_item".to_owned(),
        fingerprint: vec![1; 32].into(),
        arguments_digest: vec![2; 32].into(),
        digest_key_id: red.enrolled.digest_key_id.clone(),
        ..Binding::default()
    };
    let watch = WatchApprovalsRequest {
        after: 1,
        ids: vec![id.clone()],
    };
    let stream = red.approvals().watch(red.request(watch)).await;
    let claim = ClaimRequest {
        id: id.clone(),
        call_id: "stolen".to_owned(),
        binding: Some(binding("red-1")),
    };
    match red.approvals().claim(red.request(claim)).await {
        Ok(answer) => match answer.into_inner().outcome.unwrap() {
            claim_response::Outcome::Refused(refusal) => assert_eq!(refusal.code, "not_found"),
            claim_response::Outcome::Claimed(claimed) => panic!("claimed: {claimed:?}"),
        },
        Err(status) => assert_eq!(status.code(), Code::NotFound, "{status}"),
    }
    let cancel = CancelApprovalRequest {
        id: id.clone(),
        call_id: "stolen".to_owned(),
    };
    let cancelled = red.approvals().cancel(red.request(cancel)).await.unwrap_err();
    assert_eq!(cancelled.code(), Code::NotFound, "{cancelled}");
    let open = |agent: &str| OpenApprovalRequest {
        call_id: format!("call of {agent}"),
        binding: Some(binding(agent)),
        params: b"{}".as_slice().into(),
        classification: b"{}".as_slice().into(),
        identity: "asserted".to_owned(),
        ..OpenApprovalRequest::default()
    };
    let foreign = red
        .approvals()
        .open(red.request(open("blue-agent")))
        .await
        .unwrap_err();
    assert_eq!(foreign.code(), Code::PermissionDenied, "{foreign}");
    let own = red
        .approvals()
        .open(red.request(open("red-1")))
        .await
        .unwrap()
        .into_inner();
    assert_ne!(own.id, id);
    operator
        .post(&format!("/approvals/{}/deny", own.id), json!({}))
        .await;
    if let Ok(stream) = stream {
        let mut stream = stream.into_inner();
        loop {
            let state = tokio::time::timeout(wait::PATIENCE, stream.message())
                .await
                .unwrap();
            let Ok(Some(state)) = state else {
                panic!("{state:?}")
            };
            assert_ne!(state.id, id, "an approval of another namespace: {state:?}");
            if state.id == own.id && state.resolved_at > 0 {
                break;
            }
        }
    }
    // It is still there for whom it was given.
    let called = agent.call_modern("blue_server.write_item", json!({"n": 1})).await;
    assert!(called.is_ok(), "{}", called.answer);
}

/// The next record of the sidecar's own chain, about a call of `agent` in `namespace`.
fn batch(chain: &mut SourceChain, namespace: &str, agent: &str) -> RecordBatch {
    let time = Timestamp::from_micros(1_700_000_000_000_000);
    let id = format!("00000000-0000-7000-8000-{:012}", chain.last());
    let mut record = SourceRecord::new(id, time, RecordKind::Call, namespace.to_owned(), Outcome::Ok);
    record.agent = Some(agent.to_owned());
    record.tool = Some("forged.tool".into());
    let sealed = chain.seal(&mut record).unwrap();
    RecordBatch {
        epoch: chain.epoch(),
        records: vec![Record {
            n: sealed.n,
            source: sealed.text.into_bytes().into(),
            payload: Vec::new().into(),
        }],
    }
}

/// What became of a batch: how far records were committed, or why the stream was ended.
async fn reported(red: &RawSidecar, batch: RecordBatch) -> Result<u64, tonic::Status> {
    let through = batch.records.last().map_or(0, |record| record.n);
    let opening = Opening {
        epochs: vec![red.enrolled.epoch],
    };
    let messages = [Report::Opening(opening), Report::Batch(batch)].map(|message| ReportsRequest {
        message: Some(message),
    });
    let (say, said) = tokio::sync::mpsc::channel(4);
    for message in messages {
        say.send(message).await.unwrap();
    }
    let request = red.request(tokio_stream::wrappers::ReceiverStream::new(said));
    let mut stream = red.reports().stream(request).await?.into_inner();
    loop {
        let Some(answer) = stream.message().await? else {
            panic!("the stream ended without a reason");
        };
        if let Some(mark) = answer.watermarks.iter().find(|mark| mark.committed >= through) {
            return Ok(mark.committed);
        }
    }
}

#[tokio::test]
async fn records_of_a_foreign_namespace_or_agent_are_refused_and_not_stored() {
    let fleet = Fleet::on_sqlite(LASTING).await;
    let operator = fleet.operator();
    let red = red(&fleet).await;
    let mut chain = SourceChain::new(red.enrolled.sidecar_id.clone(), red.enrolled.epoch);
    for (namespace, agent) in [
        ("blue", "red-1"),
        ("red", "blue-1"),
        ("blue", "blue-1"),
        ("default", "red-1"),
    ] {
        let forged = batch(&mut chain, namespace, agent);
        let n = chain.last();
        // Its number is taken, so that it holds up nothing; what is stored in its place says that it was refused.
        assert_eq!(reported(&red, forged).await.unwrap(), n, "{namespace} {agent}");
    }
    assert_eq!(operator.get("/traces?tool=forged.tool").await, json!([]));
    let refused = operator.records("tool=mesh.record_refused", 4).await;
    for record in &refused {
        assert_eq!(record["namespace"], json!("red"), "{record}");
    }
    let own = batch(&mut chain, "red", "red-1");
    assert_eq!(reported(&red, own).await.unwrap(), 5);
    let stored = operator.records("tool=forged.tool", 1).await;
    assert_eq!(
        (&stored[0]["namespace"], &stored[0]["agent_id"]),
        (&json!("red"), &json!("red-1"))
    );

    let wide = fleet.join_token("red", &["red-*".to_owned()]).await;
    let refused = RawSidecar::enrol(&fleet, &wide, &["*".to_owned()])
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
}

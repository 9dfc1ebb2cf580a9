//! The way out: a proxy of the configuration, and authorities that are replaced while programs run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

use std::process::Command;
use std::time::Duration;

use net::clock::Clock;
use net::outbound::testing::TestProxy;
use net::token::testing::{SigningKey, TestProvider};
use serde_json::{Value, json};
use tests::fleet::{Fleet, SidecarOptions};
use tests::process::Process;
use tests::programs::built;
use tests::rest::Rest;
use tests::up::{Up, folder};
use tests::wait;

const POLICY: &str = "name: everybody\nagent: '*'\nrules:\n  - tools: ['*']\n    action: allow\n";
/// An address inside a network that only the proxy knows the way to.
const INSIDE: &str = "10.255.0.1";

/// The same place, as it is called in the network behind the proxy.
fn inside(url: &str) -> String {
    url.replace("127.0.0.1", INSIDE)
}

/// The address of a tunnel to a place of this machine.
fn tunnel(url: &str) -> String {
    let rest = url.strip_prefix("http://127.0.0.1:").unwrap();
    let port = rest.split('/').next().unwrap();
    format!("{INSIDE}:{port}")
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_servers_and_services_of_the_configuration_are_reached_through_the_proxy() {
    let proxy = TestProxy::start(Some("gate:hunter2")).await;
    let key = SigningKey::p256("k");
    let provider = TestProvider::start(0, &[&key]).await;
    let document = json!({
        "openapi": "3.0.3", "info": {"title": "Things", "version": "1"},
        "paths": {"/things": {"get": {"operationId": "things", "responses": {"200": {"description": "ok"}}}}},
    });
    let rest = Rest::start(&document.to_string()).await;
    let own = folder();
    let mut command = Command::new(built("fixture-mcp"));
    command.arg("http").arg(own.path().join("ran"));
    let fixture = Process::spawn(command, &own.path().join("log"));
    let server = wait::until("the server says where it is", || async {
        let log = fixture.log();
        log.lines()
            .find(|line| line.starts_with("http://"))
            .map(str::to_owned)
    })
    .await;

    let yaml = format!(
        "outbound:\n  proxy: http://gate:hunter2@{proxy}\n  no_proxy: [svc.cluster.local, 192.168.0.0/16]\n\
         auth:\n  jwt: {{jwks_url: '{keys}', issuer: 'https://issuer.example', audience: toolgate}}\n\
         mcp_servers:\n  - {{name: notes, transport: streamable-http, url: '{server}'}}\n\
         openapi:\n  - {{name: things, url: '{document}'}}\n\
         policies:\n  - {{name: all, agent: '*', rules: [{{tools: ['*'], action: allow}}]}}\n",
        proxy = proxy.address(),
        keys = inside(&provider.url()),
        server = inside(&server),
        document = inside(&format!("{}/openapi", rest.url)),
    );
    let up = Up::start(&yaml).await;
    let exp = Clock::machine().wall_micros() / 1_000_000 + 600;
    let token =
        key.token(&json!({"iss": "https://issuer.example", "aud": "toolgate", "exp": exp, "sub": "billing"}));
    let http = tests::operator::client(None);
    for (tool, arguments) in [("notes.get_item", json!({"id": 1})), ("things.things", json!({}))] {
        let call = http.post(format!("{}/tool/{tool}", up.url)).bearer_auth(&token);
        let answer = call.json(&arguments).send().await.unwrap();
        let (status, body) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, 200, "{tool}: {body}");
    }
    assert_eq!(rest.asked().len(), 1);
    assert!(
        rest.last().header("proxy-authorization").is_none(),
        "the login is the proxy's own"
    );
    let tunnels = proxy.tunnels();
    for url in [&provider.url(), &server, &rest.url] {
        assert!(tunnels.contains(&tunnel(url)), "{url}: {tunnels:?}");
    }
    assert!(
        tunnels.iter().all(|target| target.starts_with(INSIDE)),
        "{tunnels:?}"
    );
    assert!(!up.process.log().contains("hunter2"));
    let records: Value = up.operator().get("/traces?limit=100").await;
    assert!(!records.to_string().contains("hunter2"));
    provider.stop().await;
    proxy.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_authority_of_the_control_plane_is_trusted_by_sidecars_that_run() {
    let mut fleet = Fleet::on_sqlite("").await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("one")).await;
    let revision = fleet.operator().put_policy("everybody", POLICY).await;
    fleet.operator().applied(&revision, 1).await;

    let replaced = net::tls::self_signed(&["localhost", "127.0.0.1"], Duration::from_secs(3600)).unwrap();
    replaced.write(fleet.folder.path()).unwrap();
    fleet.restart_plane(0).await;
    let operator = fleet.operator();
    let revision = operator
        .put_policy("everybody", &POLICY.replace("allow", "deny"))
        .await;
    operator.applied(&revision, 1).await;
    let agent = sidecar.stateless_agent("x");
    let (status, body) = agent.rest("fixture.get_item", json!({"id": 1})).await;
    assert_eq!(status, 403, "{body}");
}

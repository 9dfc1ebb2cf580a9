//! Who is calling: tokens of an identity provider and of a cluster, right ones and every kind of wrong one, at every entrance.

mod requests;

use std::time::Duration;

use net::clock::Clock;
use net::token::testing::{SigningKey, TestProvider, hmac, unsigned};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tests::agent::LEGACY;
use tests::fleet::{Fleet, SidecarOptions, free_port};
use tests::operator::Operator;
use tests::process::Process;
use tests::programs::built;
use tests::up::Up;
use tests::wait;

const OPEN: &str = r#"
policies:
  - name: open
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
"#;
const ISSUER: &str = "https://issuer.example";
const CLUSTER: &str = "https://cluster.example";
const TOOL: &str = "/tool/fixture.get_item";

fn now() -> i64 {
    Clock::machine().wall_micros() / 1_000_000
}

fn auth(url: &str, more: &str) -> String {
    format!(
        "auth:\n  jwt: {{jwks_url: '{url}', issuer: '{ISSUER}', audience: toolgate, agent_claim: act.sub, user_claim: sub{more}}}\n"
    )
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": ["toolgate"], "exp": now() + 600, "sub": "ann", "act": {"sub": "billing"}})
}

fn claims_with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

/// A request of one entrance that would be served with a right credential, or without any.
fn entrances(http: &reqwest::Client, url: &str) -> Vec<(&'static str, RequestBuilder)> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fixture.get_item", "arguments": {"id": 1}}});
    let request = |method: Method, path: &str| {
        let request = http.request(method, format!("{url}{path}"));
        request.header("Accept", "application/json, text/event-stream")
    };
    vec![
        ("REST", request(Method::POST, TOOL).json(&json!({"id": 1}))),
        (
            "decide",
            request(Method::POST, "/decide").json(&json!({"tool": "fixture.get_item"})),
        ),
        ("MCP", request(Method::POST, "/mcp").json(&message)),
        ("tools", request(Method::GET, "/tools")),
        ("servers", request(Method::GET, "/mcp-servers")),
        ("stream", request(Method::GET, "/mcp")),
        ("end", request(Method::DELETE, "/mcp")),
    ]
}

/// Credentials that prove nothing, each with why.
fn wrong(key: &SigningKey, rsa: &SigningKey, foreign: &SigningKey) -> Vec<(&'static str, String)> {
    let header = |algorithm: &str, id: &str| json!({"alg": algorithm, "typ": "JWT", "kid": id});
    let text = claims().to_string();
    let twice = format!(r#"{{"act":{{"sub":"root"}},{}"#, text.trim_start_matches('{'));
    let good = key.token(&claims());
    let changed = key.token(&claims_with("act", json!({"sub": "root"})));
    let (signed, signature) = (
        changed.rsplit_once('.').unwrap().0,
        good.rsplit_once('.').unwrap().1,
    );
    vec![
        ("expired", key.token(&claims_with("exp", json!(now() - 31)))),
        ("not valid yet", key.token(&claims_with("nbf", json!(now() + 60)))),
        ("without an end", key.token(&claims_with("exp", json!(null)))),
        ("another audience", key.token(&claims_with("aud", json!("other")))),
        (
            "another issuer",
            key.token(&claims_with("iss", json!("https://evil.example"))),
        ),
        ("no agent", key.token(&claims_with("act", json!({})))),
        (
            "an agent called anonymous",
            key.token(&claims_with("act", json!({"sub": "anonymous"}))),
        ),
        ("no algorithm", unsigned(&header("none", "k"), &claims())),
        (
            "HMAC under the public key",
            hmac(&header("HS256", "r"), &claims(), &rsa.public_bytes()),
        ),
        (
            "HMAC said to be RSA",
            hmac(&header("RS256", "r"), &claims(), &rsa.public_bytes()),
        ),
        ("a foreign key of the same id", foreign.token(&claims())),
        ("an unknown key", SigningKey::p256("nobody's").token(&claims())),
        (
            "an algorithm of another key",
            key.signed(&header("RS256", "k"), &text),
        ),
        ("a changed claim", format!("{signed}.{signature}")),
        ("a key said twice", key.signed(&header("ES256", "k"), &twice)),
        (
            "oversized",
            key.token(&claims_with("pad", json!("x".repeat(8192)))),
        ),
        (
            "another type",
            key.signed(&json!({"alg": "ES256", "kid": "k", "typ": "logout+jwt"}), &text),
        ),
        ("no token", "not.a.token".to_owned()),
        ("a plain name", "agent:billing".to_owned()),
    ]
}

#[tokio::test]
async fn every_wrong_credential_is_401_at_every_entrance_and_recorded() {
    let (key, rsa, foreign) = (SigningKey::p256("k"), SigningKey::rsa("r"), SigningKey::p256("k"));
    let provider = TestProvider::start(0, &[&key, &rsa]).await;
    let up = Up::start(&format!("{OPEN}{}", auth(&provider.url(), ""))).await;
    let http = tests::operator::client(None);
    let mut refused = 0;
    for (case, credential) in wrong(&key, &rsa, &foreign) {
        for (entrance, request) in entrances(&http, &up.url) {
            let response = request.bearer_auth(&credential).send().await.unwrap();
            assert_eq!(response.status(), 401, "{case} at {entrance}");
            let challenge = response.headers()["www-authenticate"]
                .to_str()
                .unwrap()
                .to_owned();
            assert!(
                challenge.contains("error=\"invalid_token\"") && challenge.contains("resource_metadata=\""),
                "{case} at {entrance}: {challenge}"
            );
            let body = response.text().await.unwrap();
            assert!(
                !body.contains(&credential) || credential.len() < 20,
                "{case} at {entrance}: {body}"
            );
            refused += 1;
        }
    }
    assert!(up.ran().is_empty(), "{:?}", up.ran());
    let records = wait::until("every refusal has its record", || async {
        let records = up.operator().all_records("").await;
        let found: Vec<Value> = records
            .into_iter()
            .filter(|record| record["reason"] == "unauthenticated")
            .collect();
        (found.len() >= refused).then_some(found)
    })
    .await;
    assert_eq!(records.len(), refused);
    for record in &records {
        assert_eq!(
            (&record["outcome"], &record["identity"]),
            (&json!("denied"), &json!("anonymous")),
            "{record}"
        );
        assert!(
            record["agent_id"].as_str().unwrap_or_default().is_empty(),
            "no agent is proven: {record}"
        );
    }
    assert!(records.iter().any(|record| record["tool"] == "fixture.get_item"));

    // The same requests are served with a right credential.
    let token = key.token(&claims());
    for (entrance, request) in entrances(&http, &up.url).into_iter().take(5) {
        let response = request.bearer_auth(&token).send().await.unwrap();
        assert_eq!(response.status(), 200, "{entrance}");
    }
    provider.stop().await;
}

#[tokio::test]
async fn a_token_calls_as_its_agent_for_its_human_and_sessions_are_of_both() {
    let key = SigningKey::ed25519("k");
    let provider = TestProvider::start(0, &[&key]).await;
    let url = provider.url();
    let cluster = format!(
        "  service_accounts: {{jwks_url: '{url}', issuer: '{CLUSTER}'}}\n  agents: {{'system:serviceaccount:prod:mail': mail}}\n"
    );
    let up = Up::start(&format!("{OPEN}{}{cluster}", auth(&url, ""))).await;
    let http = tests::operator::client(None);
    let call = async |token: &str| {
        let request = http.post(format!("{}{TOOL}", up.url)).bearer_auth(token);
        request
            .json(&json!({"id": 1}))
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    let pod = json!({"iss": CLUSTER, "aud": ["toolgate-agent"], "exp": now() + 600, "sub": "system:serviceaccount:prod:mail"});
    assert_eq!(call(&key.token(&claims())).await, 200);
    assert_eq!(call(&key.token(&pod)).await, 200);
    let records = up.operator().records("tool=fixture.get_item", 2).await;
    let of = |agent: &str| {
        let found = records.iter().find(|record| record["agent_id"] == agent);
        found.unwrap_or_else(|| panic!("no record of {agent}: {records:#?}"))
    };
    assert_eq!(
        (&of("billing")["identity"], &of("billing")["user_id"]),
        (&json!("verified"), &json!("ann"))
    );
    assert_eq!(
        (&of("mail")["identity"], &of("mail")["user_id"]),
        (&json!("verified"), &Value::Null)
    );

    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let post = |token: &str, message: &Value| {
        let request = http
            .post(format!("{}/mcp", up.url))
            .bearer_auth(token)
            .json(message);
        request.header("Accept", "application/json, text/event-stream")
    };
    let ann = key.token(&claims());
    let begun = post(&ann, &initialize).send().await.unwrap();
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    for (claims, expected) in [
        (claims(), 200),
        (claims_with("jti", json!("a newer token of the same")), 200),
        (claims_with("sub", json!("bob")), 404),
        (claims_with("act", json!({"sub": "mail"})), 404),
        (pod, 404),
    ] {
        let request = post(&key.token(&claims), &list).header("Mcp-Session-Id", &session);
        assert_eq!(request.send().await.unwrap().status(), expected, "{claims}");
    }
    let anonymous = http.post(format!("{}/mcp", up.url)).json(&list);
    let anonymous = anonymous.header("Mcp-Session-Id", &session).send().await.unwrap();
    assert_eq!(anonymous.status(), 404);
    provider.stop().await;
}

#[tokio::test]
async fn keys_that_are_rotated_are_followed_and_withdrawn_ones_end_their_tokens() {
    let (old, new) = (SigningKey::p256("old"), SigningKey::p384("new"));
    let provider = TestProvider::start(0, &[&old]).await;
    let up = Up::start(&format!("{OPEN}{}", auth(&provider.url(), ""))).await;
    let http = tests::operator::client(None);
    let call = async |token: &str| {
        let request = http.post(format!("{}{TOOL}", up.url)).bearer_auth(token);
        request
            .json(&json!({"id": 1}))
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    let (old_token, new_token) = (old.token(&claims()), new.token(&claims()));
    assert_eq!(call(&old_token).await, 200);
    provider.publish(&[&new]);
    wait::until("the new key is known", || async {
        (call(&new_token).await == 200).then_some(())
    })
    .await;
    assert_eq!(call(&old_token).await, 401);
    let asked = provider.asked();
    // The provider goes away: what is known stays.
    provider.stop().await;
    assert_eq!(call(&new_token).await, 200);
    assert_eq!(call(&new.token(&claims_with("jti", json!(1)))).await, 200);
    assert!(asked <= 3, "asked {asked} times");
}

#[tokio::test]
async fn a_sidecar_whose_provider_is_away_at_the_start_is_not_ready_until_it_is_back() {
    let key = SigningKey::p256("k");
    let port = free_port();
    let fleet = Fleet::on_sqlite("").await;
    let options = SidecarOptions {
        extra: format!(
            "{}  require_authentication: true\n",
            auth(
                &format!("http://127.0.0.1:{port}/jwks.json"),
                ", allow_legacy: true"
            )
        ),
        ..SidecarOptions::named("one")
    };
    let log = fleet.folder.path().join("one/log");
    let yaml = fleet.folder.path().join("one/sidecar.yaml");
    let http = tests::operator::client(None);
    let ready = async |url: &str| {
        let response = http.get(format!("{url}/readyz")).send().await.ok()?;
        Some((response.status().as_u16(), response.json::<Value>().await.ok()?))
    };
    let comes_back = async {
        wait::until("the log says that there are no keys", || async {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.contains("no token can be verified").then_some(())
        })
        .await;
        let text = std::fs::read_to_string(&yaml).unwrap();
        let address = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("agent: "))
            .unwrap()
            .to_owned();
        let url = format!("http://{address}");
        let (status, body) = wait::until("the sidecar answers", || ready(&url)).await;
        assert_eq!(status, 503, "{body}");
        assert_eq!(body["issuers_without_keys"][0]["issuer"], ISSUER, "{body}");
        let token = key.token(&claims());
        let call = http
            .post(format!("{url}{TOOL}"))
            .bearer_auth(token)
            .json(&json!({"id": 1}));
        let answer = wait::until("the sidecar has enrolled", || async {
            let answer = call.try_clone()?.send().await.ok()?;
            let status = answer.status().as_u16();
            let text = answer.text().await.ok()?;
            text.contains("keys could not be fetched")
                .then_some((status, text))
        })
        .await;
        assert_eq!(answer.0, 503, "{}", answer.1);
        TestProvider::start(port, &[&key]).await
    };
    let (sidecar, provider) = tokio::join!(fleet.sidecar(&options), comes_back);
    let (status, body) = ready(&sidecar.url).await.unwrap();
    assert_eq!(
        (status, &body["issuers_without_keys"]),
        (200, &json!([])),
        "{body}"
    );

    // Nobody is served without a credential, and is told where to get one.
    for (entrance, request) in entrances(&http, &sidecar.url) {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401, "{entrance}");
        let challenge = response.headers()["www-authenticate"].to_str().unwrap();
        assert!(!challenge.contains("invalid_token"), "{entrance}: {challenge}");
        let metadata = challenge.split('"').nth(1).unwrap();
        let told: Value = http.get(metadata).send().await.unwrap().json().await.unwrap();
        assert_eq!(
            told["authorization_servers"],
            json!([ISSUER]),
            "{entrance}: {told}"
        );
        let expected = if metadata.ends_with("/mcp") {
            format!("{}/mcp", sidecar.url)
        } else {
            sidecar.url.clone()
        };
        assert_eq!(told["resource"], expected, "{entrance}");
    }
    // Policy, not identity, decides what is forbidden.
    let token = key.token(&claims());
    let call = http
        .post(format!("{}{TOOL}", sidecar.url))
        .bearer_auth(token)
        .json(&json!({"id": 1}));
    assert_eq!(call.send().await.unwrap().status(), 403);
    provider.stop().await;
}

#[tokio::test]
async fn a_client_certificate_calls_as_its_agent() {
    let folder = tests::up::folder();
    let made = net::tls::self_signed(&["localhost"], Duration::from_secs(3600)).unwrap();
    let (ca, files) = made.write(folder.path()).unwrap();
    let port = free_port();
    let yaml = format!(
        "port: {port}\ntls: {{cert_file: {cert}, key_file: {key}, client_ca_file: {ca}}}\n\
         auth:\n  require_authentication: true\n  agents: {{localhost: billing}}\n\
         mcp_servers:\n  - name: fixture\n    transport: stdio\n    command: {fixture}\n    args: [stdio, {folder}/ran]\n{OPEN}",
        cert = files.cert_file.display(),
        key = files.key_file.display(),
        ca = ca.display(),
        fixture = built("fixture-mcp").display(),
        folder = folder.path().display(),
    );
    std::fs::write(folder.path().join("toolgate.yaml"), yaml).unwrap();
    let mut command = tests::up::toolgate(&["up"]);
    command.arg("--config").arg(folder.path().join("toolgate.yaml"));
    command.arg("--data-dir").arg(folder.path().join("state"));
    let _up = Process::spawn(command, &folder.path().join("log"));

    let url = format!("https://localhost:{port}");
    let known = net::tls::client_config_with_identity(Some(&ca), &files.cert_file, &files.key_file).unwrap();
    let known = reqwest::Client::builder()
        .tls_backend_preconfigured(known)
        .no_proxy()
        .build()
        .unwrap();
    wait::until("the upstream is connected", || async {
        let servers = known.get(format!("{url}/mcp-servers")).send().await.ok()?;
        let servers: Value = servers.json().await.ok()?;
        (servers[0]["state"] == "connected").then_some(())
    })
    .await;
    let call = |http: &reqwest::Client| http.post(format!("{url}{TOOL}")).json(&json!({"id": 1}));
    assert_eq!(call(&known).send().await.unwrap().status(), 200);
    assert_eq!(
        call(&known)
            .bearer_auth("agent:billing")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    assert_eq!(
        call(&known)
            .bearer_auth("agent:mail")
            .send()
            .await
            .unwrap()
            .status(),
        401
    );
    let stranger = tests::operator::client(Some(&ca));
    assert_eq!(call(&stranger).send().await.unwrap().status(), 401);

    let token = std::fs::read_to_string(folder.path().join("state/admin-token")).unwrap();
    let operator = Operator::new(&url, token.trim(), Some(&ca));
    let records = operator.records("agent=billing", 2).await;
    for record in records {
        assert_eq!(
            (&record["identity"], &record["outcome"]),
            (&json!("verified"), &json!("ok")),
            "{record}"
        );
    }
}

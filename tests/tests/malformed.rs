//! What clients send that is no request gets a refusal, and both planes serve on.

use reqwest::Method;
use serde_json::{Value, json};
use tests::agent::Agent;
use tests::up::Up;

const OPEN: &str = r#"
policies:
  - name: open
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
"#;

/// One request that is none.
struct Odd {
    method: &'static str,
    path: &'static str,
    content_type: Option<&'static str>,
    body: Vec<u8>,
}

fn odd(method: &'static str, path: &'static str, body: impl Into<Vec<u8>>) -> Odd {
    Odd {
        method,
        path,
        content_type: Some("application/json"),
        body: body.into(),
    }
}

/// Bodies that no endpoint takes for a request.
fn bodies() -> Vec<Vec<u8>> {
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let nested = format!("{}1{}", r#"{"a":"#.repeat(20_000), "}".repeat(20_000));
    vec![
        b"{".to_vec(),
        b"nonsense".to_vec(),
        b"[]".to_vec(),
        b"[[[]]]".to_vec(),
        b"\"text\"".to_vec(),
        b"12".to_vec(),
        b"null".to_vec(),
        br#"{"a":1,"a":2}"#.to_vec(),
        br#"{"unheard_of":true}"#.to_vec(),
        br#"{"tool":1,"tool":2,"arguments":[]}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":{},"method":7}"#.to_vec(),
        br#"{"jsonrpc":"1.0","id":1,"method":"tools/call"}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":[],"arguments":"x"}}"#.to_vec(),
        br#"{"text":"\ud800"}"#.to_vec(),
        b"{\"a\":\"\xff\xfe\"}".to_vec(),
        b"\x00\x01\x02".to_vec(),
        deep.into_bytes(),
        nested.into_bytes(),
        br#"{"a":1e999999999999,"b":-0.0000000000001}"#.to_vec(),
    ]
}

fn paths_of_agents() -> Vec<(&'static str, &'static str)> {
    vec![
        ("POST", "/mcp"),
        ("POST", "/decide"),
        ("POST", "/tool/nobody.knows"),
    ]
}

fn paths_of_operators() -> Vec<(&'static str, &'static str)> {
    vec![
        ("PUT", "/policies/odd"),
        ("POST", "/policies/open/rollback"),
        ("POST", "/grants"),
        ("POST", "/stops"),
        ("POST", "/sidecars/tokens"),
        ("POST", "/tools/pins/accept"),
        ("POST", "/approvals/ffff/approve"),
        ("PUT", "/settings/fleet"),
    ]
}

/// Paths, methods and types that nobody serves.
fn strangers() -> Vec<Odd> {
    let mut all = vec![
        odd("BREW", "/mcp", ""),
        odd("TRACE", "/policies", ""),
        odd("PATCH", "/grants", "{}"),
        odd("POST", "/traces", "{}"),
        odd("GET", "/nothing/here", ""),
        odd("GET", "/tool/", ""),
        odd("POST", "/tool/%00", "{}"),
        odd("POST", "/tool/%ff%fe", "{}"),
        odd("POST", "/tool/a%2F..%2Fb", "{}"),
        odd("GET", "/traces?limit=-1", ""),
        odd("GET", "/traces?limit=99999999999999999999", ""),
        odd("GET", "/traces?cursor=%00%ff", ""),
        odd("GET", "/traces?nonsense=1", ""),
        odd("GET", "/traces?since=yesterday", ""),
        odd("GET", "/traces/%00", ""),
        odd("GET", "/traces/verify?x=1", ""),
        odd("GET", "/traces/export?from=x", ""),
        odd("GET", "/approvals?status=perhaps", ""),
        odd("GET", "/approvals/%00", ""),
        odd("GET", "/rollouts/x.y", ""),
        odd("GET", "/rollouts/99999999999999999999.1", ""),
        odd("DELETE", "/grants/%00", ""),
        odd("DELETE", "/stops/nothing", ""),
        odd("GET", "/policies/%ff", ""),
        odd("GET", "/tools/decisions", ""),
        odd("GET", "/tools/decisions?agent=%00", ""),
        odd("GET", "/calls/%00", ""),
        odd("GET", "/sidecars/%00", ""),
    ];
    let types = [
        Some("text/html"),
        Some("application/xml"),
        Some("multipart/form-data"),
    ];
    for content_type in types {
        for path in ["/mcp", "/decide", "/grants", "/stops"] {
            all.push(Odd {
                content_type,
                ..odd("POST", path, "<a/>")
            });
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_request_never_breaks_a_plane() {
    let up = Up::start(OPEN).await;
    let operator = up.operator();
    let http = tests::operator::client(None);
    let token = up.token();
    let mut all = strangers();
    for body in bodies() {
        for (method, path) in paths_of_agents().into_iter().chain(paths_of_operators()) {
            all.push(odd(method, path, body.clone()));
        }
    }
    for odd in &all {
        for credential in ["agent:odd", &token] {
            answered(&http, &up.url, odd, credential).await;
        }
    }
    for path in [
        "/mcp",
        "/decide",
        "/tool/fixture.get_item",
        "/grants",
        "/policies/odd",
    ] {
        let method = if path.starts_with("/policies") {
            "PUT"
        } else {
            "POST"
        };
        let huge = format!(r#"{{"a":"{}"}}"#, "x".repeat(17 << 20));
        answered(&http, &up.url, &odd(method, path, huge), &token).await;
    }

    let agent = up.agent("sound").await;
    assert!(agent.call("fixture.get_item", json!({"id": 1})).await.is_ok());
    assert_eq!(operator.get("/readyz").await, operator.get("/readyz").await);
    let log = up.process.log();
    assert!(!log.contains("panicked"), "{log}");
    assert_eq!(operator.get("/traces/verify").await["valid"], true);
    let policies = operator.get("/policies").await;
    assert_eq!(policies.as_array().unwrap().len(), 1, "{policies}");
}

/// The answer is no 5xx, and a refusal is a problem or a JSON-RPC error.
async fn answered(http: &reqwest::Client, url: &str, odd: &Odd, credential: &str) {
    let shown: String = String::from_utf8_lossy(&odd.body).chars().take(60).collect();
    let shown = format!("{} {} {shown}", odd.method, odd.path);
    let method = Method::from_bytes(odd.method.as_bytes()).unwrap();
    let mut request = http
        .request(method, format!("{url}{}", odd.path))
        .bearer_auth(credential)
        .header("Accept", "application/json, text/event-stream")
        .body(odd.body.clone());
    if let Some(content_type) = odd.content_type {
        request = request.header("Content-Type", content_type);
    }
    // A body that is refused for its size may be cut off while it is sent.
    let Ok(response) = request.send().await else {
        assert!(odd.body.len() > 1 << 20, "{shown}: no answer");
        return;
    };
    let status = response.status().as_u16();
    let typed = response.headers().get("content-type").cloned();
    let text = response.text().await.unwrap();
    assert!(status < 500, "{shown}: {status} {text}");
    if status >= 400 && odd.method != "TRACE" {
        let body: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{shown}: {status} {typed:?} {error}: {text}"));
        let is_problem = body["status"] == status && body["error"].is_string() && body["title"].is_string();
        let is_decision = body["action"].is_string() && body["reason"].is_string();
        let is_rpc = body["jsonrpc"] == "2.0" && body["error"]["code"].is_i64();
        assert!(is_problem || is_decision || is_rpc, "{shown}: {status} {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_bears_the_id_of_the_message_where_that_can_be_read() {
    let up = Up::start(OPEN).await;
    let agent = Agent::new(&up.url, "anna", None);
    let refused = async |message: Value| {
        let sent = agent.request(Method::POST, "/mcp").json(&message);
        let answer: Value = sent.send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        answer["id"].clone()
    };
    let message = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": []});
    assert_eq!(refused(message(json!(7))).await, 7);
    assert_eq!(refused(message(json!("x"))).await, "x");
    assert_eq!(refused(message(json!({}))).await, Value::Null);
}

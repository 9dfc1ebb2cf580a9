//! What every entrance refuses, whoever asks.

use reqwest::RequestBuilder;
use tests::up::Up;

use super::{OPEN, TOOL, entrances};

/// One call at each entrance that carries arguments, with this raw text as arguments.
fn calls(http: &reqwest::Client, url: &str, arguments: &str) -> Vec<(&'static str, RequestBuilder)> {
    let post = |path: &str, body: String| {
        let request = http.post(format!("{url}{path}")).bearer_auth("agent:a");
        request
            .header("Accept", "application/json, text/event-stream")
            .header("Content-Type", "application/json")
            .body(body)
    };
    let message = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"fixture.get_item","arguments":{arguments}{meta}}}}}"#
        )
    };
    let meta = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let modern = post("/mcp", message(meta))
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "fixture.get_item");
    vec![
        ("REST", post(TOOL, arguments.to_owned())),
        (
            "decide",
            post(
                "/decide",
                format!(r#"{{"tool":"fixture.get_item","arguments":{arguments}}}"#),
            ),
        ),
        ("legacy MCP", post("/mcp", message(""))),
        ("modern MCP", modern),
    ]
}

#[tokio::test]
async fn what_is_too_large_too_deep_or_can_be_read_in_two_ways_is_refused_at_every_entrance() {
    let limits = "limits: {argument_bytes: 1KiB, message_bytes: 4KiB, depth: 8}\n";
    let up = Up::start(&format!("{OPEN}{limits}")).await;
    let http = tests::operator::client(None);
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    for (case, arguments) in [
        ("a key twice", r#"{"id":1,"id":2}"#.to_owned()),
        ("a key twice, once escaped", r#"{"id":1,"\u0069d":2}"#.to_owned()),
        ("a key twice within", r#"{"id":1,"x":[{"y":1,"y":2}]}"#.to_owned()),
        ("too deep", nested(9)),
        (
            "too many arguments",
            format!(r#"{{"id":"{}"}}"#, "x".repeat(1024)),
        ),
        (
            "too large a message",
            format!(r#"{{"id":"{}"}}"#, "x".repeat(8192)),
        ),
        ("a lone surrogate", r#"{"id":"\ud800"}"#.to_owned()),
    ] {
        for (entrance, request) in calls(&http, &up.url, &arguments) {
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            let text = response.text().await.unwrap();
            let body = tests::agent::messages(&text).pop().unwrap_or_default();
            let is_refused = status >= 400 || body["error"].is_object() || body["result"]["isError"] == true;
            assert!(
                is_refused && status < 500,
                "{case} at {entrance}: {status} {text}"
            );
        }
    }
    assert!(up.ran().is_empty(), "{:?}", up.ran());
    for (entrance, request) in calls(&http, &up.url, &nested(8)) {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{entrance}");
    }
    assert_eq!(up.ran().iter().filter(|line| line.starts_with("ran ")).count(), 3);
}

#[tokio::test]
async fn another_host_or_a_page_of_another_site_is_refused_at_every_entrance() {
    let up = Up::start(OPEN).await;
    let http = tests::operator::client(None);
    for (name, value) in [
        ("Host", "evil.example"),
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
    ] {
        let all = entrances(&http, &up.url)
            .into_iter()
            .chain(calls(&http, &up.url, "{}"));
        for (entrance, request) in all {
            let response = request.header(name, value).send().await.unwrap();
            assert_eq!(response.status(), 403, "{name}: {value} at {entrance}");
        }
    }
    assert!(up.ran().is_empty(), "{:?}", up.ran());
}

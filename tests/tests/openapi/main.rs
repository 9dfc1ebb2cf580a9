//! OpenAPI services behind a real `toolgate up`: documents of all three versions, called through MCP and REST; what a server of
//! the tests' own received is compared with what was asked for.

mod bodies;
mod documents;
mod styles;

use serde_json::{Value, json};
use tests::rest::Rest;
use tests::up::Up;
use tests::wait;

const POLICIES: &str = r#"
policies:
  - name: all
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
"#;

/// The configuration of one service without a name, and no other upstream.
fn service(rest: &Rest, more: &str) -> String {
    format!(
        "mcp_servers: []\nopenapi:\n  - url: {}/openapi\n    headers: {{X-Key: hunter2}}\n{more}",
        rest.url
    )
}

/// Operations with bodies, with answers of every kind, and for policies.
fn documented() -> String {
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 8}, "amount": {"type": "number", "multipleOf": 0.01},
        "status": {"type": "string", "enum": ["open", "done"]}, "id": {"type": "integer", "readOnly": true},
        "parent": {"$ref": "#/components/schemas/Item"}}});
    json!({"openapi": "3.1.0", "info": {"title": "items", "version": "1"},
        "components": {"schemas": {"Item": item}},
        "paths": {
            "/items": {"get": {"operationId": "listItems"},
                "post": {"operationId": "createItem", "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}}}},
            "/items/{id}": {"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "get": {"operationId": "getItem"}, "delete": {"operationId": "removeThing"}},
            "/form": {"post": {"operationId": "sendForm", "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {"a": {}, "b": {"type": "array", "items": {}}}}}}}}},
            "/parts": {"post": {"operationId": "sendParts", "requestBody": {"content": {"multipart/form-data": {"schema": {"type": "object", "properties": {"note": {"type": "string"}, "file": {"type": "string", "format": "binary"}}}}}}}},
            "/missing": {"get": {"operationId": "getMissing"}}, "/broken": {"post": {"operationId": "postBroken"}},
            "/slow": {"get": {"operationId": "getSlow"}}, "/image": {"get": {"operationId": "getImage"}}, "/huge": {"get": {"operationId": "getHuge"}},
        }})
    .to_string()
}

const BY_METHOD: &str = r#"
policies:
  - name: readers
    agent: "*"
    rules:
      - tools: ["*"]
        risk: [READ]
        action: allow
      - tools: ["*"]
        action: deny
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_method_decides_what_an_operation_is_and_both_planes_say_the_same() {
    let rest = Rest::start(&documented()).await;
    let up = Up::start(&service(&rest, BY_METHOD)).await;
    let agent = up.agent("ada").await;
    let (status, _) = agent.rest("list_items", json!({})).await;
    assert_eq!(status, 200);
    let before = rest.asked().len();
    for tool in ["create_item", "remove_thing"] {
        let (status, body) = agent.rest(tool, json!({"id": "x", "name": "x"})).await;
        assert_eq!(status, 403, "{tool}: {body}");
    }
    assert_eq!(rest.asked().len(), before);
    for (tool, risk) in [
        ("list_items", "READ"),
        ("create_item", "EXTERNAL_WRITE"),
        ("remove_thing", "DELETE"),
    ] {
        let known = up.operator().get(&format!("/tools/{tool}")).await;
        assert_eq!(
            (&known["name"], &known["classification"]["risk"]),
            (&json!(tool), &json!(risk)),
            "{known}"
        );
        assert_eq!(known["kind"], "openapi");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kept_document_serves_while_the_service_is_away() {
    let mut rest = Rest::start(&documented()).await;
    let mut up = Up::start(&service(&rest, POLICIES)).await;
    rest.go().await;
    up.restart().await;
    let agent = up.agent("ada").await;
    assert!(agent.tools().await.contains(&"list_items".to_owned()));
    let away = agent.call("list_items", json!({})).await;
    assert!(!away.is_ok(), "{}", away.answer);
    rest.come_back().await;
    let (status, _) = agent.rest("list_items", json!({})).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_removed_while_it_answers_ends_its_calls() {
    let rest = Rest::start(&documented()).await;
    let up = Up::start(&service(&rest, POLICIES)).await;
    let agent = up.agent("ada").await;
    let removing = async {
        wait::until("the service is asked", || async {
            rest.asked()
                .iter()
                .any(|asked| asked.target == "/slow")
                .then_some(())
        })
        .await;
        let port = up.url.rsplit(':').next().unwrap();
        let text = format!("port: {port}\nmcp_servers: []\ndrain: {{seconds: 2}}\n{POLICIES}");
        std::fs::write(up.folder.path().join("toolgate.yaml"), text).unwrap();
    };
    let ((status, body), ()) = tokio::join!(agent.rest("get_slow", json!({})), removing);
    assert_eq!(status, 502, "{body}");
    let detail = body["detail"].as_str().unwrap();
    assert!(detail.contains("went away during the call"), "{body}");
    let records = up.operator().records("tool=get_slow", 1).await;
    assert_eq!(
        (&records[0]["outcome"], &records[0]["reason"]),
        (&json!("error"), &json!("upstream_unavailable")),
        "{records:?}"
    );
    assert!(!agent.tools().await.contains(&"get_slow".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clash_says_which_service_needs_a_name_and_with_one_both_are_served() {
    let (one, two) = (Rest::start(&documented()).await, Rest::start(&documented()).await);
    let services = |name: &str| {
        format!(
            "mcp_servers: []\nopenapi:\n  - url: {}/openapi\n  - url: {}/openapi{name}\n{POLICIES}",
            one.url, two.url
        )
    };
    let mut up = Up::start(&services("\n    name: second\n    include: [\"GET /items*\"]")).await;
    let tools = up.agent("ada").await.tools().await;
    assert!(
        tools.contains(&"list_items".to_owned()) && tools.contains(&"second.list_items".to_owned()),
        "{tools:?}"
    );
    assert!(!tools.contains(&"second.create_item".to_owned()));
    let port = up.url.rsplit(':').next().unwrap();
    let text = format!("port: {port}\n{}", services(""));
    std::fs::write(up.folder.path().join("toolgate.yaml"), text).unwrap();
    up.restart_unready();
    let http = tests::operator::client(None);
    let error = wait::until("the second service is refused", || async {
        let answer = http.get(format!("{}/mcp-servers", up.url)).send().await.ok()?;
        let servers: Value = answer.json().await.ok()?;
        let failed = servers
            .as_array()?
            .iter()
            .find(|server| server["state"] == "failed")?
            .clone();
        failed["last_error"].as_str().map(str::to_owned)
    })
    .await;
    assert!(
        error.contains("`name`") && error.contains("is one of the OpenAPI service"),
        "{error}"
    );
}

//! An agent: speaks MCP of both eras over Streamable HTTP, and REST, with raw JSON.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// A legacy revision and the modern one.
pub const LEGACY: &str = "2025-11-25";
/// The stateless revision.
pub const MODERN: &str = "2026-07-28";

/// One agent at one sidecar.
#[derive(Clone, Debug)]
pub struct Agent {
    http: reqwest::Client,
    url: String,
    name: String,
    session: Option<String>,
}

/// What `tools/call` came to.
#[derive(Clone, Debug)]
pub struct Called {
    /// The whole JSON-RPC answer.
    pub answer: Value,
}

impl Called {
    /// The text of the first content block.
    #[must_use]
    pub fn text(&self) -> &str {
        self.answer
            .pointer("/result/content/0/text")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Whether the call ran and its tool said that it succeeded.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.answer
            .get("result")
            .is_some_and(|result| result["isError"] != true)
    }

    /// The structured decision that comes with a refusal.
    #[must_use]
    pub fn decision(&self) -> &Value {
        self.answer
            .pointer("/result/_meta/dev.toolgate~1decision")
            .unwrap_or(&Value::Null)
    }
}

impl Agent {
    /// An agent that has not opened a session; `name` is its plaintext identity.
    #[must_use]
    pub fn new(url: &str, name: &str, ca_file: Option<&std::path::Path>) -> Self {
        Self {
            http: crate::operator::client(ca_file),
            url: url.to_owned(),
            name: name.to_owned(),
            session: None,
        }
    }

    /// Opens a legacy session.
    pub async fn connect(self) -> Self {
        self.connect_with(json!({})).await
    }

    /// Opens a legacy session of a client with these capabilities.
    pub async fn connect_with(self, capabilities: Value) -> Self {
        self.initialize(LEGACY, capabilities).await
    }

    /// Opens a legacy session of this revision.
    pub async fn connect_as(self, revision: &str) -> Self {
        self.initialize(revision, json!({})).await
    }

    async fn initialize(mut self, revision: &str, capabilities: Value) -> Self {
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": self.name, "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = self
            .request(Method::POST, "/mcp")
            .json(&message)
            .send()
            .await
            .unwrap();
        assert!(
            response.status().is_success(),
            "initialize: {}",
            response.status()
        );
        self.session = response
            .headers()
            .get("mcp-session-id")
            .map(|id| id.to_str().unwrap().to_owned());
        let body: Value = response.json().await.unwrap();
        assert!(body.get("result").is_some(), "initialize: {body}");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert!(
            self.legacy(&initialized)
                .send()
                .await
                .unwrap()
                .status()
                .is_success()
        );
        self
    }

    /// The session's id.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// A request with the agent's identity.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.url))
            .header("Authorization", format!("Bearer agent:{}", self.name))
            .header("Accept", "application/json, text/event-stream")
    }

    /// A POST of a legacy message within the session.
    pub fn legacy(&self, message: &Value) -> RequestBuilder {
        let request = self
            .request(Method::POST, "/mcp")
            .header("MCP-Protocol-Version", LEGACY)
            .json(message);
        match &self.session {
            Some(session) => request.header("Mcp-Session-Id", session),
            None => request,
        }
    }

    /// The names that `tools/list` gives.
    pub async fn tools(&self) -> Vec<String> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let answer = answer(self.legacy(&message)).await;
        let tools = answer["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("tools/list: {answer}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// A legacy request, whose questions are answered as `answer` says: a raw result for a method and its params. What was asked,
    /// and the answer.
    pub async fn answering(
        &self,
        method: &str,
        params: Value,
        answer: impl Fn(&str, &Value) -> Value,
    ) -> (Vec<Value>, Value) {
        let message = json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params});
        let mut response = self.legacy(&message).send().await.unwrap();
        let (mut text, mut seen, mut asked) = (String::new(), 0, Vec::new());
        while let Some(chunk) = response.chunk().await.unwrap() {
            text.push_str(&String::from_utf8_lossy(&chunk));
            let is_whole = serde_json::from_str::<Value>(&text).is_ok();
            let end = text.rfind("\n\n").map_or(0, |end| end + 2);
            let whole = if is_whole { text.as_str() } else { &text[..end] };
            for found in messages(whole).into_iter().skip(seen) {
                seen += 1;
                let Some(method) = found["method"].as_str() else {
                    return (asked, found);
                };
                if !found["id"].is_null() {
                    let result = answer(method, &found["params"]);
                    let reply = json!({"jsonrpc": "2.0", "id": found["id"], "result": result});
                    let taken = self.legacy(&reply).send().await.unwrap();
                    assert_eq!(taken.status(), 202);
                }
                asked.push(found);
            }
        }
        panic!("the stream ended without an answer: {text}")
    }

    /// A legacy `tools/call`.
    pub async fn call(&self, tool: &str, arguments: Value) -> Called {
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        Called {
            answer: answer(self.legacy(&message)).await,
        }
    }

    /// A modern `tools/call`, without any session.
    pub async fn call_modern(&self, tool: &str, arguments: Value) -> Called {
        Called {
            answer: answer(self.modern(
                "tools/call",
                Some(tool),
                json!({"name": tool, "arguments": arguments}),
            ))
            .await,
        }
    }

    /// A POST of a modern message.
    pub fn modern(&self, method: &str, name: Option<&str>, params: Value) -> RequestBuilder {
        self.modern_as(json!({}), method, name, params)
    }

    /// A POST of a modern message of a client with these capabilities.
    pub fn modern_as(
        &self,
        capabilities: Value,
        method: &str,
        name: Option<&str>,
        mut params: Value,
    ) -> RequestBuilder {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": params});
        let request = self
            .request(Method::POST, "/mcp")
            .header("MCP-Protocol-Version", MODERN)
            .header("Mcp-Method", method)
            .json(&message);
        match name {
            Some(name) => request.header("Mcp-Name", name),
            None => request,
        }
    }

    /// What a modern `subscriptions/listen` of a client with these capabilities is told that it hears of; its stream ends with that.
    pub async fn honoured(&self, capabilities: Value, filter: Value) -> Value {
        let params = json!({"notifications": filter});
        let request = self.modern_as(capabilities, "subscriptions/listen", None, params);
        let (mut response, mut text) = (request.send().await.unwrap(), String::new());
        while !text.ends_with("\n\n") {
            let chunk = response.chunk().await.unwrap().expect("the stream ended");
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
        let first = messages(&text).first().cloned().expect("a message");
        assert_eq!(
            first["method"], "notifications/subscriptions/acknowledged",
            "{first}"
        );
        first["params"]["notifications"].clone()
    }

    /// `POST /tool/{name}`: status and body; nobody there: status 0.
    pub async fn rest(&self, tool: &str, params: Value) -> (u16, Value) {
        let request = self
            .request(Method::POST, &format!("/tool/{tool}"))
            .json(&json!({"params": params}));
        match request.send().await {
            Ok(response) => (
                response.status().as_u16(),
                response.json().await.unwrap_or_default(),
            ),
            Err(error) => (0, Value::String(error.to_string())),
        }
    }

    /// `POST /decide`: status and body.
    pub async fn decide(&self, tool: &str, arguments: Value) -> (u16, Value) {
        let request = self
            .request(Method::POST, "/decide")
            .json(&json!({"tool": tool, "arguments": arguments}));
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }
}

/// The JSON-RPC answer of a POST, from a JSON body or as the last message of an event stream.
pub async fn answer(request: RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    messages(&text)
        .pop()
        .unwrap_or_else(|| panic!("{status} without a message: {text}"))
}

/// The messages of a body, whether it is JSON or an event stream.
#[must_use]
pub fn messages(body: &str) -> Vec<Value> {
    if let Ok(message) = serde_json::from_str(body) {
        return vec![message];
    }
    body.split("\n\n")
        .map(|event| {
            event
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(str::trim_start)
                .collect::<Vec<_>>()
                .join("\n")
        })
        .filter_map(|data| serde_json::from_str(&data).ok())
        .collect()
}

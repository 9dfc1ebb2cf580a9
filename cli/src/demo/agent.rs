//! The demo's agent: speaks MCP over HTTP (revision 2025-11-25) as any agent would.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::connection::Target;
use crate::error::CliError;

/// The agent's name, as the demo's policy knows it.
pub(super) const NAME: &str = "scripted-agent";
const REVISION: &str = "2025-11-25";

/// A session with `/mcp`.
pub(super) struct Agent {
    client: Client,
    session: String,
    next_id: u64,
}

/// What a tool call came to.
pub(super) struct Answer {
    /// What the model reads.
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl Agent {
    /// Opens a session.
    pub(super) async fn connect(url: &str) -> Result<Self, CliError> {
        let client = Client::new(Target {
            url: url.to_owned(),
            token: Some(format!("agent:{NAME}")),
            ca_cert: None,
        })?;
        let mut agent = Self {
            client,
            session: String::new(),
            next_id: 0,
        };
        let params = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": NAME, "version": "1"}});
        agent.request("initialize", params).await?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        agent.send(&initialized).await?;
        Ok(agent)
    }

    pub(super) async fn tools(&mut self) -> Result<Vec<String>, CliError> {
        let result = self.request("tools/list", json!({})).await?;
        let tools = result
            .get("tools")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        Ok(tools
            .iter()
            .filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned))
            .collect())
    }

    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer, CliError> {
        let result = self
            .request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await?;
        Ok(Answer {
            text: result
                .pointer("/content/0/text")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            is_error: result.get("isError").and_then(Value::as_bool).unwrap_or_default(),
        })
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Value, CliError> {
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        let response = self.send(&message).await?;
        if let Some(session) = response
            .headers()
            .get("mcp-session-id")
            .and_then(|value| value.to_str().ok())
        {
            self.session = session.to_owned();
        }
        let answer: Value = response
            .json()
            .await
            .map_err(|error| CliError::Failed(format!("{method}: {error}")))?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(CliError::Failed(format!("{method}: {answer}"))),
        }
    }

    async fn send(&self, message: &Value) -> Result<reqwest::Response, CliError> {
        let mut request = self
            .client
            .request(Method::POST, "/mcp")
            .header("Accept", "application/json, text/event-stream");
        if !self.session.is_empty() {
            request = request
                .header("Mcp-Session-Id", &self.session)
                .header("MCP-Protocol-Version", REVISION);
        }
        self.client.send(request.json(message)).await
    }
}

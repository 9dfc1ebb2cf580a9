//! An MCP server for the tests: its tools do visible things, and every call that really ran is a line in a file.
//!
//! `fixture-mcp stdio LOG` speaks the revision 2025-11-25 on stdio; `fixture-mcp http LOG` listens on a loopback port, which it prints.
//! Lines of the log: `ran <tool> <arguments>` when a call begins, `done <tool>` when it ends, `cancelled <tool>` when its client cancelled it.

#![allow(
    clippy::disallowed_methods,
    reason = "a server that is simple on purpose: its tasks end with it"
)]

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_util::sync::CancellationToken;

struct Server {
    log: Mutex<File>,
    running: Mutex<HashMap<String, CancellationToken>>,
    tools: std::path::PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, log] = arguments.as_slice() else {
        panic!("usage: fixture-mcp stdio|http LOG")
    };
    let file = File::options().create(true).append(true).open(log).unwrap();
    let server = Arc::new(Server {
        log: Mutex::new(file),
        running: Mutex::default(),
        tools: Path::new(log).with_extension("tools"),
    });
    match mode.as_str() {
        "stdio" => stdio(server).await,
        "http" => http(server).await,
        other => panic!("no mode {other}"),
    }
}

async fn stdio(server: Arc<Server>) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            if let Some(answer) = server.answer(&message).await {
                let mut out = std::io::stdout().lock();
                writeln!(out, "{answer}").and_then(|()| out.flush()).ok();
            }
        });
    }
}

async fn http(server: Arc<Server>) {
    let router = Router::new().route("/mcp", post(posted)).with_state(server);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    std::io::stdout().flush().unwrap();
    axum::serve(listener, router).await.unwrap();
}

async fn posted(State(server): State<Arc<Server>>, headers: HeaderMap, body: String) -> Response {
    let Ok(message) = serde_json::from_str::<Value>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let modern = headers
        .get("mcp-protocol-version")
        .is_some_and(|version| version == "2026-07-28");
    let answer = if modern {
        server.answer_modern(&message).await
    } else {
        server.answer(&message).await
    };
    match answer {
        Some(answer) => axum::Json(answer).into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// Ends a call that is dropped because its client closed the connection.
struct Running<'a> {
    server: &'a Server,
    id: String,
    tool: String,
    ended: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.server.running.lock().unwrap().remove(&self.id);
        if !self.ended {
            self.server.note(&format!("cancelled {}", self.tool));
        }
    }
}

impl Server {
    fn note(&self, line: &str) {
        // One write per line: appends of several writers never mix.
        self.log
            .lock()
            .unwrap()
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    async fn answer_modern(&self, message: &Value) -> Option<Value> {
        if message["method"] == "server/discover" {
            let result = json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fixture", "version": "1"},
                "ttlMs": 0,
                "cacheScope": "private",
            });
            return Some(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        }
        let mut answer = self.answer(message).await?;
        if answer["result"].is_object() {
            answer["result"]["resultType"] = json!("complete");
            if message["method"] == "tools/list" {
                answer["result"]["ttlMs"] = json!(0);
                answer["result"]["cacheScope"] = json!("private");
            }
        }
        Some(answer)
    }

    async fn answer(&self, message: &Value) -> Option<Value> {
        let params = &message["params"];
        let id = message.get("id");
        let result = match message["method"].as_str()? {
            "initialize" => Ok(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "fixture", "version": "1"},
            })),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": self.listed()})),
            "tools/call" => Ok(self.call(id?, params).await?),
            "notifications/cancelled" => {
                if let Some(call) = self.running.lock().unwrap().get(&params["requestId"].to_string()) {
                    call.cancel();
                }
                return None;
            }
            method if method.starts_with("notifications/") => return None,
            method => Err(json!({"code": -32601, "message": format!("no method {method}")})),
        };
        Some(match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id?, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id?, "error": error}),
        })
    }

    /// The tools; a file `<log>.tools` replaces the built-in ones, so that a test can change the catalogue.
    fn listed(&self) -> Value {
        if let Ok(text) = std::fs::read_to_string(&self.tools) {
            return serde_json::from_str(&text).unwrap();
        }
        let object = json!({"type": "object"});
        json!([
            {"name": "get_item", "description": "Gets an item.", "inputSchema": object, "annotations": {"readOnlyHint": true}},
            {"name": "write_item", "description": "Writes an item.", "inputSchema": object},
            {"name": "delete_item", "description": "Deletes an item.", "inputSchema": object, "annotations": {"destructiveHint": true}},
            {"name": "slow", "description": "Takes `ms` milliseconds.", "inputSchema": object},
        ])
    }

    async fn call(&self, id: &Value, params: &Value) -> Option<Value> {
        let tool = params["name"].as_str()?.to_owned();
        let arguments = &params["arguments"];
        let cancelled = CancellationToken::new();
        self.running
            .lock()
            .unwrap()
            .insert(id.to_string(), cancelled.clone());
        let mut running = Running {
            server: self,
            id: id.to_string(),
            tool: tool.clone(),
            ended: false,
        };
        self.note(&format!("ran {tool} {arguments}"));
        if tool == "slow" {
            let length = Duration::from_millis(arguments["ms"].as_u64().unwrap_or(60_000));
            tokio::select! {
                () = tokio::time::sleep(length) => {}
                () = cancelled.cancelled() => return None,
            }
        }
        running.ended = true;
        self.note(&format!("done {tool}"));
        Some(json!({"content": [{"type": "text", "text": format!("{tool} {arguments}")}], "isError": false}))
    }
}

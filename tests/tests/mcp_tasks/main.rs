//! Tasks of MCP: calls that wait for a person, and tasks that upstreams run, for clients of both eras.

mod approvals;
mod bounds;
mod upstreams;

use serde_json::{Value, json};
use tests::agent::{Agent, answer};
use tests::fleet::{Fleet, Sidecar, SidecarOptions};
use tests::wait;

const POLICY: &str = "
name: everybody
agent: 'a-*'
rules:
  - tools: [fixture.get_item, fixture.slow]
    action: allow
  - tools: [fixture.write_item]
    action: human_approval
  - tools: [fixture.delete_item]
    action: deny
";

const UNKNOWN: i64 = -32602;

async fn governed(fleet: &Fleet) -> Sidecar {
    let sidecar = fleet.sidecar(&SidecarOptions::named("one")).await;
    let operator = fleet.operator();
    let revision = operator.put_policy("everybody", POLICY).await;
    operator.applied(&revision, 1).await;
    sidecar
}

/// What a client that speaks the extension says that it can do.
fn with_tasks() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// A client that speaks tasks, in the words of its era.
#[derive(Clone)]
struct Client {
    agent: Agent,
    is_modern: bool,
}

impl Client {
    async fn legacy(sidecar: &Sidecar, name: &str) -> Self {
        Self {
            agent: sidecar.agent(name).await,
            is_modern: false,
        }
    }

    fn modern(sidecar: &Sidecar, name: &str) -> Self {
        Self {
            agent: sidecar.stateless_agent(name),
            is_modern: true,
        }
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let name = params["taskId"]
            .as_str()
            .or(params["name"].as_str())
            .map(str::to_owned);
        let request = if self.is_modern {
            self.agent
                .modern_as(with_tasks(), method, name.as_deref(), params)
        } else {
            let message = json!({"jsonrpc": "2.0", "id": 4, "method": method, "params": params});
            self.agent.legacy(&message)
        };
        answer(request).await
    }

    /// Asks for a call as a task.
    async fn begin(&self, tool: &str, arguments: Value) -> Value {
        let mut params = json!({"name": tool, "arguments": arguments});
        if !self.is_modern {
            params["task"] = json!({"ttl": 600_000});
        }
        self.ask("tools/call", params).await
    }

    /// The task that an answer begins.
    fn task(&self, begun: &Value) -> Value {
        let task = if self.is_modern {
            assert_eq!(begun["result"]["resultType"], "task", "{begun}");
            &begun["result"]
        } else {
            &begun["result"]["task"]
        };
        assert_eq!(task["status"], "working", "{begun}");
        task["taskId"].clone()
    }

    async fn state(&self, id: &Value) -> Value {
        self.ask("tasks/get", json!({"taskId": id})).await
    }

    /// Polls until the task has this status.
    async fn until(&self, id: &Value, status: &str) -> Value {
        wait::until(&format!("a task that is {status}"), || async {
            let state = self.state(id).await;
            assert!(state.get("error").is_none(), "{state}");
            (state["result"]["status"] == status).then_some(state)
        })
        .await
    }

    /// What the call of an ended task came to: its result.
    async fn outcome(&self, id: &Value) -> Value {
        if self.is_modern {
            return self.state(id).await["result"]["result"].clone();
        }
        self.ask("tasks/result", json!({"taskId": id})).await["result"].clone()
    }
}

/// Clients of both eras, under names that `a-*` covers.
async fn both(sidecar: &Sidecar) -> [(&'static str, Client); 2] {
    [
        ("a-legacy", Client::legacy(sidecar, "a-legacy").await),
        ("a-modern", Client::modern(sidecar, "a-modern")),
    ]
}

/// The approval that a call of this agent waits for.
async fn pending(fleet: &Fleet, agent: &str) -> Value {
    wait::until("a pending approval", || async {
        let path = format!("/approvals?status=pending&agent={agent}");
        fleet.operator().get(&path).await.as_array()?.first().cloned()
    })
    .await
}

async fn resolve(fleet: &Fleet, approval: &Value, how: &str) {
    let path = format!("/approvals/{}/{how}", approval["id"].as_str().unwrap());
    let body = json!({"resolved_by": "alice", "reasoning": "seen"});
    fleet.operator().post(&path, body).await;
}

fn count(sidecar: &Sidecar, line: &str) -> usize {
    sidecar.ran().iter().filter(|ran| *ran == line).count()
}

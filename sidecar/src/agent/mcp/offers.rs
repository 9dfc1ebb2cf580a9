//! What is offered to agents: what the upstreams offer, and nothing else.

use serde_json::{Map, Value, json};

use super::tasks;
use super::version::Legacy;
use crate::registry::Registry;

/// The capabilities of this server, as they are announced to a client of a legacy revision, or to a modern one.
pub(super) fn capabilities(registry: &Registry, revision: Option<Legacy>) -> Value {
    let mut capabilities = Map::new();
    let mut offer = |name: &str, value: Value| capabilities.insert(name.to_owned(), value);
    offer("tools", json!({"listChanged": true}));
    if registry.is_offered(|offers| offers.resources) {
        let has_subscriptions = registry.is_offered(|offers| offers.subscriptions);
        offer(
            "resources",
            if has_subscriptions {
                json!({"subscribe": true, "listChanged": true})
            } else {
                json!({"listChanged": true})
            },
        );
    }
    if registry.is_offered(|offers| offers.prompts) {
        offer("prompts", json!({"listChanged": true}));
    }
    if registry.is_offered(|offers| offers.completions) {
        offer("completions", json!({}));
    }
    if registry.is_offered(|offers| offers.logging) {
        offer("logging", json!({}));
    }
    // Calls that wait for a person are tasks of this sidecar, whatever its upstreams can do.
    match revision {
        None => offer("extensions", json!({tasks::EXTENSION: {}})),
        Some(revision) if revision >= Legacy::V20251125 => offer(
            "tasks",
            json!({"cancel": {}, "requests": {"tools": {"call": {}}}}),
        ),
        Some(_) => None,
    };
    Value::Object(capabilities)
}

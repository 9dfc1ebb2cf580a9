//! What is offered to agents: what the upstreams offer, and nothing else.

use serde_json::{Map, Value, json};

use crate::registry::Registry;

/// The capabilities of this server, as they are announced.
pub(super) fn capabilities(registry: &Registry, is_modern: bool) -> Value {
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
    // Modern clients ask for log messages by request, which goes with calls of upstreams that know it.
    if !is_modern && registry.is_offered(|offers| offers.logging) {
        offer("logging", json!({}));
    }
    // Later revisions have tasks as an extension, which is not bridged.
    if !is_modern && registry.is_offered(|offers| offers.tasks) {
        offer(
            "tasks",
            json!({"cancel": {}, "requests": {"tools": {"call": {}}}}),
        );
    }
    Value::Object(capabilities)
}

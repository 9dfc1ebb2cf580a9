//! Telling the control plane what upstreams declare.

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::model::Tool;

use super::{Published, PublishedCatalogue, Registry};
use crate::control::{Catalogue, Control, PublishedTool};

impl Registry {
    /// Publishes each catalogue, and again whenever it changes, until `stop`.
    pub fn publish_to(&self, control: Control, tasks: &TaskTracker, stop: &CancellationToken) {
        let stop = stop.clone();
        let mut newest = self.published();
        tasks.spawn(async move {
            let mut before = Arc::new(Published::new());
            loop {
                let now = Arc::clone(&newest.borrow_and_update());
                for catalogue in now.values().filter(|catalogue| has_changed(&before, catalogue)) {
                    control.publish(to_control(catalogue));
                }
                before = now;
                tokio::select! {
                    changed = newest.changed() => if changed.is_err() { return },
                    () = stop.cancelled() => return,
                }
            }
        });
    }
}

fn has_changed(before: &Published, catalogue: &PublishedCatalogue) -> bool {
    let before = before.get(&catalogue.upstream);
    !before.is_some_and(|before| Arc::ptr_eq(&before.tools, &catalogue.tools))
}

fn to_control(catalogue: &PublishedCatalogue) -> Catalogue {
    Catalogue {
        upstream: catalogue.upstream.to_string(),
        tools: catalogue.tools.iter().map(|tool| published(tool)).collect(),
    }
}

fn published(tool: &Tool) -> PublishedTool {
    PublishedTool {
        name: tool.name.to_string(),
        fingerprint: *tool.fingerprint.as_bytes(),
        declared: Bytes::copy_from_slice(tool.declared.get().as_bytes()),
        kind: "mcp",
    }
}

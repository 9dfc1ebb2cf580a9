//! Tells the control plane what the upstreams declare.

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tools::model::{Tool, ToolKind};

use crate::control::{Catalogue, Control, PublishedTool};
use crate::registry::{PublishedCatalogue, Registry};

/// Publishes each catalogue when it is first read and at each change, and an empty one in place of what is no longer served, until
/// `stop`.
pub(crate) async fn follow(registry: Registry, control: Control, stop: CancellationToken) {
    let mut published = registry.published();
    let mut told: Vec<(Arc<Vec<Arc<Tool>>>, String)> = Vec::new();
    loop {
        let now = Arc::clone(&published.borrow_and_update());
        for catalogue in now.values() {
            let is_told = told.iter().any(|(tools, upstream)| {
                upstream == catalogue.upstream.as_str() && Arc::ptr_eq(tools, &catalogue.tools)
            });
            if !is_told {
                control.publish(as_published(catalogue));
            }
        }
        for (_, upstream) in told
            .iter()
            .filter(|(_, upstream)| !now.keys().any(|name| name.as_str() == upstream))
        {
            control.publish(Catalogue {
                upstream: upstream.clone(),
                tools: Vec::new(),
            });
        }
        told = now
            .values()
            .map(|catalogue| (Arc::clone(&catalogue.tools), catalogue.upstream.to_string()))
            .collect();
        tokio::select! {
            () = stop.cancelled() => return,
            changed = published.changed() => if changed.is_err() { return },
        }
    }
}

fn as_published(catalogue: &PublishedCatalogue) -> Catalogue {
    let tool = |tool: &Arc<Tool>| PublishedTool {
        name: tool.name.to_string(),
        fingerprint: *tool.fingerprint.as_bytes(),
        declared: Bytes::copy_from_slice(tool.declared.get().as_bytes()),
        kind: match tool.kind {
            ToolKind::Mcp => "mcp",
            ToolKind::OpenApi => "openapi",
            ToolKind::Cli => "cli",
            ToolKind::Host => "host",
        },
    };
    Catalogue {
        upstream: catalogue.upstream.to_string(),
        tools: catalogue.tools.iter().map(tool).collect(),
    }
}

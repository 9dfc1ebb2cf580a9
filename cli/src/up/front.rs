//! Which plane answers a path when both share one port.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use control_plane::ControlPlane;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sidecar::Sidecar;
use tower::ServiceExt;

/// Paths that agents call. Everything else is the operators'.
const AGENT_PATHS: [&str; 6] = ["/mcp", "/decide", "/mcp-servers", "/health", "/tool/", "/calls/"];
/// A path of both: the credential says which catalogue is meant.
const SHARED_PATH: &str = "/tools";

pub(super) fn router(control_plane: &Arc<ControlPlane>, sidecar: &Sidecar) -> Router {
    let agents = sidecar.router();
    let operators = control_plane.router();
    // Weak: connections that are still open must not keep the plane from ending.
    let control_plane = Arc::downgrade(control_plane);
    Router::new().fallback(async move |request: Request| {
        let peer = request
            .extensions()
            .get::<ConnectInfo<SocketAddr>>()
            .map(|peer| peer.0);
        let is_shared = request.uri().path() == SHARED_PATH && !names_an_agent(request.headers());
        let asked = control_plane.upgrade().filter(|_| is_shared);
        let is_operator = match asked {
            Some(plane) => {
                let headers = request.headers().clone();
                plane.admits(&headers, peer).await
            }
            None => false,
        };
        let plane = if is_for_agents(request.uri().path(), is_operator) {
            agents
        } else {
            operators
        };
        match plane.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    })
}

/// Whether the credential is an agent's plaintext name: then the agent's own list is meant, whoever may ask for more.
fn names_an_agent(headers: &HeaderMap) -> bool {
    let credential = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    credential.is_some_and(|credential| credential.starts_with("Bearer agent:"))
}

fn is_for_agents(path: &str, is_operator: bool) -> bool {
    if path == SHARED_PATH {
        return !is_operator;
    }
    path.starts_with("/.well-known/")
        || AGENT_PATHS.iter().any(|agent| {
            if agent.ends_with('/') {
                path.starts_with(agent)
            } else {
                path == *agent
            }
        })
}

#[cfg(test)]
mod tests {
    use super::is_for_agents;

    #[test]
    fn each_path_belongs_to_one_plane() {
        for path in [
            "/mcp",
            "/tool/notes.list",
            "/decide",
            "/mcp-servers",
            "/calls/1",
            "/health",
        ] {
            assert!(is_for_agents(path, false) && is_for_agents(path, true), "{path}");
        }
        for path in [
            "/policies",
            "/tools/pins",
            "/tools/decisions",
            "/traces",
            "/approvals",
            "/metrics",
            "/mcpx",
            "/",
        ] {
            assert!(
                !is_for_agents(path, false) && !is_for_agents(path, true),
                "{path}"
            );
        }
    }

    #[test]
    fn the_credential_says_whose_tools_are_meant() {
        assert!(is_for_agents("/tools", false));
        assert!(!is_for_agents("/tools", true));
    }
}

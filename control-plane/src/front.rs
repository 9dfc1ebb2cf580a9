//! Both faces of the control plane behind one address: gRPC for sidecars, REST for everybody else.
//!
//! The operators' listener serves both, so that one URL (`TOOLGATE_CONTROL_URL`) is right for sidecars and for commands; the
//! gRPC listener of its own remains for networks that let sidecars reach nothing else. Credentials are checked behind either.

use axum::Router;
use axum::extract::Request;
use http::header::CONTENT_TYPE;
use tower::ServiceExt;

/// A router that hands gRPC requests to `grpc` and all others to `rest`.
pub(crate) fn router(rest: Router, grpc: Router) -> Router {
    Router::new().fallback(async move |request: Request| {
        let plane = if is_grpc(&request) { grpc } else { rest };
        match plane.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    })
}

/// By its content type, as the gRPC protocol over HTTP/2 has it ("Requests": `application/grpc` and its suffixes).
fn is_grpc(request: &Request) -> bool {
    let kind = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind == "application/grpc" || kind.starts_with("application/grpc+"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn only_grpc_content_is_for_sidecars() {
        let with = |kind: &str| {
            Request::builder()
                .header(CONTENT_TYPE, kind)
                .body(Body::empty())
                .unwrap()
        };
        assert!(is_grpc(&with("application/grpc")) && is_grpc(&with("application/grpc+proto")));
        assert!(!is_grpc(&with("application/json")) && !is_grpc(&with("application/grpc-web")));
        assert!(!is_grpc(&Request::new(Body::empty())));
    }
}

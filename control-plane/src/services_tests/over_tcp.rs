//! The same services behind the listener that a process of its own opens.

use net::listen;
use net::serve::{self, Limits};
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;

use super::plane::{Plane, policy};
use super::watcher::Watcher;

#[tokio::test]
async fn a_sidecar_watches_over_tcp_as_over_memory() {
    let mut plane = Plane::start().await;
    let listener = listen::bind("127.0.0.1:0".parse().unwrap(), "listen.grpc")
        .await
        .unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let closing = CancellationToken::new();
    let router = plane.plane.grpc_routes().into_axum_router();
    let serving = serve::serve(listener, None, router, Limits::default(), closing.clone());
    let watching = async {
        plane.channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
        let sidecar = plane.enrol("default", &["*"]).await;
        let mut watcher = Watcher::start(&plane, &sidecar).await;
        plane.put_policy(&policy("first", "a", "*")).await;
        watcher.until(|watcher| watcher.has_policy("first")).await;
        let Plane {
            plane,
            directory: _directory,
            ..
        } = plane;
        plane.shutdown().await;
        assert_eq!(watcher.end().await.code(), tonic::Code::Unavailable);
        closing.cancel();
    };
    tokio::join!(serving, watching);
}

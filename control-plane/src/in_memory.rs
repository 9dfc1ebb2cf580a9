//! The link between the planes when both run in one process: gRPC over pipes in memory.

use std::io;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint, Server, Uri};

use crate::core::Core;

const PIPE: usize = 256 * 1024;
/// Connections that wait to be accepted.
const BACKLOG: usize = 16;

/// Serves the gRPC services on pipes and answers with a channel that opens them.
pub(crate) fn channel(core: &Arc<Core>) -> Channel {
    let (accept, incoming) = mpsc::channel::<DuplexStream>(BACKLOG);
    let server = Server::builder().add_routes(crate::grpc::routes(core));
    let shutdown = core.shutdown.clone();
    core.tasks.spawn(async move {
        let pipes = ReceiverStream::new(incoming).map(Ok::<_, io::Error>);
        let served = server
            .serve_with_incoming_shutdown(pipes, shutdown.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "the link in memory has ended");
        }
    });
    let connect = move |_: Uri| {
        let accept = accept.clone();
        async move {
            let (client, server) = tokio::io::duplex(PIPE);
            accept.send(server).await.map_err(|_| {
                io::Error::new(
                    io::ErrorKind::ConnectionRefused,
                    "the control plane has been shut down",
                )
            })?;
            Ok::<_, io::Error>(TokioIo::new(client))
        }
    };
    Endpoint::from_static("http://control-plane.in-memory")
        .connect_with_connector_lazy(tower::service_fn(connect))
}

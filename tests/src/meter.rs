//! A meter of what goes over the wire: a TCP proxy that counts bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Stands in front of a loopback port; whoever connects here talks to that port, and the bytes are counted as they pass. Ends when
/// dropped.
#[derive(Debug)]
pub struct Meter {
    /// Where it listens on 127.0.0.1.
    pub port: u16,
    received: Arc<AtomicU64>,
    _accepting: JoinSet<()>,
}

impl Meter {
    /// Starts one in front of `port`.
    pub async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let received = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&received);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(relay(client, port, Arc::clone(&counter)));
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            port: own_port,
            received,
            _accepting: accepting,
        }
    }

    /// Its address for gRPC clients.
    #[must_use]
    pub fn grpc_url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Bytes that went from the port to its clients so far, those of TLS and HTTP/2 included.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

async fn relay(client: TcpStream, port: u16, received: Arc<AtomicU64>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
        return;
    };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let sent = AtomicU64::new(0);
    tokio::join!(
        pass(from_client, to_server, &sent),
        pass(from_server, to_client, &received),
    );
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, count: &AtomicU64) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        count.fetch_add(length as u64, Ordering::Relaxed);
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::routing::get;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::*;
use crate::clock::Clock;
use crate::tls::{client_config, client_config_with_identity, self_signed};

struct Running {
    address: SocketAddr,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    async fn start(router: Router, tls: Option<Arc<ServerTls>>, limits: Limits) -> Self {
        let listener = crate::listen::bind("127.0.0.1:0".parse().unwrap(), "port")
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(serve(listener, tls, router, limits, shutdown.clone()));
        tasks.close();
        Self {
            address,
            shutdown,
            tasks,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.wait().await;
    }
}

fn hello() -> Router {
    Router::new().route(
        "/",
        get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { format!("hello {peer}") }),
    )
}

async fn raw_get(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_request_is_answered_and_knows_its_peer() {
    let server = Running::start(hello(), None, Limits::default()).await;
    let mut stream = server.connect().await;
    let peer = stream.local_addr().unwrap();
    assert!(raw_get(&mut stream).await.ends_with(&format!("hello {peer}")));
    server.stop().await;
}

#[tokio::test]
async fn http2_is_spoken_without_negotiation() {
    let server = Running::start(hello(), None, Limits::default()).await;
    let tasks = TaskTracker::new();
    let io = TokioIo::new(server.connect().await);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    tasks.spawn(connection);
    let request = http::Request::get("http://localhost/")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let answer = sender
        .send_request(request)
        .await
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap()
        .to_bytes();
    assert!(answer.starts_with(b"hello 127.0.0.1"));
    server.stop().await;
}

#[tokio::test]
async fn tls_is_served_and_a_clients_certificate_reaches_the_handler() {
    let folder = tempfile::tempdir().unwrap();
    let made = self_signed(&["localhost"], Duration::from_secs(60)).unwrap();
    let (ca, mut files) = made.write(folder.path()).unwrap();
    files.client_ca_file = Some(ca.clone());
    let tls = Arc::new(ServerTls::load(files.clone(), Clock::machine()).await.unwrap());
    let router = Router::new().route(
        "/",
        get(|request: axum::extract::Request| async move {
            let shown = request
                .extensions()
                .get::<PeerCertificates>()
                .map_or(0, |shown| shown.0.len());
            format!("certificates {shown}")
        }),
    );
    let server = Running::start(router, Some(tls), Limits::default()).await;
    let anonymous = client_config(Some(&ca)).unwrap();
    let known = client_config_with_identity(Some(&ca), &files.cert_file, &files.key_file).unwrap();
    for (client, expected) in [(anonymous, "certificates 0"), (known, "certificates 1")] {
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        let name = "localhost".try_into().unwrap();
        let mut stream = connector.connect(name, server.connect().await).await.unwrap();
        assert!(raw_get(&mut stream).await.ends_with(expected));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let limits = Limits {
        header_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Running::start(hello(), None, limits).await;
    for begun in ["", "PRI * HT", "GET / HTTP/1.1\r\nhost: "] {
        let mut stream = server.connect().await;
        stream.write_all(begun.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_request_in_flight_is_answered_during_the_drain() {
    let (entered, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (seen, release) = (entered.clone(), go_on.clone());
    let router = Router::new().route(
        "/",
        get(move || async move {
            seen.notify_one();
            release.notified().await;
            "done"
        }),
    );
    let server = Running::start(router, None, Limits::default()).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    entered.notified().await;
    server.shutdown.cancel();
    go_on.notify_one();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("done"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_after_the_drain() {
    let entered = Arc::new(Notify::new());
    let seen = entered.clone();
    let router = Router::new().route(
        "/",
        get(move || async move {
            seen.notify_one();
            std::future::pending::<()>().await;
        }),
    );
    let limits = Limits {
        drain: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Running::start(router, None, limits).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    entered.notified().await;
    server.stop().await;
}

#[tokio::test]
async fn more_connections_than_allowed_wait_their_turn() {
    let server = Running::start(
        hello(),
        None,
        Limits {
            max_connections: 1,
            ..Limits::default()
        },
    )
    .await;
    let first = server.connect().await;
    let mut second = server.connect().await;
    second
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut byte = [0; 1];
    assert!(
        tokio::time::timeout(Duration::from_millis(50), second.read(&mut byte))
            .await
            .is_err()
    );
    drop(first);
    assert_eq!(second.read(&mut byte).await.unwrap(), 1);
    server.stop().await;
}

mod ways;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::serve::{Limits, serve};
use crate::tls::ServerTls;

/// A server on loopback that counts its requests.
struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Server {
    async fn start(router: Router) -> Self {
        Self::start_with(router, None).await
    }

    async fn start_with(router: Router, tls: Option<ServerTls>) -> Self {
        let listener = crate::listen::bind("127.0.0.1:0".parse().unwrap(), "port")
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let router = router.layer(axum::middleware::from_fn(
            move |request: axum::extract::Request, next: axum::middleware::Next| {
                counted.fetch_add(1, Ordering::SeqCst);
                next.run(request)
            },
        ));
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let tls = tls.map(Arc::new);
        tasks.spawn(serve(listener, tls, router, Limits::default(), shutdown.clone()));
        tasks.close();
        Self {
            address,
            requests,
            shutdown,
            tasks,
        }
    }

    fn url(&self, host: &str, path: &str) -> Url {
        format!("http://{host}:{}{path}", self.address.port())
            .parse()
            .unwrap()
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.wait().await;
    }
}

/// Gives its answers one after the other, the last again and again, and counts the questions.
#[derive(Debug)]
struct Scripted {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |addresses: &&[&str]| addresses.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            asked: AtomicUsize::new(0),
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolver for Scripted {
    fn resolve<'r>(&'r self, _name: &'r str) -> Addresses<'r> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 {
            answers.pop_front()
        } else {
            answers.front().cloned()
        };
        Box::pin(std::future::ready(
            answer.ok_or_else(|| io::Error::other("no answer")),
        ))
    }
}

fn client(destination: Destination, resolver: Arc<Scripted>) -> Outbound {
    Outbound::new(Options {
        resolver,
        connect_patience: Duration::from_millis(200),
        ..Options::new(destination)
    })
    .unwrap()
}

fn configured() -> Outbound {
    client(Destination::Configured, Scripted::new(&[&["127.0.0.1"]]))
}

async fn fetch(client: &Outbound, url: Url) -> Result<OutboundAnswer, OutboundError> {
    client.send(OutboundRequest::get(url)).await
}

fn hello() -> Router {
    Router::new().route(
        "/",
        get(|headers: HeaderMap| async move { format!("{headers:?}") }),
    )
}

fn redirect(status: StatusCode, location: String) -> Response {
    (status, [(header::LOCATION, location)]).into_response()
}

#[tokio::test]
async fn a_name_is_resolved_once_and_the_checked_address_is_connected_to() {
    let server = Server::start(hello()).await;
    let resolver = Scripted::new(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let client = client(Destination::Configured, resolver.clone());
    let answer = fetch(&client, server.url("inside.example", "/")).await.unwrap();
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!((resolver.asked(), server.requests()), (1, 1));
    server.stop().await;
}

#[tokio::test]
async fn a_name_that_is_rebound_after_its_first_answer_reaches_nothing() {
    let router = Router::new().route("/", get(|| async { [(header::CONNECTION, "close")] }));
    let server = Server::start(router).await;
    let resolver = Scripted::new(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let client = client(Destination::Configured, resolver.clone());
    assert!(fetch(&client, server.url("rebound.example", "/")).await.is_ok());
    let refused = fetch(&client, server.url("rebound.example", "/"))
        .await
        .unwrap_err();
    assert!(matches!(refused, OutboundError::Forbidden { .. }), "{refused}");
    assert_eq!((resolver.asked(), server.requests()), (2, 1));
    server.stop().await;
}

#[tokio::test]
async fn what_is_connected_to_is_what_was_checked() {
    let resolver = Scripted::new(&[&["1.1.1.1", "2606:4700:4700::1111"], &["127.0.0.1"]]);
    let checked = checked_addresses(Destination::Named, resolver.as_ref(), "rebound.example", 443).await;
    let expected: Vec<SocketAddr> = ["1.1.1.1:443", "[2606:4700:4700::1111]:443"]
        .map(|text| text.parse().unwrap())
        .into();
    assert_eq!(checked.unwrap(), expected);
    assert_eq!(resolver.asked(), 1);
    let again = checked_addresses(Destination::Named, resolver.as_ref(), "rebound.example", 443).await;
    assert!(matches!(again, Err(OutboundError::Forbidden { .. })), "{again:?}");
}

#[tokio::test]
async fn a_name_with_one_address_that_is_not_admitted_is_refused_whole() {
    let server = Server::start(hello()).await;
    for (destination, addresses) in [
        (Destination::Named, ["1.1.1.1", "127.0.0.1"]),
        (Destination::Named, ["127.0.0.1", "1.1.1.1"]),
        (Destination::Named, ["::ffff:127.0.0.1", "::ffff:127.0.0.1"]),
        (Destination::Configured, ["127.0.0.1", "169.254.169.254"]),
        (Destination::Configured, ["127.0.0.1", "::ffff:169.254.169.254"]),
    ] {
        let client = client(destination, Scripted::new(&[&addresses]));
        let refused = fetch(&client, server.url("two.example", "/")).await.unwrap_err();
        assert!(matches!(refused, OutboundError::Forbidden { .. }), "{refused}");
    }
    assert_eq!(server.requests(), 0);
    server.stop().await;
}

#[tokio::test]
async fn an_address_in_the_url_is_checked_without_a_resolver() {
    let server = Server::start(hello()).await;
    let resolver = Scripted::new(&[&["1.1.1.1"]]);
    let named = client(Destination::Named, resolver.clone());
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]"] {
        assert!(fetch(&named, server.url(host, "/")).await.is_err(), "{host}");
    }
    assert_eq!(server.requests(), 0);
    let configured = client(Destination::Configured, resolver.clone());
    assert!(fetch(&configured, server.url("127.0.0.1", "/")).await.is_ok());
    assert_eq!(resolver.asked(), 0);
    server.stop().await;
}

#[tokio::test]
async fn the_target_of_a_redirect_is_checked_like_the_first_url() {
    let inside = Server::start(hello()).await;
    for location in [
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://metadata.google.internal/".to_owned(),
        "http://[fd00:ec2::254]/".to_owned(),
        "http://u:p@127.0.0.1/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        let to = location.clone();
        let server = Server::start(Router::new().route(
            "/",
            get(move || std::future::ready(redirect(StatusCode::FOUND, to.clone()))),
        ))
        .await;
        let request = OutboundRequest::get(server.url("127.0.0.1", "/")).redirects(Redirects::Anywhere(3));
        let refused = configured().send(request).await.unwrap_err();
        assert!(
            matches!(refused, OutboundError::Forbidden { .. } | OutboundError::Url(_)),
            "{location}: {refused}"
        );
        server.stop().await;
    }
    assert_eq!(inside.requests(), 0);
    inside.stop().await;
}

#[tokio::test]
async fn another_origin_is_refused_or_gets_no_headers() {
    let other = Server::start(hello()).await;
    let to = other.url("127.0.0.1", "/").to_string();
    let router = Router::new()
        .route(
            "/away",
            get(move || std::future::ready(redirect(StatusCode::TEMPORARY_REDIRECT, to.clone()))),
        )
        .route(
            "/near",
            get(|| std::future::ready(redirect(StatusCode::FOUND, "/echo".to_owned()))),
        )
        .route(
            "/echo",
            get(|headers: HeaderMap| async move { format!("{headers:?}") }),
        );
    let server = Server::start(router).await;
    let request = |path: &str, redirects| {
        OutboundRequest::get(server.url("127.0.0.1", path))
            .header(
                http::HeaderName::from_static("x-api-key"),
                HeaderValue::from_static("hunter2"),
            )
            .redirects(redirects)
    };
    let refused = configured()
        .send(request("/away", Redirects::SameOrigin(3)))
        .await
        .unwrap_err();
    assert!(matches!(refused, OutboundError::CrossOrigin { .. }), "{refused}");
    assert_eq!(other.requests(), 0);
    let gone = configured()
        .send(request("/away", Redirects::Anywhere(3)))
        .await
        .unwrap();
    assert!(!String::from_utf8_lossy(&gone.body).contains("hunter2"));
    let near = configured()
        .send(request("/near", Redirects::SameOrigin(3)))
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(&near.body).contains("hunter2"));
    assert!(near.url.path() == "/echo");
    let shown = configured()
        .send(request("/near", Redirects::Return))
        .await
        .unwrap();
    assert_eq!(shown.status, StatusCode::FOUND);
    server.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn redirects_are_counted_and_only_followed_for_requests_that_change_nothing() {
    let round = || std::future::ready(redirect(StatusCode::PERMANENT_REDIRECT, "/".to_owned()));
    let server = Server::start(Router::new().route("/", get(round)).route("/post", post(round))).await;
    let refused = fetch(&configured(), server.url("127.0.0.1", "/"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, OutboundError::Redirects { limit: 3, .. }),
        "{refused}"
    );
    assert_eq!(server.requests(), 4);
    let request = OutboundRequest::new(Method::POST, server.url("127.0.0.1", "/post")).body("x");
    assert_eq!(
        configured().send(request).await.unwrap().status,
        StatusCode::PERMANENT_REDIRECT
    );
    server.stop().await;
}

#[tokio::test]
async fn a_body_beyond_its_bound_is_not_read() {
    async fn endless(State(chunk): State<&'static [u8]>) -> Body {
        Body::from_stream(futures_util::stream::repeat_with(move || {
            Ok::<_, io::Error>(chunk)
        }))
    }
    let router = Router::new()
        .route("/endless", get(endless))
        .route("/declared", get(|| async { vec![b'x'; 2000] }))
        .with_state(b"0123456789abcdef" as &[u8]);
    let server = Server::start(router).await;
    for path in ["/endless", "/declared"] {
        let bounds = Bounds {
            body_bytes: 1000,
            ..Bounds::default()
        };
        let request = OutboundRequest::get(server.url("127.0.0.1", path)).bounds(bounds);
        let refused = configured().send(request).await.unwrap_err();
        assert!(
            matches!(refused, OutboundError::TooLarge { limit: 1000, .. }),
            "{path}: {refused}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_is_asked_for_as_it_is_and_never_taken_compressed() {
    async fn accepted(headers: HeaderMap) -> Vec<u8> {
        headers[header::ACCEPT_ENCODING].as_bytes().to_vec()
    }
    let encoded = |encoding: &'static str, body: &'static str| {
        get(move || std::future::ready(([(header::CONTENT_ENCODING, encoding)], body)))
    };
    let router = Router::new()
        .route("/accepted", get(accepted))
        .route("/plain", encoded("Identity", "x"))
        .route("/empty", encoded("gzip", ""))
        .route("/gzip", encoded("gzip", "x"))
        .route("/twice", encoded("identity, br", "x"));
    let server = Server::start(router).await;
    let client = configured();
    let answer = fetch(&client, server.url("127.0.0.1", "/accepted"))
        .await
        .unwrap();
    assert_eq!(answer.body, "identity");
    for path in ["/plain", "/empty"] {
        let answer = fetch(&client, server.url("127.0.0.1", path)).await;
        assert!(answer.is_ok(), "{path}: {answer:?}");
    }
    for path in ["/gzip", "/twice"] {
        let refused = fetch(&client, server.url("127.0.0.1", path)).await.unwrap_err();
        assert!(refused.to_string().contains("compressed"), "{path}: {refused}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up() {
    let server = Server::start(Router::new().route("/", get(std::future::pending::<()>))).await;
    let bounds = Bounds {
        patience: Duration::from_millis(50),
        ..Bounds::default()
    };
    let request = OutboundRequest::get(server.url("127.0.0.1", "/?key=hunter2")).bounds(bounds);
    let refused = configured().send(request).await.unwrap_err();
    assert!(matches!(refused, OutboundError::Timeout { .. }), "{refused}");
    assert!(!refused.to_string().contains("hunter2"));
    server.shutdown.cancel();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_the_urls_secrets() {
    let free = crate::listen::bind("127.0.0.1:0".parse().unwrap(), "port")
        .await
        .unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("http://inside.example:{port}/hunter2?hunter2")
        .parse()
        .unwrap();
    let refused = fetch(&configured(), url).await.unwrap_err().to_string();
    assert!(
        refused.contains("inside.example") && !refused.contains("hunter2"),
        "{refused}"
    );
}

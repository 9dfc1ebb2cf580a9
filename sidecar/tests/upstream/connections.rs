//! What one request leaves behind on a connection over HTTP, and what that does to the next: a server written byte by byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sidecar::upstream::{Origin, Upstream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::*;

/// Beyond what the two ends of a connection hold between them.
const LARGE: usize = 12 << 20;
const TOOLS: &str = r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#;
const OPENED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bytes","version":"1"}}"#;

/// How calls are answered; everything else is answered as it should be.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Plain,
    /// A large request is answered once its beginning was read, and the rest is never read.
    Early,
    /// With interim responses first.
    Interim,
    /// And the connection is closed for writing.
    HalfClosed,
    /// Twice, the second time as if to the next request.
    Twice,
    /// And the connection is closed.
    Closed,
    /// Saying that the connection is closed after a second without use.
    Brief,
    /// In a session whose stream of news never begins.
    Unheard,
}

struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    _serving: JoinSet<()>,
}

/// How many connections, streams of news and ends of sessions were asked for.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    listeners: AtomicUsize,
    goodbyes: AtomicUsize,
}

impl Server {
    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Seen>::default();
        let all = Arc::clone(&seen);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                all.connections.fetch_add(1, Ordering::Relaxed);
                open.spawn(serve(stream, manner, Arc::clone(&all)));
            }
        });
        Self {
            address,
            seen,
            _serving: serving,
        }
    }

    fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }
}

/// Serves one connection until its client, or its manner, ends it.
async fn serve(mut stream: TcpStream, manner: Manner, seen: Arc<Seen>) {
    let mut read = Vec::new();
    while let Some(request) = next(&mut stream, &mut read, manner).await {
        let id = request.split("\"id\":").nth(1);
        let id = id.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        let is_call = request.contains("\"tools/call\"");
        if request.starts_with("GET") && matches!(manner, Manner::Unheard) {
            seen.listeners.fetch_add(1, Ordering::Relaxed);
            return std::future::pending().await;
        }
        if request.starts_with("DELETE") {
            seen.goodbyes.fetch_add(1, Ordering::Relaxed);
        }
        let answer = match id {
            None => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Some(id) if request.contains("\"initialize\"") && matches!(manner, Manner::Unheard) => {
                let news = OPENED.replace("\"tools\":{}", "\"tools\":{\"listChanged\":true}");
                let opened = json(&id, "result", &news);
                opened.replace("content-type", "mcp-session-id: one\r\ncontent-type")
            }
            Some(id) if request.contains("\"initialize\"") => json(&id, "result", OPENED),
            Some(id) if request.contains("\"tools/list\"") => json(&id, "result", TOOLS),
            Some(id) if is_call => answer(&id, manner),
            Some(id) => json(&id, "error", r#"{"code":-32601,"message":"no such method"}"#),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        match manner {
            Manner::Closed if is_call => return,
            Manner::HalfClosed if is_call => {
                stream.shutdown().await.unwrap();
                return std::future::pending().await;
            }
            // What is left of the request.
            Manner::Early if !read.is_empty() => return std::future::pending().await,
            _ => {}
        }
    }
}

/// The next request, or its beginning where that is enough.
async fn next(stream: &mut TcpStream, read: &mut Vec<u8>, manner: Manner) -> Option<String> {
    loop {
        let text = String::from_utf8_lossy(read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head_lower = head.to_ascii_lowercase();
            let length = head_lower
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.lines().next())
                .map_or(0, |length| length.trim().parse::<usize>().unwrap());
            let is_begun = matches!(manner, Manner::Early) && length > LARGE && body.len() > 1 << 10;
            if body.len() >= length || is_begun {
                let whole = head.len() + 4 + length;
                if !is_begun {
                    read.drain(..whole);
                }
                return Some(text);
            }
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(length) => read.extend_from_slice(&chunk[..length]),
        }
    }
}

fn json(id: &str, kind: &str, value: &str) -> String {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"{kind}":{value}}}"#);
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn answer(id: &str, manner: Manner) -> String {
    let of = |id: &str| {
        json(
            id,
            "result",
            &format!(r#"{{"content":[{{"type":"text","text":"to {id}"}}]}}"#),
        )
    };
    match manner {
        Manner::Brief => of(id).replace("content-type", "keep-alive: timeout=1\r\ncontent-type"),
        Manner::Plain | Manner::Early | Manner::HalfClosed | Manner::Closed | Manner::Unheard => of(id),
        Manner::Interim => format!(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n{}",
            of(id)
        ),
        Manner::Twice => {
            let next = id.parse::<u64>().unwrap() + 1;
            of(id) + &of(&next.to_string()).replace("to ", "not to ")
        }
    }
}

async fn answered(upstream: &Upstream, arguments: &str) -> String {
    let mut call = request("echo", arguments);
    call.timeout = Some(Duration::from_secs(10));
    text(&upstream.call(call).await.unwrap())
}

#[tokio::test]
async fn requests_one_after_the_other_share_a_connection() {
    for manner in [Manner::Plain, Manner::Interim] {
        let server = Server::start(manner).await;
        let (_upstreams, upstream) = connected(http(&format!("http://{}/mcp", server.address))).await;
        answered(&upstream, "{}").await;
        let before = server.connections();
        for _ in 0..20 {
            answered(&upstream, "{}").await;
        }
        assert_eq!(server.connections(), before, "{manner:?}");
    }
}

#[tokio::test]
async fn a_connection_that_its_upstream_is_about_to_close_is_not_used_again() {
    let server = Server::start(Manner::Brief).await;
    let (_upstreams, upstream) = connected(http(&format!("http://{}/mcp", server.address))).await;
    answered(&upstream, "{}").await;
    let before = server.connections();
    for _ in 0..5 {
        answered(&upstream, "{}").await;
    }
    // One more may be left of what was not a call.
    assert!(
        server.connections() >= before + 4,
        "{} of 5 are new",
        server.connections() - before
    );
}

#[tokio::test]
async fn what_an_upstream_answers_before_it_has_read_is_an_answer_and_hinders_no_later_call() {
    let server = Server::start(Manner::Early).await;
    let (_upstreams, upstream) = connected(http(&format!("http://{}/mcp", server.address))).await;
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(LARGE));
    for _ in 0..3 {
        assert!(answered(&upstream, &large).await.starts_with("to "));
        assert!(answered(&upstream, "{}").await.starts_with("to "));
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_or_said_too_much_is_not_used_again() {
    for manner in [Manner::HalfClosed, Manner::Closed, Manner::Twice] {
        let server = Server::start(manner).await;
        let (_upstreams, upstream) = connected(http(&format!("http://{}/mcp", server.address))).await;
        for _ in 0..20 {
            let answer = answered(&upstream, "{}").await;
            assert!(answer.starts_with("to "), "{manner:?}: {answer}");
            // An end that the kernel has not told of yet cannot be seen.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_connection_whose_opener_gave_up_is_closed_and_the_next_request_has_its_own() {
    let server = Server::start(Manner::Unheard).await;
    let (_upstreams, upstream) = connected(http(&format!("http://{}/mcp", server.address))).await;
    let origin = Origin::without_session("anna".parse().unwrap(), None, None);
    let mut call = request("echo", "{}");
    call.origin = Some(Arc::new(origin));
    // One listens for all agents, and one for this one.
    let listened = || server.seen.listeners.load(Ordering::Relaxed) == 2;
    tokio::select! {
        early = upstream.call(call.clone()) => panic!("{early:?}"),
        () = until(listened) => {}
    }
    until(|| server.seen.goodbyes.load(Ordering::Relaxed) == 1).await;
    let patient = upstream.call(call).await.unwrap();
    assert!(text(&patient).starts_with("to "));
    assert_eq!(
        server.seen.goodbyes.load(Ordering::Relaxed),
        1,
        "that one is kept"
    );
}

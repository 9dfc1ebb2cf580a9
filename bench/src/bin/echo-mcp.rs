//! `echo-mcp http` serves MCP on a loopback port, whose URL it prints; `echo-mcp stdio` on its standard input and output.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use bench::echo::{DOCUMENT, Echo, MODERN};
use bench::error::{During as _, Result};
use bytes::Bytes;
use clap::{Parser, ValueEnum};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

/// An MCP server that echoes.
#[derive(Parser)]
struct Arguments {
    /// How it is spoken to.
    mode: Mode,
    /// Tools in the catalogue.
    #[arg(long, default_value_t = 1)]
    tools: usize,
    /// The loopback port; 0: any.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Http,
    Stdio,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let echo = Arc::new(Echo::new(arguments.tools));
    match arguments.mode {
        Mode::Http => http(&echo, arguments.port).await,
        Mode::Stdio => stdio(&echo).await,
    }
}

async fn stdio(echo: &Echo) -> Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, tokio::io::stdin());
    let mut output = tokio::io::stdout();
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).await.during("read a line")? == 0 {
            return Ok(());
        }
        let is_modern = memchr::memmem::find(&line, b"io.modelcontextprotocol/protocolVersion").is_some();
        if let Some(answer) = echo.answer(&line, is_modern) {
            let mut answer = Vec::from(answer);
            answer.push(b'\n');
            output.write_all(&answer).await.during("write an answer")?;
            output.flush().await.during("write an answer")?;
        }
    }
}

async fn http(echo: &Arc<Echo>, port: u16) -> Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port)))
        .await
        .during("listen")?;
    let address = listener.local_addr().during("listen")?;
    writeln!(std::io::stdout(), "http://{address}/mcp").during("print the URL")?;
    let connections = TaskTracker::new();
    loop {
        let (stream, _) = listener.accept().await.during("accept")?;
        connections.spawn(serve(stream, Arc::clone(echo)));
    }
}

async fn serve(stream: TcpStream, echo: Arc<Echo>) {
    // A client that leaves is no error of a server.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let echo = Arc::clone(&echo);
        async move { Ok::<_, Infallible>(answer(&echo, request).await) }
    });
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(echo: &Echo, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let is_rest = request.uri().path() == "/echo";
    if request.uri().path() == "/openapi.json" {
        return json(Bytes::from_static(DOCUMENT.as_bytes()));
    }
    if request.method() != Method::POST {
        return empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    let is_modern = request
        .headers()
        .get("mcp-protocol-version")
        .is_some_and(|version| version == MODERN);
    let Ok(body) = request.into_body().collect().await else {
        return empty(StatusCode::BAD_REQUEST);
    };
    let body = body.to_bytes();
    if is_rest {
        return json(body);
    }
    match echo.answer(&body, is_modern) {
        Some(answer) => json(answer),
        None => empty(StatusCode::ACCEPTED),
    }
}

fn json(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

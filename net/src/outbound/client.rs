//! The client itself.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use url::Url;

use super::destination::Destination;
use super::dial::{Dialer, Options};
use super::error::OutboundError;
use super::request::{OutboundAnswer, OutboundRequest, Redirects};

/// Connections to one origin that are kept without use.
const MAX_IDLE: usize = 64;
/// How long they are kept.
const IDLE: Duration = Duration::from_secs(90);
/// The encoding of bodies that is none.
const PLAIN: &str = "identity";
const USER_AGENT: &str = concat!("toolgate/", env!("CARGO_PKG_VERSION"));

/// A client for URLs that were named by one kind of people. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Outbound {
    dialer: Dialer,
    connections: Arc<ArcSwap<Connections>>,
}

/// Connections that were made with one trust: none of them outlives it.
#[derive(Debug)]
struct Connections {
    trusted: Arc<ClientConfig>,
    http: Client<Dialer, Full<Bytes>>,
}

impl Connections {
    fn new(dialer: &Dialer, trusted: Arc<ClientConfig>) -> Self {
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .build(dialer.clone());
        Self { trusted, http }
    }
}

impl Outbound {
    /// A client.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(options: Options) -> Result<Self, OutboundError> {
        let dialer = Dialer::new(options)?;
        let connections = Connections::new(&dialer, dialer.trusted_so_far());
        Ok(Self {
            connections: Arc::new(ArcSwap::from_pointee(connections)),
            dialer,
        })
    }

    /// Sends a request and reads its whole answer, whatever its status.
    ///
    /// # Errors
    /// When a URL on the way is refused, or there is no whole answer within the request's bounds.
    pub async fn send(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        let patience = request.bounds.patience;
        let host = shown(&request.url);
        match tokio::time::timeout(patience, Box::pin(self.follow(request))).await {
            Ok(answered) => answered,
            Err(_) => Err(OutboundError::Timeout { host, patience }),
        }
    }

    async fn follow(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        let OutboundRequest {
            method,
            mut url,
            mut headers,
            body,
            redirects,
            bounds,
        } = request;
        let is_safe = method == Method::GET || method == Method::HEAD;
        complete(&mut headers);
        let (limit, anywhere) = match redirects {
            Redirects::Return => (0, false),
            Redirects::SameOrigin(limit) => (limit, false),
            Redirects::Anywhere(limit) => (limit, true),
        };
        for _ in 0..=limit {
            let answer = self.ask(&method, &url, &headers, &body).await?;
            if !is_redirect(answer.status()) || !is_safe || redirects == Redirects::Return {
                return whole(answer, url, bounds.body_bytes).await;
            }
            let next = target(&url, answer.headers()).ok_or_else(|| too_many(&url, limit))?;
            if next.origin() != url.origin() {
                check_leaving(&url, &next, anywhere)?;
                headers.clear();
                complete(&mut headers);
            }
            url = next;
        }
        Err(too_many(&url, limit))
    }
}

impl Outbound {
    async fn ask(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<http::Response<Incoming>, OutboundError> {
        self.destination().check(url)?;
        let mut bare = url.clone();
        bare.set_fragment(None);
        let mut request = http::Request::new(Full::new(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = http::Uri::try_from(bare.as_str())
            .map_err(|_| OutboundError::Url("it holds characters that HTTP does not allow"))?;
        *request.headers_mut() = headers.clone();
        let http = self.connections().await;
        http.http
            .request(request)
            .await
            .map_err(|error| failed(url, &error))
    }

    /// The connections of what is trusted now.
    async fn connections(&self) -> Arc<Connections> {
        let connections = self.connections.load_full();
        let trusted = self.dialer.trusted().await;
        if Arc::ptr_eq(&connections.trusted, &trusted) {
            return connections;
        }
        let renewed = Arc::new(Connections::new(&self.dialer, trusted));
        self.connections.store(Arc::clone(&renewed));
        renewed
    }

    fn destination(&self) -> Destination {
        self.dialer.destination()
    }
}

fn too_many(url: &Url, limit: usize) -> OutboundError {
    OutboundError::Redirects {
        host: shown(url),
        limit,
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

/// Where a redirect leads; its fragment is nobody's business.
fn target(from: &Url, headers: &HeaderMap) -> Option<Url> {
    let location = headers.get(header::LOCATION)?.to_str().ok()?;
    let mut to = from.join(location).ok()?;
    to.set_fragment(None);
    Some(to)
}

fn check_leaving(from: &Url, to: &Url, anywhere: bool) -> Result<(), OutboundError> {
    if !anywhere {
        return Err(OutboundError::CrossOrigin {
            from: shown(from),
            to: shown(to),
        });
    }
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(OutboundError::Downgrade { from: shown(from) });
    }
    Ok(())
}

async fn whole(
    answer: http::Response<Incoming>,
    url: Url,
    limit: usize,
) -> Result<OutboundAnswer, OutboundError> {
    let too_large = || OutboundError::TooLarge {
        host: shown(&url),
        limit,
    };
    let (head, mut incoming) = answer.into_parts();
    if usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX) > limit {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        // Trailers are nobody's business.
        let Ok(chunk) = frame.map_err(|error| failed(&url, &error))?.into_data() else {
            continue;
        };
        if body.len().saturating_add(chunk.len()) > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    if !body.is_empty() && is_encoded(&head.headers) {
        return Err(OutboundError::Failed {
            host: shown(&url),
            problem: "the answer's body is compressed, which was not asked for".to_owned(),
        });
    }
    Ok(OutboundAnswer {
        status: head.status,
        headers: head.headers,
        body: Bytes::from(body),
        url,
    })
}

/// Adds what every request has.
fn complete(headers: &mut HeaderMap) {
    let always = [
        (header::USER_AGENT, USER_AGENT),
        (header::ACCEPT, "*/*"),
        // Without it every encoding is accepted (RFC 9110, section 12.5.3), and none is decoded here.
        (header::ACCEPT_ENCODING, PLAIN),
    ];
    for (name, value) in always {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

fn is_encoded(headers: &HeaderMap) -> bool {
    let encodings = headers.get_all(header::CONTENT_ENCODING);
    encodings
        .iter()
        .any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(PLAIN.as_bytes()))
}

/// The host of a URL for messages: its path and query may hold secrets.
fn shown(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "a URL without a host".to_owned(),
    }
}

/// The guard's own refusal where that is the cause, else the innermost cause's words.
fn failed(url: &Url, error: &(dyn StdError + 'static)) -> OutboundError {
    let mut cause = error;
    loop {
        if let Some(refusal) = cause.downcast_ref::<OutboundError>() {
            return refusal.clone();
        }
        match cause.source() {
            Some(inner) => cause = inner,
            None => break,
        }
    }
    OutboundError::Failed {
        host: shown(url),
        problem: cause.to_string(),
    }
}

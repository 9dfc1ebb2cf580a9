//! The client itself.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

use super::destination::Destination;
use super::error::OutboundError;
use super::request::{OutboundAnswer, OutboundRequest, Redirects};
use super::resolver::{Guarded, Resolver, SystemResolver};

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Connections to one origin that are kept without use.
const MAX_IDLE: usize = 64;

/// How a client is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who named the URLs that it will be given.
    pub destination: Destination,
    /// The certificate authority to trust instead of the public roots.
    pub ca_file: Option<PathBuf>,
    /// Looks up names.
    pub resolver: Arc<dyn Resolver>,
    /// How long a connection may take to be made.
    pub connect_patience: Duration,
}

impl Options {
    /// The public roots and the operating system's resolver.
    pub fn new(destination: Destination) -> Self {
        Self {
            destination,
            ca_file: None,
            resolver: Arc::new(SystemResolver),
            connect_patience: CONNECT_PATIENCE,
        }
    }
}

/// A client for URLs that were named by one kind of people. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Outbound {
    destination: Destination,
    http: reqwest::Client,
}

impl Outbound {
    /// A client. Reads the file of the certificate authority, if there is one.
    ///
    /// # Errors
    /// When that file cannot be used.
    pub fn new(options: Options) -> Result<Self, OutboundError> {
        let tls = crate::tls::client_config(options.ca_file.as_deref())
            .map_err(|error| OutboundError::Setup(error.to_string()))?;
        let guarded = Guarded {
            destination: options.destination,
            resolver: options.resolver,
        };
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(guarded)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .tcp_nodelay(true)
            .connect_timeout(options.connect_patience)
            .pool_max_idle_per_host(MAX_IDLE)
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| OutboundError::Setup(error.to_string()))?;
        Ok(Self {
            destination: options.destination,
            http,
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
        let (limit, anywhere) = match redirects {
            Redirects::Return => (0, false),
            Redirects::SameOrigin(limit) => (limit, false),
            Redirects::Anywhere(limit) => (limit, true),
        };
        for _ in 0..=limit {
            self.destination.check(&url)?;
            let sent = self
                .http
                .request(method.clone(), url.clone())
                .headers(headers.clone())
                .body(body.clone());
            let answer = sent.send().await.map_err(|error| failed(&url, error))?;
            if !is_redirect(answer.status()) || !is_safe || redirects == Redirects::Return {
                return whole(answer, url, bounds.body_bytes).await;
            }
            let next = target(&url, answer.headers()).ok_or_else(|| too_many(&url, limit))?;
            if next.origin() != url.origin() {
                check_leaving(&url, &next, anywhere)?;
                headers.clear();
            }
            url = next;
        }
        Err(too_many(&url, limit))
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
    mut answer: reqwest::Response,
    url: Url,
    limit: usize,
) -> Result<OutboundAnswer, OutboundError> {
    let too_large = || OutboundError::TooLarge {
        host: shown(&url),
        limit,
    };
    let declared = answer.content_length().unwrap_or(0);
    if usize::try_from(declared).unwrap_or(usize::MAX) > limit {
        return Err(too_large());
    }
    let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
    let mut body = BytesMut::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&url, error))? {
        if body.len().saturating_add(chunk.len()) > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(OutboundAnswer {
        status,
        headers,
        body: Bytes::from(body),
        url,
    })
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
fn failed(url: &Url, error: reqwest::Error) -> OutboundError {
    let error = error.without_url();
    let mut cause: &(dyn StdError + 'static) = &error;
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

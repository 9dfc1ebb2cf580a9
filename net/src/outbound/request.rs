//! What is asked of another server, and what it answered.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use url::Url;

/// Redirects that are followed by default.
const MAX_REDIRECTS: usize = 3;

/// What becomes of a redirect. Only GET and HEAD follow any; the answer of another method is given as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// It is an answer like another.
    Return,
    /// Followed this often within the origin; another origin is an error.
    SameOrigin(usize),
    /// Followed this often. To another origin the request goes without its headers, and never from https to http.
    Anywhere(usize),
}

/// How much is waited for and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// For the whole exchange: redirects and the answer's last byte included.
    pub patience: Duration,
    /// The largest body that is read.
    pub body_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            body_bytes: 1 << 20,
        }
    }
}

/// One request.
#[derive(Debug, Clone)]
pub struct OutboundRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) redirects: Redirects,
    pub(super) bounds: Bounds,
}

impl OutboundRequest {
    /// A request without headers and body, redirected within its origin.
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            redirects: Redirects::SameOrigin(MAX_REDIRECTS),
            bounds: Bounds::default(),
        }
    }

    /// A GET.
    pub fn get(url: Url) -> Self {
        Self::new(Method::GET, url)
    }

    /// Its method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Adds a header. They are sent to the origin of the URL and to no other.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Replaces all headers.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// What becomes of redirects.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }

    /// How much is waited for and read.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }
}

/// A whole answer, of any status.
#[derive(Debug, Clone)]
pub struct OutboundAnswer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, within the bound.
    pub body: Bytes,
    /// Where it came from, after redirects.
    pub url: Url,
}

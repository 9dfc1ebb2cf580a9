//! What is configured about an OpenAPI service.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use net::outbound::Proxy;
use tools::openapi::Selection;

use crate::upstream::retry::RetryPolicy;
use crate::upstream::{SpecError, UpstreamLimits};

/// One OpenAPI service. The values of its headers are secrets and are never shown.
#[derive(Clone, PartialEq)]
pub struct OpenApiSpec {
    /// Its name among the upstreams.
    pub name: Arc<str>,
    /// Whether its tools' names begin with that name.
    pub is_prefixed: bool,
    /// Its place among the services of the configuration: of two that declare one name, the first has it.
    pub place: usize,
    /// Where its document is.
    pub document: DocumentPlace,
    /// Where calls go, whatever the document says.
    pub backend_url: Option<String>,
    /// Headers of every request, variables in them already replaced.
    pub headers: Vec<(String, String)>,
    /// The operations that become tools; empty: all.
    pub include: Vec<Selection>,
    /// The proxy on the way to the document and the service.
    pub proxy: Option<Arc<Proxy>>,
    /// The longest call.
    pub timeout: Duration,
    /// The folder of the last good document; without one none is kept.
    pub keep_in: Option<PathBuf>,
    /// Bounds of messages.
    pub limits: UpstreamLimits,
    /// When the document is tried to be read again.
    pub retry: RetryPolicy,
}

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentPlace {
    /// Behind a URL, `http` or `https`.
    Url(String),
    /// In a file.
    File(PathBuf),
}

impl OpenApiSpec {
    /// What the configuration says about a service.
    #[must_use]
    pub fn of(
        service: &config::model::OpenApiService,
        place: usize,
        keep_in: &Path,
        message_bytes: usize,
        proxy: Option<&Arc<Proxy>>,
    ) -> Self {
        let document = match (&service.url, &service.file) {
            (_, Some(file)) => DocumentPlace::File(file.clone()),
            (url, None) => DocumentPlace::Url(url.clone().unwrap_or_default()),
        };
        Self {
            name: service.upstream().as_str().into(),
            is_prefixed: service.name.is_some(),
            place,
            document,
            backend_url: service.backend_url.clone(),
            headers: service
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                .collect(),
            include: service.include.clone(),
            proxy: proxy.cloned(),
            timeout: service.timeout,
            keep_in: Some(keep_in.to_owned()),
            limits: UpstreamLimits {
                message_bytes,
                ..UpstreamLimits::default()
            },
            retry: RetryPolicy::default(),
        }
    }

    /// A document by its URL or file alone, to see its tools: none of them is to be called.
    #[must_use]
    pub fn to_look_at(place: &str) -> Self {
        let is_url = place.starts_with("http://") || place.starts_with("https://");
        let (name, document) = if is_url {
            (
                config::model::named_by_url(place),
                DocumentPlace::Url(place.to_owned()),
            )
        } else {
            let path = PathBuf::from(place);
            (config::model::named_by_file(&path), DocumentPlace::File(path))
        };
        Self {
            name: name.as_str().into(),
            is_prefixed: false,
            place: usize::MAX,
            document,
            // So that it does not matter where the document wants calls to go.
            backend_url: Some("http://localhost".to_owned()),
            headers: Vec::new(),
            include: Vec::new(),
            proxy: None,
            timeout: Duration::from_secs(30),
            keep_in: None,
            limits: UpstreamLimits::default(),
            retry: RetryPolicy::default(),
        }
    }

    /// The headers as they are sent.
    pub(super) fn header_map(&self) -> Result<http::HeaderMap, SpecError> {
        let mut headers = http::HeaderMap::new();
        for (name, value) in &self.headers {
            let header = HeaderName::try_from(name.as_str())
                .map_err(|_| SpecError::HeaderName { name: name.clone() })?;
            let mut value =
                HeaderValue::from_str(value).map_err(|_| SpecError::HeaderValue { name: name.clone() })?;
            value.set_sensitive(true);
            headers.append(header, value);
        }
        Ok(headers)
    }

    /// The bytes of an answer that are read: told as text and once more as structure, they stay within a message.
    pub(super) fn answer_bytes(&self) -> usize {
        self.limits.message_bytes / 3
    }
}

impl fmt::Debug for OpenApiSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenApiSpec")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

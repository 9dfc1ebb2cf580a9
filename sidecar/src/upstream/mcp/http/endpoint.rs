//! Where an HTTP upstream is, and how it is connected to.

use http::header::{HOST, HeaderName, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, Uri};
use net::outbound::{Destination, Dialed, Dialer, Options, OutboundError, Scheme, Url};
use rustls::pki_types::ServerName;

use crate::upstream::mcp::failure::Failure;
use crate::upstream::{HttpSpec, SpecError};

/// Where an HTTP upstream is, and how it is connected to.
#[derive(Clone)]
pub(in super::super) struct Endpoint {
    scheme: Scheme,
    dialer: Dialer,
    host: String,
    port: u16,
    pub(super) target: PathAndQuery,
    /// What every request carries: `Host` and the configured headers.
    pub(super) headers: HeaderMap,
}

impl std::fmt::Debug for Endpoint {
    // Headers hold credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Endpoint({}:{}{})", self.host, self.port, self.target)
    }
}

impl Endpoint {
    /// Reads the URL and the headers.
    pub(in super::super) fn new(spec: &HttpSpec) -> Result<Self, SpecError> {
        let unusable = |problem: &str| SpecError::Url {
            url: without_user(&spec.url),
            problem: problem.to_owned(),
        };
        let uri: Uri = spec.url.parse().map_err(|_| unusable("it is not a URL"))?;
        let authority = uri.authority().ok_or_else(|| unusable("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(unusable("it holds credentials; put them into headers"));
        }
        let url: Url = spec.url.parse().map_err(|_| unusable("it is not a URL"))?;
        Destination::Configured
            .check(&url)
            .map_err(|error| unusable(&error.to_string()))?;
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let (scheme, default_port) = match uri.scheme_str() {
            Some("http") => (Scheme::Plain, 80),
            Some("https") => {
                ServerName::try_from(host.as_str()).map_err(|_| unusable("its host is not a name"))?;
                (Scheme::Tls, 443)
            }
            Some(_) | None => return Err(unusable("it must begin with http:// or https://")),
        };
        let dialer = Dialer::new(Options {
            tls: spec.tls.clone(),
            proxy: spec.proxy.clone(),
            ..Options::new(Destination::Configured)
        })
        .map_err(|error| unusable(&error.to_string()))?;
        let mut headers = configured(&spec.headers)?;
        let host_header =
            HeaderValue::from_str(authority.as_str()).map_err(|_| unusable("its host is not a name"))?;
        headers.insert(HOST, host_header);
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!(
                "toolgate/",
                env!("CARGO_PKG_VERSION")
            )));
        Ok(Self {
            scheme,
            dialer,
            port: authority.port_u16().unwrap_or(default_port),
            host,
            target: uri
                .path_and_query()
                .cloned()
                .unwrap_or(PathAndQuery::from_static("/")),
            headers,
        })
    }

    /// Opens a connection: metadata services and the link are never reached.
    pub(super) async fn connect(&self) -> Result<Dialed, Failure> {
        let connected = self.dialer.connect(self.scheme, &self.host, self.port).await;
        connected.map_err(|error| {
            let problem = match error {
                OutboundError::Failed { problem, .. } => problem,
                other => other.to_string(),
            };
            Failure::Unreachable(format!(
                "cannot connect to {}:{}: {problem}",
                self.host, self.port
            ))
        })
    }

    /// Where a `Location` leads; none when that is another origin.
    pub(super) fn redirected(&self, location: &HeaderValue) -> Option<PathAndQuery> {
        self.within(location.to_str().ok()?)
    }

    /// What a reference means at this endpoint; none when that is another origin.
    pub(super) fn within(&self, reference: &str) -> Option<PathAndQuery> {
        if reference.starts_with("//") || reference.starts_with('\\') {
            return None;
        }
        if reference.starts_with('/') {
            return reference.parse().ok();
        }
        let Some((_, rest)) = reference.split_once("://") else {
            return self.beside(reference);
        };
        let uri: Uri = reference.parse().ok().filter(|_| !rest.is_empty())?;
        let (scheme, default_port) = match self.scheme {
            Scheme::Plain => ("http", 80),
            Scheme::Tls => ("https", 443),
        };
        let authority = uri.authority()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let is_same = uri.scheme_str() == Some(scheme)
            && host.eq_ignore_ascii_case(&self.host)
            && authority.port_u16().unwrap_or(default_port) == self.port
            && !authority.as_str().contains('@');
        is_same.then(|| {
            uri.path_and_query()
                .cloned()
                .unwrap_or(PathAndQuery::from_static("/"))
        })
    }
}

impl Endpoint {
    /// A relative reference, without dot segments.
    fn beside(&self, reference: &str) -> Option<PathAndQuery> {
        let path = self.target.path();
        let reference = reference.strip_prefix("./").unwrap_or(reference);
        if reference.is_empty() || reference.contains("../") {
            return None;
        }
        let folder = match reference.strip_prefix('?') {
            Some(_) => path,
            None => path.rfind('/').and_then(|end| path.get(..=end))?,
        };
        format!("{folder}{reference}").parse().ok()
    }
}

/// A URL for messages: what stands before an `@` may be a password.
fn without_user(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(start), Some(at)) if start < at => {
            let scheme = url.get(..start + 3).unwrap_or_default();
            format!("{scheme}…{}", url.get(at..).unwrap_or_default())
        }
        _ => url.to_owned(),
    }
}

fn configured(pairs: &[(String, String)]) -> Result<HeaderMap, SpecError> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let header =
            HeaderName::try_from(name.as_str()).map_err(|_| SpecError::HeaderName { name: name.clone() })?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| SpecError::HeaderValue { name: name.clone() })?;
        value.set_sensitive(true);
        headers.append(header, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Result<Endpoint, SpecError> {
        Endpoint::new(&HttpSpec {
            url: url.to_owned(),
            ..HttpSpec::default()
        })
    }

    #[test]
    fn a_redirect_within_the_origin_is_followed_and_no_other() {
        let here = endpoint("http://localhost:9070/mcp").unwrap();
        let to = |location: &'static str| {
            here.redirected(&HeaderValue::from_static(location))
                .map(|path| path.to_string())
        };
        assert_eq!(to("/mcp/").as_deref(), Some("/mcp/"));
        assert_eq!(to("http://LOCALHOST:9070/x?y").as_deref(), Some("/x?y"));
        for other in [
            "//evil.example/mcp",
            "http://localhost:9071/mcp",
            "https://localhost:9070/mcp",
            "http://evil.example:9070/",
            "http://localhost:9070@evil.example/",
        ] {
            assert_eq!(to(other), None, "{other}");
        }
    }

    #[test]
    fn a_reference_means_what_it_means_beside_the_endpoint() {
        let here = endpoint("http://localhost:9070/a/sse?x=1").unwrap();
        let to = |reference: &str| here.within(reference).map(|path| path.to_string());
        assert_eq!(to("/messages?s=1").as_deref(), Some("/messages?s=1"));
        assert_eq!(to("messages?s=1").as_deref(), Some("/a/messages?s=1"));
        assert_eq!(to("./messages").as_deref(), Some("/a/messages"));
        assert_eq!(to("?s=1").as_deref(), Some("/a/sse?s=1"));
        assert_eq!(to("http://localhost:9070/m").as_deref(), Some("/m"));
        for other in [
            "",
            "../m",
            "//evil.example/m",
            "\\\\evil.example\\m",
            "http://evil.example/m",
            "https://localhost:9070/m",
            "/a b",
        ] {
            assert_eq!(to(other), None, "{other}");
        }
    }

    #[test]
    fn urls_that_cannot_be_used_say_so_without_their_passwords() {
        for url in ["ftp://x/", "mcp", "/mcp", "http://u:hunter2@x/"] {
            let error = endpoint(url).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(endpoint("https://example.com").is_ok());
    }

    #[tokio::test]
    async fn metadata_and_the_link_are_no_upstreams() {
        for url in [
            "http://169.254.169.254/mcp",
            "http://0xa9fea9fe/mcp",
            "http://[::ffff:169.254.169.254]/mcp",
            "http://[fd00:ec2::254]/mcp",
            "http://metadata.google.internal/mcp",
        ] {
            assert!(endpoint(url).is_err(), "{url}");
        }
        // A name that leads there is refused when it is connected to.
        let here = Endpoint {
            host: "0.0.0.0".to_owned(),
            ..endpoint("http://localhost:9/").unwrap()
        };
        let refused = here.connect().await.err().unwrap().to_string();
        assert!(refused.contains("a reserved address"), "{refused}");
    }
}

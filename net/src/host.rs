//! Guards HTTP endpoints against DNS rebinding: a page on the reader's browser that lets its own name
//! point at a loopback address is told by its `Host`, and by its `Origin`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;
use http::{HeaderMap, Uri, header};

use crate::problem::Problem;

/// The host names under which a listener may be called: loopback names, IP addresses (those cannot be
/// rebound), and the configured ones.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Arc<[String]>);

impl AllowedHosts {
    /// Loopback names and addresses, and `configured` names (without port).
    pub fn new<I: IntoIterator<Item = S>, S: AsRef<str>>(configured: I) -> Self {
        Self(
            configured
                .into_iter()
                .map(|name| name.as_ref().to_ascii_lowercase())
                .collect(),
        )
    }

    /// Refuses a request whose `Host` (or `:authority`) or `Origin` is not allowed.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let host = requested_host(uri, headers)?;
        if !self.is_called_by(host.host()) {
            return Err(Problem::forbidden(
                "the Host of the request is not a name of this server; add it to listen.hosts to allow it",
            ));
        }
        match headers.get(header::ORIGIN) {
            None => Ok(()),
            Some(origin) if self.is_trusted(origin.to_str().ok(), &host) => Ok(()),
            Some(_) => Err(Problem::forbidden(
                "the Origin of the request is not allowed; add its host to listen.hosts to allow it",
            )),
        }
    }

    fn is_called_by(&self, host: &str) -> bool {
        address(host).is_some() || is_loopback(host) || self.is_configured(host)
    }

    /// A page of this server, under whichever of its loopback names, or of a configured host. Another server of this machine is
    /// somebody else: what it serves in a browser must not act as an agent.
    fn is_trusted(&self, origin: Option<&str>, host: &Authority) -> bool {
        origin.and_then(origin_authority).is_some_and(|origin| {
            self.is_configured(origin.host())
                || origin.as_str().eq_ignore_ascii_case(host.as_str())
                || (is_loopback(origin.host()) && is_loopback(host.host()) && origin.port() == host.port())
        })
    }

    fn is_configured(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        self.0.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    host.eq_ignore_ascii_case("localhost") || address(host).is_some_and(|address| address.is_loopback())
}

/// Whether a request comes from a page of this very server: it has an `Origin`, equal to the host it calls.
pub fn is_same_origin(uri: &Uri, headers: &HeaderMap) -> bool {
    let origin = headers
        .get(header::ORIGIN)
        .and_then(|origin| origin.to_str().ok())
        .and_then(origin_authority);
    match (origin, requested_host(uri, headers)) {
        (Some(origin), Ok(host)) => origin.as_str().eq_ignore_ascii_case(host.as_str()),
        _ => false,
    }
}

/// The guard as axum middleware: `middleware::from_fn_with_state(allowed, host::guard)`.
pub async fn guard(State(allowed): State<AllowedHosts>, request: Request, next: Next) -> Response {
    match allowed.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// The one host that the request names. Two that differ, several, or none: refused.
fn requested_host(uri: &Uri, headers: &HeaderMap) -> Result<Authority, Problem> {
    let mut named = headers
        .get_all(header::HOST)
        .iter()
        .map(|host| host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()));
    let (first, second) = (named.next(), named.next());
    match (uri.authority(), first, second) {
        (Some(authority), None, None) => Ok(authority.clone()),
        (None, Some(Some(host)), None) => Ok(host),
        (Some(authority), Some(Some(host)), None) if *authority == host => Ok(host),
        _ => Err(Problem::bad_request(
            "the request must name exactly one valid Host",
        )),
    }
}

fn origin_authority(origin: &str) -> Option<Authority> {
    let (scheme, authority) = origin.split_once("://")?;
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    authority.parse().ok()
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        AllowedHosts::new(["Gate.example.com"])
            .check(&Uri::from_static("/mcp"), &headers)
            .is_ok()
    }

    #[test]
    fn loopback_addresses_and_configured_names_are_allowed() {
        for host in [
            "localhost:9090",
            "LOCALHOST",
            "127.0.0.1:9090",
            "[::1]:9090",
            "10.0.0.7:9090",
            "gate.example.com",
        ] {
            assert!(check(host, None), "{host}");
        }
    }

    #[test]
    fn a_rebound_name_is_refused() {
        for host in [
            "evil.example:9090",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
        ] {
            assert!(!check(host, None), "{host}");
        }
    }

    #[test]
    fn a_foreign_origin_is_refused() {
        assert!(check("localhost:9090", Some("http://localhost:9090")));
        assert!(check("127.0.0.1:9090", Some("http://localhost:9090")));
        assert!(check("localhost:9090", Some("https://gate.example.com")));
        assert!(check("10.0.0.7:9090", Some("http://10.0.0.7:9090")));
        for origin in [
            "http://evil.example",
            "http://localhost:3000",
            "http://127.0.0.1:3000",
            "http://localhost",
            "null",
            "http://10.0.0.8",
            "file://localhost",
            "http://localhost@evil.example",
        ] {
            assert!(!check("localhost:9090", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn a_request_with_no_host_or_two_is_refused() {
        let allowed = AllowedHosts::default();
        let mut headers = HeaderMap::new();
        assert!(allowed.check(&Uri::from_static("/"), &headers).is_err());
        assert!(
            allowed
                .check(&Uri::from_static("http://localhost/"), &headers)
                .is_ok()
        );
        headers.append(header::HOST, "localhost".parse().unwrap());
        headers.append(header::HOST, "evil.example".parse().unwrap());
        assert!(allowed.check(&Uri::from_static("/"), &headers).is_err());
    }

    #[test]
    fn the_same_origin_is_the_very_host_that_was_called() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "localhost:9090".parse().unwrap());
        assert!(!is_same_origin(&Uri::from_static("/"), &headers));
        headers.insert(header::ORIGIN, "http://localhost:9090".parse().unwrap());
        assert!(is_same_origin(&Uri::from_static("/"), &headers));
        headers.insert(header::ORIGIN, "http://localhost:3000".parse().unwrap());
        assert!(!is_same_origin(&Uri::from_static("/"), &headers));
    }
}

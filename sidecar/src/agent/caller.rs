//! A request as far as it tells who calls, and what a caller who is not served is told (RFC 6750, RFC 9728).

use axum::extract::Request;
use axum::response::Response;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, StatusCode, Uri, header};
use net::problem::Problem;
use net::serve::PeerCertificates;
use serde_json::{Value, json};

use super::mcp::error::ProtocolError;
use super::state::AgentState;
use crate::identity::{Identity, IdentityError};

/// Where the metadata of a protected resource lies, before the path of the resource.
const METADATA: &str = "/.well-known/oauth-protected-resource";
/// The entrance that has metadata of its own.
const MCP: &str = "/mcp";

/// What of a request tells who calls.
#[derive(Clone, Copy)]
pub struct Caller<'r> {
    uri: &'r Uri,
    headers: &'r HeaderMap,
    extensions: &'r Extensions,
}

impl<'r> From<&'r Parts> for Caller<'r> {
    fn from(parts: &'r Parts) -> Self {
        Self {
            uri: &parts.uri,
            headers: &parts.headers,
            extensions: &parts.extensions,
        }
    }
}

impl<'r> From<&'r Request> for Caller<'r> {
    fn from(request: &'r Request) -> Self {
        Self {
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}

/// Where agents get tokens for this server, as far as it knows.
#[derive(Debug, Clone, Default)]
pub struct ProtectedResource {
    /// Issuers of tokens that are accepted here; without any there is nothing to tell.
    pub issuers: Vec<String>,
    /// The address under which agents reach this server; by default the host that they called.
    pub url: Option<String>,
    /// Whether this server speaks TLS itself.
    pub is_tls: bool,
}

impl ProtectedResource {
    fn base(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        if let Some(url) = &self.url {
            return Some(url.trim_end_matches('/').to_owned());
        }
        // Which hosts there can be is checked before anything is served (`net::host`).
        let host = match uri.authority() {
            Some(authority) => authority.as_str(),
            None => headers.get(header::HOST)?.to_str().ok()?,
        };
        let scheme = if self.is_tls { "https" } else { "http" };
        Some(format!("{scheme}://{host}"))
    }

    /// The metadata of the whole server, or of one entrance; none where no issuer is trusted.
    pub(super) fn metadata(&self, caller: &Caller<'_>) -> Option<Value> {
        let path = caller.uri.path().strip_prefix(METADATA)?;
        if self.issuers.is_empty() {
            return None;
        }
        Some(json!({
            "resource": format!("{}{path}", self.base(caller.uri, caller.headers)?),
            "authorization_servers": self.issuers,
            "bearer_methods_supported": ["header"],
            "resource_name": "Toolgate",
        }))
    }

    fn challenge(&self, caller: &Caller<'_>, error: &IdentityError) -> Option<HeaderValue> {
        let mut parts = Vec::new();
        if error.refuses_a_credential() {
            parts.push("error=\"invalid_token\"".to_owned());
            parts.push(format!("error_description=\"{}\"", quotable(&error.to_string())));
        }
        if !self.issuers.is_empty() {
            let path = if caller.uri.path() == MCP { MCP } else { "" };
            let base = self.base(caller.uri, caller.headers)?;
            parts.push(format!("resource_metadata=\"{base}{METADATA}{path}\""));
        }
        let challenge = match parts.is_empty() {
            true => "Bearer".to_owned(),
            false => format!("Bearer {}", parts.join(", ")),
        };
        HeaderValue::try_from(challenge).ok()
    }
}

/// What may stand in a quoted string of a header, as it is.
fn quotable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '"' | '\\' => '\'',
            ' '..='~' => character,
            _ => '?',
        })
        .collect()
}

/// The answer to a caller who is not served.
pub struct Refused {
    status: StatusCode,
    message: String,
    challenge: Option<HeaderValue>,
}

impl Refused {
    /// For clients of REST.
    pub fn problem(self) -> Problem {
        let problem = match self.status {
            StatusCode::UNAUTHORIZED => Problem::unauthenticated(self.message),
            status => Problem::new(status, self.message),
        };
        match self.challenge {
            Some(challenge) => problem.with_header(header::WWW_AUTHENTICATE, challenge),
            None => problem,
        }
    }

    /// For clients of MCP.
    pub fn response(self) -> Response {
        let mut response = ProtocolError::refused(self.status, self.message).response(None);
        if let Some(challenge) = self.challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl AgentState {
    /// Who calls.
    ///
    /// # Errors
    /// When the caller is not served.
    pub async fn identify(&self, caller: Caller<'_>) -> Result<Identity, IdentityError> {
        let certificates = caller.extensions.get::<PeerCertificates>();
        self.identities
            .resolve(caller.headers, certificates, &self.gate.scope())
            .await
    }

    /// Notes that a caller is not served, in a record where a credential was refused, and says how it is told.
    pub fn refuse(&self, caller: Caller<'_>, error: &IdentityError) -> Refused {
        if error.refuses_a_credential() {
            self.gate.refused_credential(caller.uri.path(), error);
        }
        let status = error.status();
        Refused {
            status,
            message: error.to_string(),
            challenge: (status == StatusCode::UNAUTHORIZED)
                .then(|| self.resource.challenge(&caller, error))
                .flatten(),
        }
    }

    /// Who calls, or the answer to one who is not served.
    ///
    /// # Errors
    /// When the caller is not served; that is recorded.
    pub async fn admit(&self, caller: Caller<'_>) -> Result<Identity, Refused> {
        self.identify(caller)
            .await
            .map_err(|error| self.refuse(caller, &error))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use net::token::TokenError;

    use super::*;

    fn request(path: &str) -> Request {
        let request = Request::get(path).header(header::HOST, "localhost:9090");
        request.body(Body::empty()).unwrap()
    }

    fn resource(url: Option<&str>) -> ProtectedResource {
        ProtectedResource {
            issuers: vec!["https://issuer.example".to_owned()],
            url: url.map(str::to_owned),
            is_tls: false,
        }
    }

    fn challenge(resource: &ProtectedResource, path: &str, error: &IdentityError) -> String {
        let request = request(path);
        let value = resource.challenge(&Caller::from(&request), error).unwrap();
        value.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_challenge_says_where_to_get_a_token_and_what_is_wrong_with_this_one() {
        let refused = IdentityError::Token(TokenError::Expired);
        assert_eq!(
            challenge(&resource(None), "/mcp", &refused),
            "Bearer error=\"invalid_token\", error_description=\"the token has expired\", \
             resource_metadata=\"http://localhost:9090/.well-known/oauth-protected-resource/mcp\""
        );
        assert_eq!(
            challenge(
                &resource(Some("https://tools.example.com/")),
                "/tool/x",
                &IdentityError::Required
            ),
            "Bearer resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource\""
        );
        assert_eq!(
            challenge(&ProtectedResource::default(), "/mcp", &IdentityError::Required),
            "Bearer"
        );
        let named = IdentityError::Token(TokenError::Claim("a\"\\\u{e9}".to_owned()));
        assert!(!challenge(&resource(None), "/mcp", &named).contains('\\'));
    }

    #[test]
    fn metadata_is_of_the_server_or_of_an_entrance() {
        let of = |resource: &ProtectedResource, path: &str| {
            let request = request(path);
            resource.metadata(&Caller::from(&request))
        };
        let whole = of(&resource(None), METADATA).unwrap();
        assert_eq!(whole["resource"], "http://localhost:9090");
        assert_eq!(whole["authorization_servers"], json!(["https://issuer.example"]));
        let mcp = of(
            &resource(Some("https://tools.example.com")),
            &format!("{METADATA}/mcp"),
        )
        .unwrap();
        assert_eq!(mcp["resource"], "https://tools.example.com/mcp");
        assert_eq!(of(&ProtectedResource::default(), METADATA), None);
    }
}

//! Reading JSON request bodies: with or without a content type, empty where every field is optional.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use http::StatusCode;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// A request body read as JSON, whatever its content type. An empty body is read as `{}`. Types should
/// deny unknown fields, so that a misspelt one is told.
#[derive(Debug, Clone)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state).await.map_err(|refused| {
            let status = refused.status();
            let detail = match status {
                StatusCode::PAYLOAD_TOO_LARGE => "the request body is too large",
                _ => "the request body could not be read",
            };
            Problem::new(status, detail)
        })?;
        parse(&bytes).map(Self)
    }
}

/// Reads JSON bytes; none count as `{}`. The problem says what is wrong and where.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let bytes = if bytes.trim_ascii().is_empty() {
        b"{}"
    } else {
        bytes
    };
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::bad_request(format!("the request body is not as expected: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Body {
        reasoning: Option<String>,
    }

    #[test]
    fn an_empty_body_is_read_where_every_field_is_optional() {
        assert!(parse::<Body>(b" ").unwrap().reasoning.is_none());
        assert_eq!(
            parse::<Body>(br#"{"reasoning": "fine"}"#)
                .unwrap()
                .reasoning
                .as_deref(),
            Some("fine")
        );
    }

    #[test]
    fn an_unknown_field_is_named() {
        let problem = parse::<Body>(br#"{"reason": "x"}"#).unwrap_err();
        assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
        assert!(problem.detail().contains("unknown field `reason`"), "{problem}");
    }
}

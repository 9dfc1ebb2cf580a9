//! Reading requests: bodies, queries and path segments, each refused with what is wrong with it.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::StatusCode;
use http::request::Parts;
use net::problem::Problem;
use policy::glob::{Glob, ToolGlob};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tools::json::{Document, Kind, Limits, Node};

use super::text;
use crate::store::{Micros, Revision};

/// Numbers that a database column holds.
pub(super) const MAX_NUMBER: u64 = i64::MAX.unsigned_abs();

/// The bytes of a request body.
pub(super) async fn bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(|refused| {
        let detail = match refused.status() {
            StatusCode::PAYLOAD_TOO_LARGE => "the request body is larger than 4 MiB",
            _ => "the request body could not be read to its end",
        };
        let status = match refused.status() {
            status if status.is_client_error() => status,
            _ => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, detail)
    })
}

/// A JSON body, whatever its content type; an empty one is read as `{}`. Unknown and repeated fields are refused.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        read(&bytes(request, state).await?).map(Self)
    }
}

/// Reads JSON bytes.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let bytes = match bytes.trim_ascii() {
        b"" => b"{}".as_slice(),
        _ => bytes,
    };
    let unreadable = |error: &dyn std::fmt::Display| {
        Problem::bad_request(format!("the request body is not as expected: {error}"))
    };
    let document = Document::parse(bytes, Limits::ARGUMENTS).map_err(|error| unreadable(&error))?;
    if document.root().kind() != Kind::Object {
        return Err(Problem::bad_request("the request body is not a JSON object"));
    }
    if holds_nul(document.root()) {
        return Err(Problem::bad_request("the request body holds a NUL character"));
    }
    serde_json::from_slice(bytes).map_err(|error| unreadable(&error))
}

fn holds_nul(node: Node<'_>) -> bool {
    match node.kind() {
        Kind::String => node.as_str().is_some_and(|text| text.contains('\0')),
        Kind::Array => node.elements().any(holds_nul),
        Kind::Object => node
            .members()
            .any(|(name, value)| name.contains('\0') || holds_nul(value)),
        Kind::Null | Kind::Bool | Kind::Number => false,
    }
}

/// The query of a request. Unknown and repeated parameters are refused.
#[derive(Debug)]
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(query)| Self(query))
            .map_err(|refused| {
                Problem::bad_request(format!("the query is not as expected: {}", refused.body_text()))
            })
    }
}

/// For paths that take no parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParams {}

/// The one variable segment of a path.
#[derive(Debug)]
pub(super) struct Segment(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| {
                Problem::bad_request("the path cannot be read; its segments are percent-encoded UTF-8")
            })?;
        if text.is_empty() || text.len() > 2048 {
            return Err(Problem::bad_request(
                "a segment of the path is empty or longer than 2048 bytes",
            ));
        }
        Ok(Self(text))
    }
}

/// A pattern in a query or body.
pub(super) fn glob(what: &str, text: &str) -> Result<Glob, Problem> {
    text.parse()
        .map_err(|error| Problem::bad_request(format!("{what}: {error}")))
}

/// A pattern over governed names.
pub(super) fn tool_glob(text: &str) -> Result<ToolGlob, Problem> {
    text.parse()
        .map_err(|error| Problem::bad_request(format!("tools: {error}")))
}

/// A namespace by its name.
pub(super) fn namespace(text: &str) -> Result<String, Problem> {
    tools::id::Namespace::try_from(text)
        .map(|name| name.as_str().to_owned())
        .map_err(|error| Problem::bad_request(error.to_string()))
}

/// Free text of a person.
pub(super) fn prose(what: &str, text: Option<String>) -> Result<String, Problem> {
    let text = text.unwrap_or_default();
    if text.len() > 16 * 1024 {
        return Err(Problem::bad_request(format!("{what} is longer than 16 KiB")));
    }
    Ok(text)
}

/// How long something is asked to last.
pub(super) fn lifetime(
    what: &str,
    subject: &str,
    text: &str,
    longest: Duration,
) -> Result<Duration, Problem> {
    let asked = net::duration::parse(text.trim())
        .map_err(|error| Problem::bad_request(format!("{what}: {error}")))?;
    if asked < Duration::from_secs(1) || asked > longest {
        return Err(Problem::bad_request(format!(
            "{what}: {subject} lasts from 1s to {}",
            text::days(longest)
        )));
    }
    Ok(asked)
}

/// A point in time.
pub(super) fn time(what: &str, text: &str) -> Result<Micros, Problem> {
    text.parse::<chain::timestamp::Timestamp>()
        .map(chain::timestamp::Timestamp::micros)
        .map_err(|error| Problem::bad_request(format!("{what}: {error}")))
}

/// A revision, `<generation>.<number>`.
pub(super) fn revision(text: &str) -> Result<Revision, Problem> {
    text.parse::<Revision>()
        .ok()
        .filter(|revision| revision.generation <= MAX_NUMBER && revision.number <= MAX_NUMBER)
        .ok_or_else(|| Problem::bad_request("a revision is written <generation>.<number>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[serde(default)]
        reason: Option<String>,
    }

    #[test]
    fn a_body_that_two_readers_could_read_differently_is_refused() {
        assert!(read::<Sample>(b"").unwrap().reason.is_none());
        assert_eq!(
            read::<Sample>(br#"{"reason":"x"}"#).unwrap().reason.as_deref(),
            Some("x")
        );
        let refused: [&[u8]; 8] = [
            br#"{"reason":"a","reason":"b"}"#,
            br#"{"reason":"a","re\u0061son":"b"}"#,
            br#"{"other":1}"#,
            br#"{"reason":3}"#,
            br#"{"reason":"\u0000"}"#,
            b"{\"reason\":\"\xff\"}",
            b"[]",
            b"{",
        ];
        for body in refused {
            assert_eq!(read::<Sample>(body).unwrap_err().status(), 400);
        }
    }
}

//! Revision 2026-07-28: what every request must carry, and the headers that mirror it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::value::RawValue;
use tools::json::{Document, Kind, Limits, Node};

use super::error::ProtocolError;
use super::offers;
use super::version::{self, META_CAPABILITIES, META_LOG_LEVEL, META_VERSION, MODERN, VERSION_HEADER};
use crate::registry::Registry;
use crate::upstream::LogLevel;
use crate::upstream::mcp::scan;

const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
const PARAM_PREFIX: &str = "mcp-param-";
const ANNOTATION: &str = "x-mcp-header";
/// How deep annotated properties may lie.
const MAX_PATH: usize = 64;

/// Checks what every modern request carries: its `_meta`, and the headers that mirror the body.
///
/// # Errors
/// With the error that the specification names for what is missing or differs.
pub fn check(headers: &HeaderMap, method: &str, params: Option<Node<'_>>) -> Result<(), ProtocolError> {
    let meta = version::meta(params)
        .ok_or_else(|| ProtocolError::malformed_params(format!("params._meta must have {META_VERSION:?}")))?;
    let declared = meta.get(META_VERSION).and_then(Node::as_str).ok_or_else(|| {
        ProtocolError::malformed_params(format!("params._meta must have {META_VERSION:?}, a string"))
    })?;
    must_equal(headers, VERSION_HEADER, "MCP-Protocol-Version", &declared)?;
    if declared != MODERN {
        return Err(ProtocolError::unsupported_version(&declared, &[MODERN]));
    }
    if meta
        .get(META_CAPABILITIES)
        .is_none_or(|node| node.kind() != Kind::Object)
    {
        return Err(ProtocolError::malformed_params(format!(
            "params._meta must have {META_CAPABILITIES:?}, an object"
        )));
    }
    let log_level = meta.get(META_LOG_LEVEL);
    if log_level.is_some_and(|level| level.as_str().and_then(|name| LogLevel::parse(&name)).is_none()) {
        return Err(ProtocolError::malformed_params(format!(
            "{META_LOG_LEVEL:?} in params._meta must be one of debug, info, notice, warning, error, critical, alert, emergency"
        )));
    }
    must_equal(headers, METHOD_HEADER, "Mcp-Method", method)?;
    let named = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let name = params.and_then(|params| params.get(named)).and_then(Node::as_str);
    name.map_or(Ok(()), |name| must_equal(headers, NAME_HEADER, "Mcp-Name", &name))
}

/// The HTTP status of an error that an upstream answered with, where the specification gives its code one.
pub fn status_of(error: &[u8]) -> StatusCode {
    match scan::member(error, "code") {
        Some(b"-32601") => StatusCode::NOT_FOUND,
        Some(b"-32020" | b"-32021" | b"-32022") => StatusCode::BAD_REQUEST,
        Some(_) | None => StatusCode::OK,
    }
}

/// The result of `server/discover`.
pub fn discovery(registry: &Registry) -> Vec<u8> {
    let discovery = serde_json::json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": offers::capabilities(registry, None),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "toolgate", "version": env!("CARGO_PKG_VERSION")}},
    });
    discovery.to_string().into_bytes()
}

fn must_equal(headers: &HeaderMap, name: &str, shown: &str, body: &str) -> Result<(), ProtocolError> {
    let value = one(headers, name, shown)?
        .ok_or_else(|| ProtocolError::header_mismatch(format!("the {shown} header is missing")))?;
    if value == body {
        return Ok(());
    }
    Err(ProtocolError::header_mismatch(format!(
        "{shown} header value {value:?} does not match body value {body:?}"
    )))
}

/// The decoded value of a header that may come once.
fn one<'h>(headers: &'h HeaderMap, name: &str, shown: &str) -> Result<Option<Cow<'h, str>>, ProtocolError> {
    let mut values = headers.get_all(name).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value,
        (Some(_), Some(_)) => {
            return Err(ProtocolError::header_mismatch(format!(
                "the {shown} header comes twice"
            )));
        }
    };
    let invalid = || ProtocolError::header_mismatch(format!("the {shown} header holds invalid characters"));
    let text = value.to_str().map_err(|_| invalid())?;
    decode(text).map(Some).ok_or_else(invalid)
}

/// The sentinel encoding of values that headers cannot carry plainly (streamable-http: Value Encoding).
fn decode(text: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = text
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return Some(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Checks the `Mcp-Param-*` headers that the tool's schema asks for against the arguments.
///
/// # Errors
/// When a value is in the body and not in its header, or differs, or the other way round.
pub fn check_params(
    headers: &HeaderMap,
    schema: &RawValue,
    arguments: Option<Node<'_>>,
) -> Result<(), ProtocolError> {
    if memchr::memmem::find(schema.get().as_bytes(), ANNOTATION.as_bytes()).is_none() {
        return Ok(());
    }
    let Ok(schema) = Document::parse(schema.get().as_bytes(), Limits::MESSAGE) else {
        return Ok(());
    };
    check_properties(headers, schema.root(), arguments, 0)
}

fn check_properties(
    headers: &HeaderMap,
    schema: Node<'_>,
    arguments: Option<Node<'_>>,
    depth: usize,
) -> Result<(), ProtocolError> {
    let Some(properties) = schema.get("properties").filter(|_| depth < MAX_PATH) else {
        return Ok(());
    };
    for (key, property) in properties.members() {
        let value = arguments.and_then(|arguments| arguments.get(&key));
        if let Some(annotation) = property.get(ANNOTATION).and_then(Node::as_str) {
            check_param(headers, &annotation, value)?;
        }
        check_properties(headers, property, value, depth + 1)?;
    }
    Ok(())
}

fn check_param(headers: &HeaderMap, annotation: &str, value: Option<Node<'_>>) -> Result<(), ProtocolError> {
    let shown = format!("Mcp-Param-{annotation}");
    let lower = format!("{PARAM_PREFIX}{}", annotation.to_ascii_lowercase());
    if HeaderName::try_from(&lower).is_err() {
        return Ok(());
    }
    let header = one(headers, &lower, &shown)?;
    let body = value.filter(|value| !value.is_null());
    match (header, body) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(ProtocolError::header_mismatch(format!(
            "the {shown} header is missing; read tools/list again for what the tool asks for"
        ))),
        (Some(_), None) => Err(ProtocolError::header_mismatch(format!(
            "the {shown} header is there and the argument is not"
        ))),
        (Some(header), Some(body)) if says(&header, body) => Ok(()),
        (Some(_), Some(_)) => Err(ProtocolError::header_mismatch(format!(
            "the {shown} header does not match the argument"
        ))),
    }
}

/// Numbers are compared as numbers, the rest as text.
fn says(header: &str, body: Node<'_>) -> bool {
    match body.kind() {
        Kind::String => body.as_str().is_some_and(|text| text == header),
        Kind::Bool => body.raw_str() == header,
        Kind::Number => Document::parse(header.as_bytes(), Limits::ARGUMENTS)
            .is_ok_and(|parsed| parsed.root().number().is_some() && parsed.root().number() == body.number()),
        Kind::Null | Kind::Array | Kind::Object => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn call_headers(name: &str) -> HeaderMap {
        headers(&[
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", name),
        ])
    }

    fn checked(headers: &HeaderMap, method: &str, params: &str) -> Result<(), ProtocolError> {
        let document = Document::parse(params.as_bytes(), Limits::MESSAGE).unwrap();
        check(headers, method, Some(document.root()))
    }

    #[test]
    fn a_request_whose_headers_mirror_its_body_passes() {
        let params = format!(r#"{{"name":"fs.read",{META}}}"#);
        assert_eq!(checked(&call_headers("fs.read"), "tools/call", &params), Ok(()));
        let params = format!(r#"{{"name":"fs.läs",{META}}}"#);
        assert_eq!(
            checked(&call_headers("=?base64?ZnMubMOkcw==?="), "tools/call", &params),
            Ok(())
        );
    }

    #[test]
    fn a_header_that_differs_or_is_missing_is_a_mismatch() {
        let params = format!(r#"{{"name":"fs.read",{META}}}"#);
        let mismatches = [
            call_headers("fs.write"),
            call_headers("=?base64?!!?="),
            headers(&[("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call")]),
            headers(&[
                ("MCP-Protocol-Version", MODERN),
                ("Mcp-Method", "tools/list"),
                ("Mcp-Name", "fs.read"),
            ]),
            headers(&[
                ("MCP-Protocol-Version", "2025-11-25"),
                ("Mcp-Method", "tools/call"),
                ("Mcp-Name", "fs.read"),
            ]),
            headers(&[("Mcp-Method", "tools/call"), ("Mcp-Name", "fs.read")]),
            headers(&[
                ("MCP-Protocol-Version", MODERN),
                ("Mcp-Method", "tools/call"),
                ("Mcp-Name", "fs.read"),
                ("Mcp-Name", "fs.write"),
            ]),
        ];
        for headers in mismatches {
            let error = checked(&headers, "tools/call", &params).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, -32020), "{headers:?}");
        }
    }

    #[test]
    fn a_missing_required_meta_field_is_malformed() {
        for params in [
            "{}".to_owned(),
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#.to_owned(),
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#.to_owned(),
        ] {
            let headers = headers(&[("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")]);
            let error = checked(&headers, "tools/list", &params).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, -32602), "{params}");
        }
    }

    #[test]
    fn an_unknown_revision_is_answered_with_those_that_are_spoken() {
        let params = META.replace(MODERN, "1900-01-01");
        let headers = headers(&[
            ("MCP-Protocol-Version", "1900-01-01"),
            ("Mcp-Method", "tools/list"),
        ]);
        let error = checked(&headers, "tools/list", &format!("{{{params}}}")).unwrap_err();
        assert_eq!((error.status.as_u16(), error.code), (400, -32022));
        let data = error.data.unwrap();
        assert_eq!(data["requested"], "1900-01-01");
        assert_eq!(data["supported"], serde_json::json!([MODERN]));
    }

    #[test]
    fn errors_of_upstreams_have_the_status_of_their_code() {
        for (error, status) in [
            (r#"{"code":-32601,"message":""}"#, 404),
            (r#"{"message":"","code":-32021}"#, 400),
            (r#"{"code":-32602}"#, 200),
            ("{}", 200),
        ] {
            assert_eq!(status_of(error.as_bytes()).as_u16(), status, "{error}");
        }
    }

    fn params_checked(pairs: &[(&str, &str)], arguments: &str) -> Result<(), ProtocolError> {
        let schema = r#"{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"type":"object","properties":{"count":{"type":"integer","x-mcp-header":"Count"}}}}}"#;
        let schema = RawValue::from_string(schema.to_owned()).unwrap();
        let document = Document::parse(arguments.as_bytes(), Limits::ARGUMENTS).unwrap();
        check_params(&headers(pairs), &schema, Some(document.root()))
    }

    #[test]
    fn annotated_parameters_must_be_mirrored() {
        assert_eq!(params_checked(&[], "{}"), Ok(()));
        assert_eq!(
            params_checked(&[("Mcp-Param-Region", "us-west1")], r#"{"region":"us-west1"}"#),
            Ok(())
        );
        assert_eq!(
            params_checked(&[("mcp-param-count", "42.0")], r#"{"deep":{"count":42}}"#),
            Ok(())
        );
        for (pairs, arguments) in [
            (&[][..], r#"{"region":"us-west1"}"#),
            (&[("Mcp-Param-Region", "eu")][..], r#"{"region":"us-west1"}"#),
            (&[("Mcp-Param-Region", "eu")][..], r#"{"region":null}"#),
            (&[("Mcp-Param-Count", "41")][..], r#"{"deep":{"count":42}}"#),
        ] {
            assert_eq!(
                params_checked(pairs, arguments).unwrap_err().code,
                -32020,
                "{arguments}"
            );
        }
    }
}

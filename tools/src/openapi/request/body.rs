//! Bodies: JSON, forms, messages of several parts, text and bytes.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};
use sha2::{Digest, Sha256};

use super::value::{json, text};
use super::{BuildError, query};
use crate::json::{Kind, Node};
use crate::openapi::template::{Body, BodyForm, FormField, Member, Part};
use crate::openapi::text::quoted;

/// Base64 with or without padding: models write both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The media type and the bytes of the body; none when no argument is for it and it may be left out.
pub(super) fn written<'d>(
    body: &Body,
    given: &dyn Fn(&str) -> Option<Node<'d>>,
) -> Result<Option<(String, Vec<u8>)>, BuildError> {
    let sent = |bytes: Vec<u8>| Ok(Some((body.media_type.clone(), bytes)));
    match &body.form {
        BodyForm::Json(argument) => match given(argument) {
            Some(node) => sent(json(node).as_bytes().to_vec()),
            None => Ok(None),
        },
        BodyForm::Text(argument) => match given(argument).and_then(text) {
            Some(text) => sent(text.into_bytes()),
            None => Ok(None),
        },
        BodyForm::Bytes(argument) => match given(argument) {
            Some(node) => sent(bytes(argument, node)?),
            None => Ok(None),
        },
        BodyForm::JsonMembers(members) => {
            let members = present(members, |member| member, given);
            if members.is_empty() && !body.is_required {
                return Ok(None);
            }
            let members: Vec<String> = members
                .iter()
                .map(|(member, node)| format!("{}:{}", quoted(&member.name), json(*node)))
                .collect();
            sent(format!("{{{}}}", members.join(",")).into_bytes())
        }
        BodyForm::Form(fields) => {
            let fields = present(fields, |field: &FormField| &field.member, given);
            if fields.is_empty() && !body.is_required {
                return Ok(None);
            }
            let mut pairs = Vec::new();
            for (field, node) in fields {
                let member = &field.member;
                query::field(&member.argument, &member.name, field.wire, node, &mut pairs)?;
            }
            sent(pairs.join("&").into_bytes())
        }
        BodyForm::Multipart(parts) => {
            let parts = present(parts, |part: &Part| &part.member, given);
            if parts.is_empty() && !body.is_required {
                return Ok(None);
            }
            multipart(&parts).map(Some)
        }
    }
}

/// The members that arguments are given for.
fn present<'m, 'd, M>(
    members: &'m [M],
    member: impl Fn(&M) -> &Member,
    given: &dyn Fn(&str) -> Option<Node<'d>>,
) -> Vec<(&'m M, Node<'d>)> {
    members
        .iter()
        .filter_map(|one| Some((one, given(&member(one).argument)?)))
        .collect()
}

fn bytes(argument: &str, node: Node<'_>) -> Result<Vec<u8>, BuildError> {
    let text = node.as_str().unwrap_or_default();
    BASE64
        .decode(text.as_bytes())
        .or_else(|_| general_purpose::URL_SAFE_NO_PAD.decode(text.trim_end_matches('=').as_bytes()))
        .map_err(|_| BuildError::of(argument, "expected base64 of the bytes"))
}

/// RFC 7578. The boundary is made of what it separates, so equal calls make equal requests.
fn multipart(parts: &[(&Part, Node<'_>)]) -> Result<(String, Vec<u8>), BuildError> {
    let mut written: Vec<(String, Vec<u8>)> = Vec::new();
    for (part, node) in parts {
        let is_list = node.kind() == Kind::Array;
        let is_nested = |node: Node<'_>| matches!(node.kind(), Kind::Object | Kind::Array);
        if is_list && part.media_type.is_none() && !node.elements().any(is_nested) {
            for item in node.elements() {
                written.extend(one_part(part, item)?);
            }
        } else {
            written.extend(one_part(part, *node)?);
        }
    }
    let boundary = boundary(&written);
    let mut out = Vec::new();
    for (head, content) in written {
        out.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
        out.extend_from_slice(&content);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((format!("multipart/form-data; boundary={boundary}"), out))
}

/// The headers and the content of a part; none for `null`.
fn one_part(part: &Part, node: Node<'_>) -> Result<Option<(String, Vec<u8>)>, BuildError> {
    let name = disposition(&part.member.name);
    let media_type = part.media_type.as_deref();
    if part.is_file {
        let kind = media_type.unwrap_or("application/octet-stream");
        let head = format!(
            "Content-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\nContent-Type: {kind}"
        );
        return Ok(Some((head, bytes(&part.member.argument, node)?)));
    }
    let is_nested = matches!(node.kind(), Kind::Object | Kind::Array);
    let kind = media_type.or(is_nested.then_some("application/json"));
    let is_json = kind.is_some_and(crate::openapi::body::is_json);
    let content = if is_json {
        Some(json(node).to_owned())
    } else {
        text(node)
    };
    let kind = kind
        .map(|kind| format!("\r\nContent-Type: {kind}"))
        .unwrap_or_default();
    Ok(content.map(|content| {
        let head = format!("Content-Disposition: form-data; name=\"{name}\"{kind}");
        (head, content.into_bytes())
    }))
}

/// A name within quotes, as browsers write it.
fn disposition(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// A boundary that no content holds.
fn boundary(parts: &[(String, Vec<u8>)]) -> String {
    let mut digest = Sha256::new();
    for (head, content) in parts {
        digest.update(head.as_bytes());
        digest.update(content);
    }
    loop {
        let found = digest.finalize_reset();
        let hex: String = found.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let boundary = format!("toolgate-{hex}");
        let is_inside = |content: &[u8]| {
            content
                .windows(boundary.len())
                .any(|window| window == boundary.as_bytes())
        };
        if !parts.iter().any(|(_, content)| is_inside(content)) {
            return boundary;
        }
        digest.update(found);
    }
}

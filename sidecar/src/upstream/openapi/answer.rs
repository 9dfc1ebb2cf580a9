//! A service's answer as the result of a tool.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use net::outbound::OutboundAnswer;
use tools::json::{Document, Kind, Limits};

/// The result of `tools/call`: the body as content, a JSON object as structure too, and a status that is no success as an
/// error.
pub(super) fn result(answer: &OutboundAnswer) -> Bytes {
    let declared = answer
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = essence(declared);
    let status = answer.status;
    let is_error = !status.is_success();
    let mut out = String::with_capacity(answer.body.len() + answer.body.len() / 4 + 256);
    out.push_str("{\"content\":[");
    if is_error || answer.body.is_empty() {
        let words = format!(
            "HTTP {} {}",
            status.as_u16(),
            status.canonical_reason().unwrap_or_default()
        );
        text(words.trim_end(), &mut out);
        if !answer.body.is_empty() {
            out.push(',');
        }
    }
    let is_text = is_text(&media_type, &answer.body);
    if !answer.body.is_empty() {
        if is_text {
            text(&decoded(declared, &answer.body), &mut out);
        } else {
            binary(answer, &media_type, &mut out);
        }
    }
    out.push(']');
    if let Some(object) = object(&media_type, &answer.body).filter(|_| is_text) {
        out.push_str(",\"structuredContent\":");
        out.push_str(object);
    }
    out.push_str(&format!(
        ",\"isError\":{is_error},\"_meta\":{{\"art.flux7/status\":{}}}}}",
        status.as_u16()
    ));
    Bytes::from(out)
}

fn essence(declared: &str) -> String {
    let essence = declared.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn text(text: &str, out: &mut String) {
    out.push_str("{\"type\":\"text\",\"text\":");
    out.push_str(&serde_json::Value::from(text).to_string());
    out.push('}');
}

/// Images and sounds as such, anything else as a resource.
fn binary(answer: &OutboundAnswer, media_type: &str, out: &mut String) {
    let kind = ["image", "audio"]
        .into_iter()
        .find(|kind| media_type.split('/').next() == Some(kind));
    let media_type = if media_type.is_empty() {
        "application/octet-stream"
    } else {
        media_type
    };
    let media_type = serde_json::Value::from(media_type).to_string();
    let data = STANDARD.encode(&answer.body);
    match kind {
        Some(kind) => out.push_str(&format!(
            "{{\"type\":\"{kind}\",\"data\":\"{data}\",\"mimeType\":{media_type}}}"
        )),
        None => {
            let uri = serde_json::Value::from(answer.url.as_str()).to_string();
            out.push_str(&format!(
                "{{\"type\":\"resource\",\"resource\":{{\"uri\":{uri},\"mimeType\":{media_type},\"blob\":\"{data}\"}}}}"
            ));
        }
    }
}

/// Whether the body is text: as its media type says, else by its bytes.
fn is_text(media_type: &str, body: &[u8]) -> bool {
    const TEXTS: [&str; 8] = [
        "json",
        "xml",
        "yaml",
        "javascript",
        "ecmascript",
        "graphql",
        "sql",
        "x-www-form-urlencoded",
    ];
    if media_type.is_empty() {
        return std::str::from_utf8(body).is_ok();
    }
    let (kind, subtype) = media_type.split_once('/').unwrap_or((media_type, ""));
    let last = subtype.rsplit(['+', '.']).next().unwrap_or_default();
    kind == "text" || TEXTS.contains(&last) || TEXTS.contains(&last.strip_prefix("x-").unwrap_or_default())
}

/// The text of a body; what is not text in its encoding is replaced.
fn decoded(declared: &str, body: &[u8]) -> String {
    let charset = declared
        .split(';')
        .filter_map(|part| part.trim().split_once('='))
        .find(|(key, _)| key.trim().eq_ignore_ascii_case("charset"))
        .map(|(_, charset)| charset.trim().trim_matches('"').to_ascii_lowercase());
    match charset.as_deref() {
        Some("iso-8859-1" | "latin1" | "us-ascii") if std::str::from_utf8(body).is_err() => {
            body.iter().map(|byte| char::from(*byte)).collect()
        }
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

/// The body's own text when it is one JSON object that can be read in one way only.
fn object<'b>(media_type: &str, body: &'b [u8]) -> Option<&'b str> {
    if !(media_type.ends_with("/json") || media_type.ends_with("+json")) {
        return None;
    }
    let document = Document::parse(body, Limits::MESSAGE).ok()?;
    (document.root().kind() == Kind::Object).then(|| document.text().trim())
}

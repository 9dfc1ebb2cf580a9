//! What a document says about who may call an operation, in words for its description.

use super::document::Source;
use super::text::{cut, text_of};
use crate::json::Node;

/// Alternatives that are named.
const SHOWN: usize = 8;

/// What the operation asks for; none when it asks for nothing.
pub(super) fn described(source: &Source<'_>, operation: Node<'_>) -> Option<String> {
    let asked = operation
        .get("security")
        .or_else(|| source.root.get("security"))?;
    let mut alternatives = Vec::new();
    let mut is_optional = false;
    for alternative in asked.elements().take(SHOWN) {
        let schemes: Vec<String> = alternative
            .members()
            .map(|(name, scopes)| scheme(source, &name, scopes))
            .collect();
        if schemes.is_empty() {
            is_optional = true;
        } else {
            alternatives.push(schemes.join(" and "));
        }
    }
    if alternatives.is_empty() {
        return None;
    }
    let word = if is_optional { "Can use" } else { "Needs" };
    Some(format!("{word} {}.", alternatives.join(", or ")))
}

fn scheme(source: &Source<'_>, name: &str, scopes: Node<'_>) -> String {
    let schemes = if source.is_swagger() {
        source.root.get("securityDefinitions")
    } else {
        source
            .root
            .get("components")
            .and_then(|parts| parts.get("securitySchemes"))
    };
    let declared = schemes
        .and_then(|schemes| schemes.get(name))
        .and_then(|scheme| source.resolved(scheme).ok());
    let kind = declared.map_or_else(String::new, kind);
    let scopes: Vec<String> = scopes
        .elements()
        .take(SHOWN)
        .filter_map(|scope| Some(cut(&scope.as_str()?, 80)))
        .collect();
    let scopes = if scopes.is_empty() {
        String::new()
    } else {
        format!(", scopes {}", scopes.join(" "))
    };
    format!("{} ({kind}{scopes})", cut(name, 80))
        .replace(" ()", "")
        .replace("(, ", "(")
}

fn kind(scheme: Node<'_>) -> String {
    let say = |key: &str| {
        text_of(scheme, key)
            .map(|text| cut(&text, 80))
            .unwrap_or_default()
    };
    match say("type").as_str() {
        "apiKey" => format!("API key in the {} {}", say("in"), say("name")),
        "basic" => "HTTP basic".to_owned(),
        "http" => format!("HTTP {}", say("scheme")),
        "oauth2" => "OAuth 2".to_owned(),
        "openIdConnect" => "OpenID Connect".to_owned(),
        "mutualTLS" => "mutual TLS".to_owned(),
        other => other.to_owned(),
    }
}

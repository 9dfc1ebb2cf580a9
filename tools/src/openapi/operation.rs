//! One operation of a document as a tool.

use std::sync::Arc;

use super::body;
use super::document::{Source, Unusable};
use super::import::ImportedTool;
use super::parameter::{self, DeclaredParameter};
use super::schema::SchemaWriter;
use super::security;
use super::server::Base;
use super::template::{Location, PathPart, RequestTemplate, Style, Wire};
use super::text::{ObjectWriter, cut, is_true, text_of};
use super::tool::Arguments;
use crate::arguments::{ArgumentCheck, SchemaError};
use crate::json::{Document, Limits, Node};

/// The largest declaration of a tool, in bytes: what the control plane keeps.
const MAX_DECLARATION: usize = 240 << 10;
/// From this size on, what a schema refers to is told without descriptions.
const TERSE_FROM: usize = 64 << 10;
/// The longest description of a tool, in characters.
const MAX_DESCRIPTION: usize = 4000;

/// An operation where it stands in its document.
pub(super) struct Place<'p, 'd> {
    pub(super) method: &'static str,
    pub(super) path: &'p str,
    pub(super) path_item: Node<'d>,
    pub(super) operation: Node<'d>,
}

/// The tool of an operation, called `name`.
pub(super) fn tool<'d>(
    source: &Source<'d>,
    place: &Place<'_, 'd>,
    name: &str,
    base: Arc<Base>,
    configured_headers: &[String],
) -> Result<ImportedTool, Unusable> {
    let (mut declared, swagger_body) =
        parameter::of(source, place.path_item, place.operation, configured_headers)?;
    let segments = path_parts(place.path, &mut declared)?;
    let mut arguments = Arguments::default();
    let parameters = declared
        .iter()
        .map(|declared| arguments.parameter(declared))
        .collect();
    let has_body = !matches!(place.method, "GET" | "HEAD");
    let declared_body = match has_body {
        false => None,
        true if source.is_swagger() => body::of_swagger(source, place.operation, &swagger_body)?,
        true => body::of(source, place.operation)?,
    };
    let body = declared_body.map(|declared| arguments.body(declared));
    let mut schema = arguments.schema(&mut SchemaWriter::new(source, MAX_DECLARATION * 2));
    if schema.as_ref().is_ok_and(|text| text.len() > TERSE_FROM) || schema.is_err() {
        let mut terse = SchemaWriter::new(source, MAX_DECLARATION);
        terse.describes_definitions = false;
        schema = arguments.schema(&mut terse);
    }
    let declaration = declaration(source, place, name, &schema?);
    if declaration.len() > MAX_DECLARATION {
        return Err(Unusable::TooLarge(MAX_DECLARATION));
    }
    // What cannot be read or checked later is no tool.
    let read = Document::parse(declaration.as_bytes(), Limits::MESSAGE).map_err(SchemaError::from)?;
    if let Some(schema) = read.root().get("inputSchema") {
        ArgumentCheck::of(schema)?;
    }
    Ok(ImportedTool {
        name: name.to_owned(),
        declared: declaration,
        template: RequestTemplate {
            method: place.method,
            base,
            path: segments,
            parameters,
            body,
        },
    })
}

/// The tool as MCP declares tools.
fn declaration(source: &Source<'_>, place: &Place<'_, '_>, name: &str, schema: &str) -> String {
    let mut out = String::with_capacity(schema.len() + 512);
    let mut tool = ObjectWriter::begin(&mut out);
    tool.text("name", name);
    let summary = text_of(place.operation, "summary").or_else(|| text_of(place.path_item, "summary"));
    if let Some(summary) = &summary {
        tool.text("title", &cut(summary, 200));
    }
    tool.text("description", &description(source, place, summary));
    tool.raw("inputSchema", schema);
    if let Some(annotations) = annotations(place.method) {
        tool.raw("annotations", annotations);
    }
    let mut meta = ObjectWriter::begin(tool.key("_meta"));
    meta.text("art.flux7/method", place.method);
    meta.text("art.flux7/path", place.path);
    meta.end();
    tool.end();
    out
}

fn description(source: &Source<'_>, place: &Place<'_, '_>, summary: Option<String>) -> String {
    let own = text_of(place.operation, "description").or_else(|| text_of(place.path_item, "description"));
    let own = own.filter(|own| Some(own) != summary.as_ref());
    let said: Vec<String> = [summary, own].into_iter().flatten().collect();
    let mut parts = vec![cut(&said.join("\n\n"), MAX_DESCRIPTION)];
    if said.is_empty() {
        parts = vec![format!("{} {}", place.method, place.path)];
    }
    if is_true(place.operation, "deprecated") {
        parts.push("Deprecated.".to_owned());
    }
    parts.extend(security::described(source, place.operation));
    parts.join("\n\n")
}

/// What HTTP says about a method (RFC 9110, section 9.2).
fn annotations(method: &str) -> Option<&'static str> {
    match method {
        "GET" | "HEAD" | "OPTIONS" => Some(r#"{"readOnlyHint":true}"#),
        "DELETE" => Some(r#"{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":true}"#),
        "PUT" => Some(r#"{"readOnlyHint":false,"idempotentHint":true}"#),
        "POST" | "PATCH" => Some(r#"{"readOnlyHint":false}"#),
        _ => None,
    }
}

/// A path and its parameters, numbered as they are declared; what the path names and nothing declares is a text.
fn path_parts(path: &str, declared: &mut Vec<DeclaredParameter<'_>>) -> Result<Vec<PathPart>, Unusable> {
    let refused = |why| Unusable::Path(cut(path, 200), why);
    if path.contains(['?', '#']) {
        return Err(refused(
            "it holds a query or a fragment; declare those as parameters",
        ));
    }
    if path.contains(char::is_control) {
        return Err(refused("it holds control characters"));
    }
    // What no path names is declared for nothing, and is sent nowhere.
    declared
        .retain(|known| known.location != Location::Path || path.contains(&format!("{{{}}}", known.name)));
    let mut parts = Vec::new();
    let mut rest = path;
    while let Some((literal, after)) = rest.split_once('{') {
        let (name, tail) = after
            .split_once('}')
            .filter(|(name, _)| !name.is_empty() && !name.contains(['{', '/']))
            .ok_or_else(|| refused("its braces do not match"))?;
        parts.push(PathPart::Literal(encoded(literal)));
        let known = declared
            .iter()
            .position(|known| known.location == Location::Path && known.name == name);
        let number = known.unwrap_or_else(|| {
            declared.push(undeclared(name));
            declared.len() - 1
        });
        parts.push(PathPart::Parameter(number));
        rest = tail;
    }
    if rest.contains('}') {
        return Err(refused("its braces do not match"));
    }
    parts.push(PathPart::Literal(encoded(rest)));
    let is_step = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    };
    if path.split('/').any(is_step) {
        return Err(refused("it holds \".\" or \"..\""));
    }
    Ok(parts)
}

fn undeclared<'d>(name: &str) -> DeclaredParameter<'d> {
    DeclaredParameter {
        name: name.to_owned(),
        location: Location::Path,
        wire: Wire {
            style: Style::Simple,
            explodes: false,
            keeps_reserved: false,
        },
        is_required: true,
        description: None,
        schema: None,
    }
}

/// A literal part of a path, with what may not stand in one percent-encoded.
fn encoded(literal: &str) -> String {
    let mut out = String::with_capacity(literal.len());
    for byte in literal.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/%".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

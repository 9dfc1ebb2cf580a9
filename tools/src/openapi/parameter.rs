//! Parameters as documents declare them.

use super::document::{Source, Unusable};
use super::template::{Location, Style, Wire};
use super::text::{is_true, text_of};
use crate::json::{Kind, Node};

/// Headers that are not a document's to ask for: of the connection, of the message's body, and of who calls.
const RESERVED_HEADERS: [&str; 21] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-host",
];
/// Parameters of one operation, at most.
const MAX_PARAMETERS: usize = 500;

/// A parameter as it was declared.
#[derive(Clone)]
pub(super) struct DeclaredParameter<'d> {
    pub(super) name: String,
    pub(super) location: Location,
    pub(super) wire: Wire,
    pub(super) is_required: bool,
    pub(super) description: Option<String>,
    /// The schema; of Swagger 2.0 the parameter itself.
    pub(super) schema: Option<Node<'d>>,
}

/// What Swagger 2.0 declares among the parameters and is the body.
#[derive(Default)]
pub(super) struct SwaggerBody<'d> {
    /// The parameter `in: body`.
    pub(super) whole: Option<Node<'d>>,
    /// The parameters `in: formData`.
    pub(super) fields: Vec<Node<'d>>,
}

/// The parameters of an operation: its own, and those of its path that it does not declare anew.
pub(super) fn of<'d>(
    source: &Source<'d>,
    path_item: Node<'d>,
    operation: Node<'d>,
    configured_headers: &[String],
) -> Result<(Vec<DeclaredParameter<'d>>, SwaggerBody<'d>), Unusable> {
    let mut all: Vec<DeclaredParameter<'d>> = Vec::new();
    let mut body = SwaggerBody::default();
    let lists = [operation.get("parameters"), path_item.get("parameters")];
    for node in lists.into_iter().flatten().flat_map(Node::elements) {
        let node = source.resolved(node)?;
        let place = text_of(node, "in").unwrap_or_default();
        let location = match place.as_str() {
            "path" => Location::Path,
            "query" => Location::Query,
            "header" => Location::Header,
            "cookie" => Location::Cookie,
            "body" if source.is_swagger() => {
                body.whole.get_or_insert(node);
                continue;
            }
            "formData" if source.is_swagger() => {
                let name = text_of(node, "name");
                if !body.fields.iter().any(|known| text_of(*known, "name") == name) {
                    body.fields.push(node);
                }
                continue;
            }
            _ => {
                return Err(Unusable::Shape {
                    what: format!("the place {place:?} of a parameter"),
                    expected: "path, query, header or cookie",
                });
            }
        };
        let name = node
            .get("name")
            .and_then(Node::as_str)
            .filter(|name| !name.is_empty())
            .ok_or(Unusable::Shape {
                what: "the name of a parameter".to_owned(),
                expected: "a text",
            })?;
        let is_known = all
            .iter()
            .any(|known| known.location == location && known.name == *name);
        if !is_known && !is_left_out(&name, location, configured_headers) {
            all.push(declared(source, node, &name, location)?);
        }
        if all.len() > MAX_PARAMETERS {
            return Err(Unusable::Shape {
                what: "the number of its parameters".to_owned(),
                expected: "500 or less",
            });
        }
    }
    // Of arguments that want the same name, the one in the path has it.
    all.sort_by_key(|declared| declared.location);
    Ok((all, body))
}

/// Whether a parameter is not the agent's: what the operator configured, and what the connection needs.
fn is_left_out(name: &str, location: Location, configured_headers: &[String]) -> bool {
    let is_configured = |header: &str| {
        configured_headers
            .iter()
            .any(|known| known.eq_ignore_ascii_case(header))
    };
    match location {
        Location::Path | Location::Query => false,
        Location::Cookie => is_configured("cookie"),
        Location::Header => {
            RESERVED_HEADERS
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))
                || is_configured(name)
        }
    }
}

fn declared<'d>(
    source: &Source<'d>,
    node: Node<'d>,
    name: &str,
    location: Location,
) -> Result<DeclaredParameter<'d>, Unusable> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let needs_token = matches!(location, Location::Header | Location::Cookie);
    if name.len() > 256 || (needs_token && !name.bytes().all(is_token)) || name.contains(char::is_control) {
        return Err(Unusable::Parameter(
            super::text::cut(name, 60),
            "its name has characters that cannot stand there",
        ));
    }
    let (schema, wire) = if source.is_swagger() {
        (Some(node), swagger_wire(node, location))
    } else {
        match node.get("content").and_then(|content| content.members().next()) {
            Some((media_type, content)) => {
                let is_json = super::body::is_json(&media_type);
                let style = if is_json {
                    Style::Json
                } else {
                    default_style(location)
                };
                (content.get("schema"), wire(style, false))
            }
            None => (node.get("schema"), own_wire(node, location)?),
        }
    };
    Ok(DeclaredParameter {
        name: name.to_owned(),
        location,
        wire,
        is_required: location == Location::Path || is_true(node, "required"),
        description: text_of(node, "description"),
        schema: schema.filter(|schema| matches!(schema.kind(), Kind::Object | Kind::Bool)),
    })
}

fn wire(style: Style, explodes: bool) -> Wire {
    Wire {
        style,
        explodes,
        keeps_reserved: false,
    }
}

fn default_style(location: Location) -> Style {
    match location {
        Location::Path | Location::Header => Style::Simple,
        Location::Query | Location::Cookie => Style::Form,
    }
}

fn own_wire(node: Node<'_>, location: Location) -> Result<Wire, Unusable> {
    let style = match text_of(node, "style").as_deref() {
        None => default_style(location),
        Some("simple") => Style::Simple,
        Some("label") => Style::Label,
        Some("matrix") => Style::Matrix,
        Some("form") => Style::Form,
        Some("spaceDelimited") => Style::SpaceDelimited,
        Some("pipeDelimited") => Style::PipeDelimited,
        Some("deepObject") => Style::DeepObject,
        Some(_) => {
            let name = text_of(node, "name").unwrap_or_default();
            return Err(Unusable::Parameter(name, "its style is unknown"));
        }
    };
    let fits = match location {
        Location::Path => matches!(style, Style::Simple | Style::Label | Style::Matrix),
        Location::Header => style == Style::Simple,
        Location::Cookie => style == Style::Form,
        Location::Query => !matches!(
            style,
            Style::Simple | Style::Label | Style::Matrix | Style::FormField
        ),
    };
    // A style that has no meaning there is what documents write by mistake; the usual one is what services expect.
    let style = if fits { style } else { default_style(location) };
    let explodes = node
        .get("explode")
        .and_then(Node::as_bool)
        .unwrap_or(style == Style::Form);
    Ok(Wire {
        style,
        explodes,
        keeps_reserved: location == Location::Query && is_true(node, "allowReserved"),
    })
}

/// `collectionFormat` of Swagger 2.0.
pub(super) fn swagger_wire(node: Node<'_>, location: Location) -> Wire {
    let is_query = location == Location::Query;
    match text_of(node, "collectionFormat").as_deref() {
        Some("multi") if is_query => wire(Style::Form, true),
        Some("ssv") if is_query => wire(Style::SpaceDelimited, false),
        Some("tsv") if is_query => wire(Style::TabDelimited, false),
        Some("pipes") if is_query => wire(Style::PipeDelimited, false),
        _ => wire(default_style(location), false),
    }
}

//! Bodies as documents declare them.

use super::document::{Source, Unusable};
use super::parameter::{SwaggerBody, swagger_wire};
use super::schema::is_read_only;
use super::template::{Location, Style, Wire};
use super::text::{is_true, text_of};
use crate::json::{Kind, Node};

/// Properties of one body, at most.
const MAX_PROPERTIES: usize = 1000;
/// Schemas inside each other by `allOf`, at most.
const MAX_NESTING: usize = 16;
/// Schemas that are looked at for one body, at most.
const MAX_PARTS: usize = 500;
/// What may stand beside `properties` when they alone say what the object is.
const HARMLESS: [&str; 18] = [
    "type",
    "properties",
    "required",
    "title",
    "description",
    "example",
    "examples",
    "default",
    "xml",
    "externalDocs",
    "deprecated",
    "nullable",
    "allOf",
    "additionalProperties",
    "readOnly",
    "writeOnly",
    "$schema",
    "format",
];

/// The body of an operation's requests.
pub(super) struct DeclaredBody<'d> {
    pub(super) media_type: String,
    pub(super) is_required: bool,
    pub(super) shape: Shape<'d>,
    pub(super) description: Option<String>,
}

/// What the body consists of.
pub(super) enum Shape<'d> {
    /// Any JSON, by this schema.
    Json(Option<Node<'d>>),
    /// A JSON object of these.
    JsonMembers(Vec<Property<'d>>),
    Form(Vec<Property<'d>>),
    Multipart(Vec<Property<'d>>),
    Text,
    Bytes,
}

/// A property of a body.
pub(super) struct Property<'d> {
    pub(super) name: String,
    /// All of them hold.
    pub(super) schemas: Vec<Node<'d>>,
    pub(super) is_required: bool,
    pub(super) wire: Wire,
    pub(super) media_type: Option<String>,
    pub(super) file: Option<File>,
}

/// A property whose value is bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    One,
    Several,
}

/// Whether a media type is JSON; one that says nothing is taken for it.
pub(super) fn is_json(media_type: &str) -> bool {
    let essence = essence(media_type);
    essence.ends_with("/json") || essence.ends_with("+json") || essence == "*/*" || essence == "application/*"
}

fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// The body that `requestBody` declares; the media type that is easiest to be right with is chosen.
pub(super) fn of<'d>(source: &Source<'d>, operation: Node<'d>) -> Result<Option<DeclaredBody<'d>>, Unusable> {
    let Some(declared) = operation.get("requestBody") else {
        return Ok(None);
    };
    let declared = source.resolved(declared)?;
    let Some(content) = declared.get("content") else {
        return Ok(None);
    };
    let mut chosen: Option<(u8, String, Node<'d>)> = None;
    for (media_type, node) in content.members().take(50) {
        let rank = rank(&media_type);
        if chosen.as_ref().is_none_or(|(best, _, _)| rank < *best) {
            chosen = Some((rank, media_type.into_owned(), node));
        }
    }
    let Some((_, media_type, node)) = chosen else {
        return Ok(None);
    };
    if media_type.len() > 200 || media_type.contains(|letter: char| !letter.is_ascii() || letter.is_control())
    {
        return Err(Unusable::Shape {
            what: format!("the media type {:?}", super::text::cut(&media_type, 60)),
            expected: "one",
        });
    }
    let is_required = is_true(declared, "required");
    let shape = shape(source, &media_type, node)?;
    Ok(Some(DeclaredBody {
        media_type: concrete(media_type),
        is_required,
        shape,
        description: text_of(declared, "description"),
    }))
}

/// The order in which media types are chosen.
fn rank(media_type: &str) -> u8 {
    match essence(media_type).as_str() {
        "application/json" => 0,
        _ if is_json(media_type) => 1,
        "application/x-www-form-urlencoded" => 2,
        "multipart/form-data" => 3,
        text if is_text(text) => 4,
        _ => 5,
    }
}

fn is_text(essence: &str) -> bool {
    let known = [
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/graphql",
    ];
    essence.starts_with("text/")
        || essence.ends_with("+xml")
        || essence.ends_with("+yaml")
        || known.contains(&essence)
}

/// What is sent for a media type: wildcards stand for JSON or bytes.
fn concrete(media_type: String) -> String {
    if !media_type.contains('*') {
        media_type
    } else if is_json(&media_type) {
        "application/json".to_owned()
    } else {
        "application/octet-stream".to_owned()
    }
}

fn shape<'d>(source: &Source<'d>, media_type: &str, node: Node<'d>) -> Result<Shape<'d>, Unusable> {
    let schema = node.get("schema").filter(|schema| schema.kind() == Kind::Object);
    if is_json(media_type) {
        let Some(schema) = schema else {
            return Ok(Shape::Json(None));
        };
        return Ok(match properties(source, schema)? {
            Some(properties) => Shape::JsonMembers(properties),
            None => Shape::Json(Some(schema)),
        });
    }
    let essence = essence(media_type);
    let is_multipart = essence == "multipart/form-data";
    if is_multipart || essence == "application/x-www-form-urlencoded" {
        let found = schema
            .map(|schema| properties(source, schema))
            .transpose()?
            .flatten();
        let mut found = found.ok_or_else(|| Unusable::Shape {
            what: "the schema of its form".to_owned(),
            expected: "an object of named fields",
        })?;
        for property in &mut found {
            encoding(source, node.get("encoding"), property);
        }
        return Ok(if is_multipart {
            Shape::Multipart(found)
        } else {
            Shape::Form(found)
        });
    }
    Ok(if is_text(&essence) {
        Shape::Text
    } else {
        Shape::Bytes
    })
}

/// How a field of a form is written.
fn encoding<'d>(source: &Source<'d>, encodings: Option<Node<'d>>, property: &mut Property<'d>) {
    property.file = file(source, property);
    let Some(encoding) = encodings.and_then(|all| all.get(&property.name)) else {
        return;
    };
    property.media_type = text_of(encoding, "contentType")
        .and_then(|types| Some(types.split(',').next()?.trim().to_owned()))
        .filter(|kind| !kind.contains('*') && kind.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
    let style = match text_of(encoding, "style").as_deref() {
        Some("deepObject") => Style::DeepObject,
        Some("spaceDelimited") => Style::SpaceDelimited,
        Some("pipeDelimited") => Style::PipeDelimited,
        Some(_) => Style::Form,
        None if encoding.get("explode").is_some() => Style::Form,
        None => return,
    };
    property.wire = Wire {
        style,
        explodes: encoding
            .get("explode")
            .and_then(Node::as_bool)
            .unwrap_or(style == Style::Form),
        keeps_reserved: false,
    };
}

fn file<'d>(source: &Source<'d>, property: &Property<'d>) -> Option<File> {
    let schema = source.resolved(*property.schemas.first()?).ok()?;
    if is_file(schema) {
        return Some(File::One);
    }
    let items = source.resolved(schema.get("items")?).ok()?;
    is_file(items).then_some(File::Several)
}

/// Whether a value is bytes that no JSON text can hold.
fn is_file(schema: Node<'_>) -> bool {
    let media_type = text_of(schema, "contentMediaType").map(|kind| essence(&kind));
    text_of(schema, "format").as_deref() == Some("binary")
        || text_of(schema, "type").as_deref() == Some("file")
        || (schema.get("contentEncoding").is_none()
            && media_type.is_some_and(|kind| !is_text(&kind) && !is_json(&kind)))
}

/// The properties of a schema that is nothing but an object of them; none for any other.
fn properties<'d>(source: &Source<'d>, schema: Node<'d>) -> Result<Option<Vec<Property<'d>>>, Unusable> {
    let mut gathered = Gathered {
        found: Vec::new(),
        required: Vec::new(),
        parts: 0,
    };
    let is_plain = gathered.gather(source, schema, 0)?;
    let Gathered {
        mut found, required, ..
    } = gathered;
    // What one part declares another can ask for.
    for property in &mut found {
        property.is_required = required.contains(&property.name);
    }
    Ok((is_plain && !found.is_empty()).then_some(found))
}

/// What the parts of a schema declare together.
struct Gathered<'d> {
    found: Vec<Property<'d>>,
    required: Vec<String>,
    /// Schemas looked at: parts can be referred to again and again.
    parts: usize,
}

impl<'d> Gathered<'d> {
    /// Adds a schema; says whether it is nothing but an object of properties.
    fn gather(&mut self, source: &Source<'d>, schema: Node<'d>, depth: usize) -> Result<bool, Unusable> {
        self.parts += 1;
        let schema = source.resolved(schema)?;
        if depth > MAX_NESTING || self.parts > MAX_PARTS || !is_plain_object(schema) {
            return Ok(false);
        }
        let names = schema.get("required").into_iter().flat_map(Node::elements);
        self.required
            .extend(names.filter_map(|name| Some(name.as_str()?.into_owned())));
        for (name, schema) in schema.get("properties").into_iter().flat_map(Node::members) {
            if is_read_only(source, schema) {
                continue;
            }
            match self.found.iter_mut().find(|known| known.name == name) {
                Some(known) => known.schemas.push(schema),
                None => self.found.push(property(name.into_owned(), schema, false)),
            }
            if self.found.len() > MAX_PROPERTIES {
                return Ok(false);
            }
        }
        for part in schema.get("allOf").into_iter().flat_map(Node::elements) {
            if !self.gather(source, part, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn is_plain_object(schema: Node<'_>) -> bool {
    let is_object = match schema.get("type") {
        Some(word) => word.as_str().is_some_and(|word| word == "object"),
        None => schema.get("properties").is_some() || schema.get("allOf").is_some(),
    };
    let is_closed_or_silent = |value: Node<'_>| {
        value.as_bool() == Some(false) || (value.kind() == Kind::Object && value.is_empty())
    };
    let mut keys = schema.members();
    is_object
        && keys.all(|(key, _)| HARMLESS.contains(&&*key) || key.starts_with("x-"))
        && schema.get("additionalProperties").is_none_or(is_closed_or_silent)
}

fn property(name: String, schema: Node<'_>, is_required: bool) -> Property<'_> {
    Property {
        name,
        schemas: vec![schema],
        is_required,
        wire: Wire {
            style: Style::FormField,
            explodes: true,
            keeps_reserved: false,
        },
        media_type: None,
        file: None,
    }
}

/// The body that the parameters of Swagger 2.0 declare.
pub(super) fn of_swagger<'d>(
    source: &Source<'d>,
    operation: Node<'d>,
    declared: &SwaggerBody<'d>,
) -> Result<Option<DeclaredBody<'d>>, Unusable> {
    let consumes: Vec<String> = operation
        .get("consumes")
        .or_else(|| source.root.get("consumes"))
        .into_iter()
        .flat_map(Node::elements)
        .filter_map(|kind| Some(kind.as_str()?.into_owned()))
        .filter(|kind| kind.bytes().all(|byte| (0x20..0x7f).contains(&byte)))
        .collect();
    if let Some(whole) = declared.whole {
        let chosen = consumes.iter().min_by_key(|kind| rank(kind)).cloned();
        let media_type = chosen.unwrap_or_else(|| "application/json".to_owned());
        // The schema stands where a media type has it in later versions.
        return Ok(Some(DeclaredBody {
            shape: shape(source, &media_type, whole)?,
            media_type: concrete(media_type),
            is_required: is_true(whole, "required"),
            description: text_of(whole, "description"),
        }));
    }
    if declared.fields.is_empty() {
        return Ok(None);
    }
    let mut fields = Vec::new();
    for node in declared.fields.iter().take(MAX_PROPERTIES) {
        let Some(name) = text_of(*node, "name") else {
            continue;
        };
        let mut field = property(name, *node, is_true(*node, "required"));
        field.file = file(source, &field);
        if text_of(*node, "type").as_deref() == Some("array") {
            // Fields of forms can be repeated as those of queries.
            field.wire = swagger_wire(*node, Location::Query);
        }
        fields.push(field);
    }
    let is_multipart = consumes.iter().any(|kind| essence(kind) == "multipart/form-data")
        || fields.iter().any(|field| field.file.is_some());
    let is_required = fields.iter().any(|field| field.is_required);
    let (media_type, shape) = if is_multipart {
        ("multipart/form-data", Shape::Multipart(fields))
    } else {
        ("application/x-www-form-urlencoded", Shape::Form(fields))
    };
    Ok(Some(DeclaredBody {
        media_type: media_type.to_owned(),
        is_required,
        shape,
        description: None,
    }))
}

//! Schemas of documents as JSON Schema 2020-12, with everything they refer to.

use std::collections::{HashMap, VecDeque};

use super::document::{Source, Unusable, Version};
use super::text::{ObjectWriter, cut, is_true, list, quoted, text_of};
use crate::arguments::is_usable_pattern;
use crate::decimal::Decimal;
use crate::json::{Kind, Node};

/// The longest description within a schema, in characters.
const MAX_DESCRIPTION: usize = 1000;
/// What a schema that is told elsewhere is called in references.
const DEFINITIONS: &str = "#/$defs/";
/// Keywords whose value is a count.
const COUNTS: [&str; 8] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
];
/// Keywords whose value is one schema.
const SCHEMAS: [&str; 7] = [
    "items",
    "additionalProperties",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
];
/// The words of `type`.
const TYPES: [&str; 7] = [
    "null", "boolean", "number", "integer", "string", "array", "object",
];

/// Writes schemas, and remembers what they refer to.
pub(super) struct SchemaWriter<'s, 'd> {
    source: &'s Source<'d>,
    /// Names of what was referred to, by reference.
    names: HashMap<String, String>,
    waiting: VecDeque<(String, String)>,
    /// Whether descriptions within what is referred to are kept.
    pub(super) describes_definitions: bool,
    /// Bytes that may be written.
    limit: usize,
    is_definition: bool,
}

impl<'s, 'd> SchemaWriter<'s, 'd> {
    pub(super) fn new(source: &'s Source<'d>, limit: usize) -> Self {
        Self {
            source,
            names: HashMap::new(),
            waiting: VecDeque::new(),
            describes_definitions: true,
            limit,
            is_definition: false,
        }
    }

    /// The schema of one argument: what a reference leads to stands in its place, under this description.
    pub(super) fn argument(
        &mut self,
        schema: Node<'d>,
        description: Option<&str>,
        out: &mut String,
    ) -> Result<(), Unusable> {
        let is_bare = schema
            .members()
            .all(|(key, _)| key == "$ref" || key == "description");
        let inlined = if is_bare {
            self.source.resolved(schema)?
        } else {
            schema
        };
        let own = text_of(schema, "description");
        self.described(inlined, description.or(own.as_deref()), out)
    }

    /// The schema of one value.
    pub(super) fn schema(&mut self, schema: Node<'d>, out: &mut String) -> Result<(), Unusable> {
        self.described(schema, None, out)
    }

    fn described(
        &mut self,
        schema: Node<'d>,
        description: Option<&str>,
        out: &mut String,
    ) -> Result<(), Unusable> {
        if out.len() > self.limit {
            return Err(Unusable::TooLarge(self.limit));
        }
        match schema.kind() {
            Kind::Bool => {
                out.push_str(schema.raw_str());
                return Ok(());
            }
            Kind::Object => {}
            Kind::Null | Kind::Number | Kind::String | Kind::Array => {
                return Err(Unusable::Shape {
                    what: format!("the schema {}", cut(schema.raw_str(), 60)),
                    expected: "an object",
                });
            }
        }
        let mut writer = ObjectWriter::begin(out);
        let reference = schema.get("$ref").and_then(Node::as_str);
        if let Some(reference) = &reference {
            let name = self.name(reference)?;
            writer.text("$ref", &format!("{DEFINITIONS}{name}"));
        }
        // Beside a reference only the newest version lets anything stand.
        if reference.is_none() || self.source.version == Version::OpenApi31 {
            self.type_and_values(schema, &mut writer);
            for (key, value) in schema.members() {
                if key == "description" && description.is_some() {
                    continue;
                }
                self.keyword(&key, value, schema, &mut writer)?;
            }
            bounds(schema, &mut writer);
        }
        if let Some(description) = description {
            writer.text("description", &cut(description, MAX_DESCRIPTION));
        }
        writer.end();
        Ok(())
    }

    /// What was referred to, as the members of `$defs`; none when nothing was.
    pub(super) fn definitions(&mut self) -> Result<Option<String>, Unusable> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        self.is_definition = true;
        let mut out = String::new();
        let mut writer = ObjectWriter::begin(&mut out);
        while let Some((reference, name)) = self.waiting.pop_front() {
            let target = self.source.target(&reference)?;
            self.schema(target, writer.key(&name))?;
        }
        writer.end();
        Ok(Some(out))
    }

    /// How what a reference leads to is called here.
    fn name(&mut self, reference: &str) -> Result<String, Unusable> {
        if let Some(name) = self.names.get(reference) {
            return Ok(name.clone());
        }
        self.source.target(reference)?;
        let last = reference.rsplit('/').next().unwrap_or_default();
        let plain: String = last
            .chars()
            .map(|letter| {
                if letter.is_ascii_alphanumeric() || "._-".contains(letter) {
                    letter
                } else {
                    '_'
                }
            })
            .take(80)
            .collect();
        let is_taken = |name: &String| self.names.values().any(|known| known == name);
        let name = if plain.is_empty() || is_taken(&plain) {
            format!("{plain}_{}", self.names.len())
        } else {
            plain
        };
        self.names.insert(reference.to_owned(), name.clone());
        self.waiting.push_back((reference.to_owned(), name.clone()));
        Ok(name)
    }

    fn keyword(
        &mut self,
        key: &str,
        value: Node<'d>,
        schema: Node<'d>,
        writer: &mut ObjectWriter<'_>,
    ) -> Result<(), Unusable> {
        match (key, value.kind()) {
            ("title" | "description", Kind::String) if !self.is_definition || self.describes_definitions => {
                writer.text(key, &cut(&value.as_str().unwrap_or_default(), MAX_DESCRIPTION));
            }
            ("format" | "contentEncoding" | "contentMediaType", Kind::String)
            | ("default", _)
            | ("uniqueItems" | "deprecated", Kind::Bool) => writer.raw(key, value.raw_str()),
            ("pattern", Kind::String) => {
                // What needs backtracking is left to the service.
                let pattern = value.as_str().unwrap_or_default();
                if is_usable_pattern(&pattern) {
                    writer.raw(key, value.raw_str());
                }
            }
            ("required", Kind::Array) => {
                let names = self.required(schema, value);
                if !names.is_empty() {
                    writer.raw(key, &list(names.iter().map(String::as_str)));
                }
            }
            ("dependentRequired", Kind::Object) if value.members().all(|(_, names)| is_names(names)) => {
                writer.raw(key, value.raw_str());
            }
            ("properties" | "dependentSchemas", Kind::Object) => {
                let out = writer.key(key);
                self.properties(value, |_| true, out)?;
            }
            ("patternProperties", Kind::Object) => {
                let out = writer.key(key);
                self.properties(value, is_usable_pattern, out)?;
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Kind::Array) if !value.is_empty() => {
                let out = writer.key(key);
                out.push('[');
                for (at, part) in value.elements().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self.schema(part, out)?;
                }
                out.push(']');
            }
            (key, Kind::Object | Kind::Bool) if SCHEMAS.contains(&key) || key == "else" => {
                self.schema(value, writer.key(key))?;
            }
            ("multipleOf", Kind::Number) if value.number().is_some_and(|step| is_step(&step)) => {
                writer.raw(key, value.raw_str());
            }
            (key, Kind::Number)
                if COUNTS.contains(&key) && value.number().is_some_and(|count| is_count(&count)) =>
            {
                writer.raw(key, value.raw_str());
            }
            _ => {}
        }
        Ok(())
    }

    /// Properties without those that only answers have.
    fn properties(
        &mut self,
        properties: Node<'d>,
        is_kept: impl Fn(&str) -> bool,
        out: &mut String,
    ) -> Result<(), Unusable> {
        let mut writer = ObjectWriter::begin(out);
        for (name, schema) in properties.members() {
            if is_kept(&name) && !is_read_only(self.source, schema) {
                self.schema(schema, writer.key(&name))?;
            }
        }
        writer.end();
        Ok(())
    }

    fn required(&self, schema: Node<'d>, required: Node<'d>) -> Vec<String> {
        let properties = schema.get("properties");
        required
            .elements()
            .filter_map(|name| Some(name.as_str()?.into_owned()))
            .filter(|name| {
                let property = properties.and_then(|properties| properties.get(name));
                !property.is_some_and(|property| is_read_only(self.source, property))
            })
            .collect()
    }

    /// `type`, `nullable`, `enum` and `const`.
    fn type_and_values(&self, schema: Node<'d>, writer: &mut ObjectWriter<'_>) {
        let is_nullable = self.source.version != Version::OpenApi31
            && (is_true(schema, "nullable") || is_true(schema, "x-nullable"));
        let mut types: Vec<String> = match schema.get("type") {
            Some(kind) if kind.kind() == Kind::Array => kind.elements().filter_map(type_word).collect(),
            Some(kind) => type_word(kind).into_iter().collect(),
            None => Vec::new(),
        };
        if is_nullable && !types.is_empty() && !types.iter().any(|word| word == "null") {
            types.push("null".to_owned());
        }
        match types.as_slice() {
            [] => {}
            [only] => writer.text("type", only),
            several => writer.raw("type", &list(several.iter().map(String::as_str))),
        }
        if let Some(values) = schema.get("enum").filter(|values| values.kind() == Kind::Array) {
            let mut raw: Vec<&str> = values.elements().map(Node::raw_str).collect();
            if is_nullable && !raw.contains(&"null") {
                raw.push("null");
            }
            writer.raw("enum", &format!("[{}]", raw.join(",")));
        }
        if let Some(value) = schema.get("const") {
            writer.raw("const", value.raw_str());
        }
    }
}

fn is_names(names: Node<'_>) -> bool {
    names.kind() == Kind::Array && names.elements().all(|name| name.kind() == Kind::String)
}

fn is_step(step: &Decimal) -> bool {
    *step > Decimal::ZERO && step.can_divide()
}

fn is_count(count: &Decimal) -> bool {
    *count >= Decimal::ZERO && count.is_integer()
}

/// Whether only answers have a property.
pub(super) fn is_read_only<'d>(source: &Source<'d>, schema: Node<'d>) -> bool {
    is_true(schema, "readOnly")
        || source
            .resolved(schema)
            .is_ok_and(|target| is_true(target, "readOnly"))
}

/// A word of `type`; what Swagger calls a file is its text.
fn type_word(word: Node<'_>) -> Option<String> {
    let word = word.as_str()?;
    if word == "file" {
        return Some("string".to_owned());
    }
    TYPES.contains(&&*word).then(|| word.into_owned())
}

/// Bounds of numbers; before 3.1 the exclusive ones are flags.
fn bounds(schema: Node<'_>, writer: &mut ObjectWriter<'_>) {
    for (inclusive, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let number = |key: &str| schema.get(key).and_then(Node::number_text);
        match (number(inclusive), number(exclusive)) {
            (Some(limit), None) if is_true(schema, exclusive) => writer.raw(exclusive, limit),
            (limit, beyond) => {
                if let Some(limit) = limit {
                    writer.raw(inclusive, limit);
                }
                if let Some(beyond) = beyond {
                    writer.raw(exclusive, beyond);
                }
            }
        }
    }
}

/// The schema of bytes.
pub(super) fn base64_text(description: Option<&str>) -> String {
    let description = description.map_or_else(
        || "Base64 of the bytes.".to_owned(),
        |text| format!("{} (base64 of the bytes)", cut(text, MAX_DESCRIPTION)),
    );
    format!(
        "{{\"type\":\"string\",\"contentEncoding\":\"base64\",\"description\":{}}}",
        quoted(&description)
    )
}

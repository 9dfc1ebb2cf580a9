//! What an operation looks like as a tool: its arguments, its input schema and its declaration.

use std::collections::HashSet;

use super::body::{DeclaredBody, File, Property, Shape};
use super::document::Unusable;
use super::parameter::DeclaredParameter;
use super::schema::{SchemaWriter, base64_text};
use super::template::{Body, BodyForm, FormField, Member, Parameter, Part};
use super::text::{ObjectWriter, list, text_of};
use crate::json::Node;

/// The longest name of an argument: what the interfaces of models accept.
const MAX_ARGUMENT: usize = 64;

/// The arguments of a tool, in the order of the document.
#[derive(Default)]
pub(super) struct Arguments<'d> {
    all: Vec<Argument<'d>>,
    taken: HashSet<String>,
    /// Arguments that must all be given as soon as one of these is: the properties of a body that may be left out.
    together: Option<(Vec<String>, Vec<String>)>,
}

struct Argument<'d> {
    name: String,
    is_required: bool,
    description: Option<String>,
    schema: ArgumentSchema<'d>,
}

enum ArgumentSchema<'d> {
    /// All of them hold; none: anything.
    Of(Vec<Node<'d>>),
    Text,
    File(File),
}

impl<'d> Arguments<'d> {
    /// Adds a parameter.
    pub(super) fn parameter(&mut self, declared: &DeclaredParameter<'d>) -> Parameter {
        let name = self.name(&declared.name, declared.location.word());
        self.all.push(Argument {
            name: name.clone(),
            is_required: declared.is_required,
            description: declared.description.clone(),
            schema: ArgumentSchema::Of(declared.schema.into_iter().collect()),
        });
        Parameter {
            argument: name,
            name: declared.name.clone(),
            location: declared.location,
            wire: declared.wire,
        }
    }

    /// Adds what the body consists of.
    pub(super) fn body(&mut self, declared: DeclaredBody<'d>) -> Body {
        let DeclaredBody {
            media_type,
            is_required,
            shape,
            description,
        } = declared;
        let form = match shape {
            Shape::Json(schema) => BodyForm::Json(self.whole(
                is_required,
                description,
                ArgumentSchema::Of(schema.into_iter().collect()),
            )),
            Shape::Text => BodyForm::Text(self.whole(is_required, description, ArgumentSchema::Text)),
            Shape::Bytes => {
                BodyForm::Bytes(self.whole(is_required, description, ArgumentSchema::File(File::One)))
            }
            Shape::JsonMembers(properties) => {
                let members = self.members(properties, is_required);
                BodyForm::JsonMembers(members.into_iter().map(|(member, _)| member).collect())
            }
            Shape::Form(properties) => BodyForm::Form(
                self.members(properties, is_required)
                    .into_iter()
                    .map(|(member, property)| FormField {
                        member,
                        wire: property.wire,
                    })
                    .collect(),
            ),
            Shape::Multipart(properties) => BodyForm::Multipart(
                self.members(properties, is_required)
                    .into_iter()
                    .map(|(member, property)| Part {
                        member,
                        media_type: property.media_type,
                        is_file: property.file.is_some(),
                    })
                    .collect(),
            ),
        };
        Body {
            media_type,
            form,
            is_required,
        }
    }

    fn whole(
        &mut self,
        is_required: bool,
        description: Option<String>,
        schema: ArgumentSchema<'d>,
    ) -> String {
        let name = self.name("body", "request");
        self.all.push(Argument {
            name: name.clone(),
            is_required,
            description,
            schema,
        });
        name
    }

    fn members(
        &mut self,
        properties: Vec<Property<'d>>,
        body_is_required: bool,
    ) -> Vec<(Member, Property<'d>)> {
        let (mut names, mut needed) = (Vec::new(), Vec::new());
        let members: Vec<(Member, Property<'d>)> = properties
            .into_iter()
            .map(|property| {
                let argument = self.name(&property.name, "body");
                names.push(argument.clone());
                if property.is_required {
                    needed.push(argument.clone());
                }
                let schema = match property.file {
                    Some(file) => ArgumentSchema::File(file),
                    None => ArgumentSchema::Of(property.schemas.clone()),
                };
                self.all.push(Argument {
                    name: argument.clone(),
                    is_required: property.is_required && body_is_required,
                    description: match property.file {
                        Some(_) => property
                            .schemas
                            .first()
                            .and_then(|schema| text_of(*schema, "description")),
                        None => None,
                    },
                    schema,
                });
                let name = property.name.clone();
                (Member { argument, name }, property)
            })
            .collect();
        if !body_is_required && !needed.is_empty() {
            self.together = Some((names, needed));
        }
        members
    }

    /// A name that no other argument has; one that clashes gets a word before it.
    fn name(&mut self, wanted: &str, word: &str) -> String {
        let plain = plain(wanted);
        let prefixed = format!("{word}_{plain}");
        let numbered = (2..).map(|number| format!("{prefixed}_{number}"));
        let name = [plain, prefixed.clone()]
            .into_iter()
            .chain(numbered)
            .find(|name| !self.taken.contains(name))
            .unwrap_or_default();
        self.taken.insert(name.clone());
        name
    }

    /// The input schema.
    pub(super) fn schema(&self, writer: &mut SchemaWriter<'_, 'd>) -> Result<String, Unusable> {
        let mut out = String::new();
        let mut object = ObjectWriter::begin(&mut out);
        object.text("type", "object");
        let mut properties = ObjectWriter::begin(object.key("properties"));
        for argument in &self.all {
            argument.write(writer, properties.key(&argument.name))?;
        }
        properties.end();
        let required: Vec<&str> = self
            .all
            .iter()
            .filter(|argument| argument.is_required)
            .map(|argument| argument.name.as_str())
            .collect();
        if !required.is_empty() {
            object.raw("required", &list(required));
        }
        if let Some((names, needed)) = &self.together {
            let mut dependent = ObjectWriter::begin(object.key("dependentRequired"));
            for name in names {
                dependent.raw(name, &list(needed.iter().map(String::as_str)));
            }
            dependent.end();
        }
        object.raw("additionalProperties", "false");
        if let Some(definitions) = writer.definitions()? {
            object.raw("$defs", &definitions);
        }
        object.end();
        Ok(out)
    }
}

impl<'d> Argument<'d> {
    fn write(&self, writer: &mut SchemaWriter<'_, 'd>, out: &mut String) -> Result<(), Unusable> {
        let description = self.description.as_deref();
        match &self.schema {
            ArgumentSchema::Of(schemas) => match schemas.as_slice() {
                [] => {
                    let mut object = ObjectWriter::begin(out);
                    if let Some(description) = description {
                        object.text("description", description);
                    }
                    object.end();
                    Ok(())
                }
                [only] => writer.argument(*only, description, out),
                several => {
                    let mut object = ObjectWriter::begin(out);
                    let all = object.key("allOf");
                    all.push('[');
                    for (at, schema) in several.iter().enumerate() {
                        if at > 0 {
                            all.push(',');
                        }
                        writer.schema(*schema, all)?;
                    }
                    all.push(']');
                    object.end();
                    Ok(())
                }
            },
            ArgumentSchema::Text => {
                let mut object = ObjectWriter::begin(out);
                object.text("type", "string");
                object.text(
                    "description",
                    description.unwrap_or("The text of the request's body."),
                );
                object.end();
                Ok(())
            }
            ArgumentSchema::File(File::One) => {
                out.push_str(&base64_text(description));
                Ok(())
            }
            ArgumentSchema::File(File::Several) => {
                out.push_str(&format!(
                    "{{\"type\":\"array\",\"items\":{}}}",
                    base64_text(description)
                ));
                Ok(())
            }
        }
    }
}

/// A name with nothing but what the interfaces of models accept.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for letter in name.chars() {
        let is_kept = letter.is_ascii_alphanumeric() || "_.-".contains(letter);
        if is_kept {
            plain.push(letter);
        } else if !plain.is_empty() && !plain.ends_with('_') {
            plain.push('_');
        }
    }
    // `filter[name]` ends with what stood for its bracket.
    if !name.ends_with('_') {
        plain.truncate(plain.trim_end_matches('_').len());
    }
    plain.truncate(MAX_ARGUMENT);
    if plain.is_empty() {
        "value".to_owned()
    } else {
        plain
    }
}

//! From a schema's text to what is asked of a value.

use std::collections::HashMap;

use super::SchemaError;
use super::keyword::{Bound, Keyword, Properties, SchemaId, Types};
use super::mistake::cut;
use super::pattern::Pattern;
use crate::decimal::Decimal;
use crate::json::{Kind, Node, Pointers, canonical};

/// Schemas within one.
const MAX_SCHEMAS: usize = 50_000;
/// Values of an `enum` that a message names.
const SHOWN_VALUES: usize = 12;
/// Keywords that change what is accepted and are not understood.
const UNSUPPORTED: [&str; 6] = [
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "dependencies",
];

/// All schemas of a whole; the first is the whole.
pub(super) fn compile(root: Node<'_>) -> Result<Vec<Vec<Keyword>>, SchemaError> {
    let mut compiler = Compiler {
        pointers: Pointers::new(root),
        schemas: vec![Vec::new()],
        referenced: HashMap::from([(String::new(), 0)]),
        waiting: vec![(0, root)],
    };
    // References are followed one after the other, never inside each other: they may be cyclic or a long chain.
    while let Some((id, node)) = compiler.waiting.pop() {
        let keywords = compiler.keywords(node)?;
        if let Some(place) = compiler.schemas.get_mut(id) {
            *place = keywords;
        }
    }
    Ok(compiler.schemas)
}

struct Compiler<'d> {
    pointers: Pointers<'d>,
    schemas: Vec<Vec<Keyword>>,
    /// What references lead to, by pointer.
    referenced: HashMap<String, SchemaId>,
    waiting: Vec<(SchemaId, Node<'d>)>,
}

impl<'d> Compiler<'d> {
    fn place(&mut self, node: Node<'d>) -> Result<SchemaId, SchemaError> {
        let id = self.schemas.len();
        if id >= MAX_SCHEMAS {
            return Err(SchemaError::TooLarge {
                limit: MAX_SCHEMAS,
                what: "schemas",
            });
        }
        self.schemas.push(Vec::new());
        self.waiting.push((id, node));
        Ok(id)
    }

    fn keywords(&mut self, node: Node<'d>) -> Result<Vec<Keyword>, SchemaError> {
        match node.kind() {
            Kind::Bool if node.as_bool() == Some(true) => return Ok(Vec::new()),
            Kind::Bool => return Ok(vec![Keyword::Never]),
            Kind::Object => {}
            Kind::Null | Kind::Number | Kind::String | Kind::Array => return Err(value("a schema", node)),
        }
        let mut found = Vec::new();
        for (key, given) in node.members() {
            if UNSUPPORTED.contains(&&*key) {
                return Err(SchemaError::Unsupported {
                    keyword: key.into_owned(),
                });
            }
            if let Some(keyword) = self.keyword(&key, given, node)? {
                found.push(keyword);
            }
        }
        found.extend(self.properties(node)?);
        found.extend(self.items(node)?);
        Ok(found)
    }

    /// One keyword; none for annotations, and for those that stand beside others.
    fn keyword(
        &mut self,
        key: &str,
        given: Node<'d>,
        schema: Node<'d>,
    ) -> Result<Option<Keyword>, SchemaError> {
        let limit = || decimal(key, given);
        let exclusive = |is_exclusive| {
            Ok::<_, SchemaError>(Bound {
                limit: limit()?,
                is_exclusive,
            })
        };
        Ok(Some(match key {
            "type" => Keyword::Type(types(given)?),
            "enum" => listed(given)?,
            "const" => Keyword::Enum {
                values: vec![canonical(given)],
                shown: format!("the value {}", cut(given.raw_str())),
            },
            "minimum" => Keyword::Minimum(exclusive(false)?),
            "exclusiveMinimum" => Keyword::Minimum(exclusive(true)?),
            "maximum" => Keyword::Maximum(exclusive(false)?),
            "exclusiveMaximum" => Keyword::Maximum(exclusive(true)?),
            "multipleOf" => Keyword::MultipleOf(step(given)?),
            "minLength" => Keyword::MinLength(count(key, given)?),
            "maxLength" => Keyword::MaxLength(count(key, given)?),
            "pattern" => Keyword::Pattern(Pattern::compile(&text(key, given)?)?),
            "minItems" => Keyword::MinItems(count(key, given)?),
            "maxItems" => Keyword::MaxItems(count(key, given)?),
            "uniqueItems" if given.as_bool() == Some(true) => Keyword::UniqueItems,
            "contains" => self.contains(given, schema)?,
            "minProperties" => Keyword::MinProperties(count(key, given)?),
            "maxProperties" => Keyword::MaxProperties(count(key, given)?),
            "propertyNames" => Keyword::PropertyNames(self.place(given)?),
            "required" => Keyword::Required(names(key, given)?),
            "dependentRequired" => Keyword::DependentRequired(
                given
                    .members()
                    .map(|(name, needed)| Ok((Box::from(&*name), names(key, needed)?)))
                    .collect::<Result<_, SchemaError>>()?,
            ),
            "dependentSchemas" => Keyword::DependentSchemas(
                given
                    .members()
                    .map(|(name, schema)| Ok((Box::from(&*name), self.place(schema)?)))
                    .collect::<Result<_, SchemaError>>()?,
            ),
            "allOf" => Keyword::AllOf(self.all(key, given)?),
            "anyOf" => Keyword::AnyOf(self.all(key, given)?),
            "oneOf" => Keyword::OneOf(self.all(key, given)?),
            "not" => Keyword::Not(self.place(given)?),
            "if" => self.conditional(given, schema)?,
            "$ref" => Keyword::Reference(self.reference(&text(key, given)?)?),
            _ => return Ok(None),
        }))
    }

    fn all(&mut self, key: &str, given: Node<'d>) -> Result<Vec<SchemaId>, SchemaError> {
        if given.kind() != Kind::Array {
            return Err(value(key, given));
        }
        given.elements().map(|schema| self.place(schema)).collect()
    }

    fn contains(&mut self, given: Node<'d>, schema: Node<'d>) -> Result<Keyword, SchemaError> {
        let counted = |key: &str| schema.get(key).map(|given| count(key, given)).transpose();
        Ok(Keyword::Contains {
            schema: self.place(given)?,
            least: counted("minContains")?.unwrap_or(1),
            most: counted("maxContains")?,
        })
    }

    fn conditional(&mut self, given: Node<'d>, schema: Node<'d>) -> Result<Keyword, SchemaError> {
        let mut branch = |key: &str| schema.get(key).map(|schema| self.place(schema)).transpose();
        let (then, otherwise) = (branch("then")?, branch("else")?);
        Ok(Keyword::If {
            test: self.place(given)?,
            then,
            otherwise,
        })
    }

    fn properties(&mut self, schema: Node<'d>) -> Result<Option<Keyword>, SchemaError> {
        let mut found = Properties::default();
        for (name, schema) in members("properties", schema)? {
            found.named.push((name.into(), self.place(schema)?));
        }
        found.named.sort_by(|one, other| one.0.cmp(&other.0));
        for (pattern, schema) in members("patternProperties", schema)? {
            found
                .patterns
                .push((Pattern::compile(&pattern)?, self.place(schema)?));
        }
        if let Some(additional) = schema.get("additionalProperties") {
            found.is_closed = additional.as_bool() == Some(false);
            found.additional = Some(self.place(additional)?);
        }
        let asks = !found.named.is_empty() || !found.patterns.is_empty() || found.additional.is_some();
        Ok(asks.then(|| Keyword::Properties(Box::new(found))))
    }

    fn items(&mut self, schema: Node<'d>) -> Result<Option<Keyword>, SchemaError> {
        let prefix = match schema.get("prefixItems") {
            Some(given) => self.all("prefixItems", given)?,
            None => Vec::new(),
        };
        let rest = schema.get("items").map(|given| self.place(given)).transpose()?;
        Ok((!prefix.is_empty() || rest.is_some()).then_some(Keyword::Items { prefix, rest }))
    }

    /// Where a reference within the whole leads.
    fn reference(&mut self, reference: &str) -> Result<SchemaId, SchemaError> {
        let nowhere = || SchemaError::Reference {
            reference: cut(reference),
        };
        let pointer = reference.strip_prefix('#').ok_or_else(nowhere)?;
        if let Some(id) = self.referenced.get(pointer) {
            return Ok(*id);
        }
        let target = self.pointers.find(pointer).ok_or_else(nowhere)?;
        let id = self.place(target)?;
        self.referenced.insert(pointer.to_owned(), id);
        Ok(id)
    }
}

/// The members of an object that a keyword holds, sorted out of the borrow of their keys.
fn members<'d>(key: &str, schema: Node<'d>) -> Result<Vec<(String, Node<'d>)>, SchemaError> {
    match schema.get(key) {
        None => Ok(Vec::new()),
        Some(given) if given.kind() == Kind::Object => Ok(given
            .members()
            .map(|(name, schema)| (name.into_owned(), schema))
            .collect()),
        Some(given) => Err(value(key, given)),
    }
}

fn value(keyword: &str, given: Node<'_>) -> SchemaError {
    SchemaError::Value {
        keyword: keyword.to_owned(),
        value: cut(given.raw_str()),
    }
}

fn types(given: Node<'_>) -> Result<Types, SchemaError> {
    let mut types = Types::default();
    let words: Vec<_> = match given.kind() {
        Kind::Array => given.elements().collect(),
        _ => vec![given],
    };
    for word in words {
        if !word.as_str().is_some_and(|word| types.add(&word)) {
            return Err(value("type", given));
        }
    }
    Ok(types)
}

fn listed(given: Node<'_>) -> Result<Keyword, SchemaError> {
    if given.kind() != Kind::Array {
        return Err(value("enum", given));
    }
    let mut shown: Vec<String> = given
        .elements()
        .take(SHOWN_VALUES)
        .map(|value| cut(value.raw_str()))
        .collect();
    if given.len() > SHOWN_VALUES {
        shown.push(format!("or {} others", given.len() - SHOWN_VALUES));
    }
    Ok(Keyword::Enum {
        values: given.elements().map(canonical).collect(),
        shown: format!("one of {}", shown.join(", ")),
    })
}

fn decimal(key: &str, given: Node<'_>) -> Result<Decimal, SchemaError> {
    given.number().ok_or_else(|| value(key, given))
}

fn step(given: Node<'_>) -> Result<Decimal, SchemaError> {
    let step = decimal("multipleOf", given)?;
    if step > Decimal::ZERO && step.can_divide() {
        Ok(step)
    } else {
        Err(value("multipleOf", given))
    }
}

fn count(key: &str, given: Node<'_>) -> Result<u64, SchemaError> {
    let number = decimal(key, given)?;
    // Some documents write 1.0; what no count can reach is as good as the largest.
    match number.to_string().parse::<u64>() {
        Ok(count) => Ok(count),
        Err(_) if number > Decimal::from(u64::MAX) => Ok(u64::MAX),
        Err(_) => Err(value(key, given)),
    }
}

fn text(key: &str, given: Node<'_>) -> Result<String, SchemaError> {
    given
        .as_str()
        .map(std::borrow::Cow::into_owned)
        .ok_or_else(|| value(key, given))
}

fn names(key: &str, given: Node<'_>) -> Result<Vec<Box<str>>, SchemaError> {
    if given.kind() != Kind::Array {
        return Err(value(key, given));
    }
    given
        .elements()
        .map(|name| name.as_str().map(|name| Box::from(&*name)))
        .collect::<Option<_>>()
        .ok_or_else(|| value(key, given))
}

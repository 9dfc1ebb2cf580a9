//! Looking at a value as a schema asks.

mod alone;

use std::collections::HashSet;

use alone::{has_type, known_names, number, requires, size, string};

use super::keyword::{Keyword, Properties, SchemaId};
use super::mistake::{ArgumentError, Mistakes, Path, cut};
use crate::json::{Kind, Node, canonical};

/// Schemas that are applied to values in one check, at most.
const MAX_STEPS: u32 = 200_000;
/// Schemas that are applied inside each other, at most: references can lead back to where they stand.
const MAX_DEPTH: u32 = 400;
/// Bytes that are read at the cost of one step.
const BYTES_PER_STEP: usize = 128;

/// The check did not come to an end within its bounds.
struct Exhausted;

pub(super) fn check(schemas: &[Vec<Keyword>], value: Node<'_>) -> Result<(), ArgumentError> {
    let mut checking = Checking {
        schemas,
        steps: MAX_STEPS,
        depth: 0,
    };
    let mut mistakes = Mistakes::kept();
    match checking.apply(0, value, &Path::ROOT, &mut mistakes) {
        Err(Exhausted) => Err(ArgumentError::TooComplex),
        Ok(()) if mistakes.any() => Err(ArgumentError::Mistakes(mistakes.into_vec())),
        Ok(()) => Ok(()),
    }
}

struct Checking<'c> {
    schemas: &'c [Vec<Keyword>],
    steps: u32,
    depth: u32,
}

impl<'c> Checking<'c> {
    fn apply(
        &mut self,
        schema: SchemaId,
        value: Node<'_>,
        path: &Path<'_>,
        found: &mut Mistakes,
    ) -> Result<(), Exhausted> {
        self.steps = self.steps.checked_sub(1).ok_or(Exhausted)?;
        if self.depth >= MAX_DEPTH {
            return Err(Exhausted);
        }
        self.depth += 1;
        // INVARIANT: ids are made for places only; a missing one would accept nothing.
        let keywords: &'c [Keyword] = self.schemas.get(schema).map_or(&[Keyword::Never], Vec::as_slice);
        for keyword in keywords {
            if found.is_full() {
                break;
            }
            self.keyword(keyword, value, path, found)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn is_valid(&mut self, schema: SchemaId, value: Node<'_>) -> Result<bool, Exhausted> {
        let mut found = Mistakes::default();
        self.apply(schema, value, &Path::ROOT, &mut found)?;
        Ok(!found.any())
    }

    fn keyword(
        &mut self,
        keyword: &'c Keyword,
        value: Node<'_>,
        path: &Path<'_>,
        found: &mut Mistakes,
    ) -> Result<(), Exhausted> {
        if let Keyword::Enum { .. } | Keyword::Pattern(_) | Keyword::UniqueItems = keyword {
            // These look at every byte.
            let cost = u32::try_from(value.raw().len() / BYTES_PER_STEP).unwrap_or(u32::MAX);
            self.steps = self.steps.checked_sub(cost).ok_or(Exhausted)?;
        }
        match (keyword, value.kind()) {
            (Keyword::Never, _) => found.add(path, || "nothing here".to_owned(), Some(value)),
            (Keyword::Type(types), _) => has_type(*types, value, path, found),
            (Keyword::Enum { values, shown }, _) => {
                if !values.contains(&canonical(value)) {
                    found.add(path, || shown.clone(), Some(value));
                }
            }
            (Keyword::AllOf(all), _) => {
                for schema in all {
                    self.apply(*schema, value, path, found)?;
                }
            }
            (Keyword::AnyOf(any), _) => self.alternatives(any, false, value, path, found)?,
            (Keyword::OneOf(one), _) => self.alternatives(one, true, value, path, found)?,
            (Keyword::Not(schema), _) => {
                if self.is_valid(*schema, value)? {
                    found.add(
                        path,
                        || "another value: this kind is excluded".to_owned(),
                        Some(value),
                    );
                }
            }
            (
                Keyword::If {
                    test,
                    then,
                    otherwise,
                },
                _,
            ) => {
                let branch = if self.is_valid(*test, value)? {
                    then
                } else {
                    otherwise
                };
                if let Some(schema) = branch {
                    self.apply(*schema, value, path, found)?;
                }
            }
            (Keyword::Reference(schema), _) => self.apply(*schema, value, path, found)?,
            (_, Kind::Number) => number(keyword, value, path, found),
            (_, Kind::String) => string(keyword, value, path, found),
            (
                Keyword::MinItems(_)
                | Keyword::MaxItems(_)
                | Keyword::MinProperties(_)
                | Keyword::MaxProperties(_),
                kind,
            ) => size(keyword, kind, value, path, found),
            (_, Kind::Array) => self.array(keyword, value, path, found)?,
            (_, Kind::Object) => self.object(keyword, value, path, found)?,
            (_, Kind::Null | Kind::Bool) => {}
        }
        Ok(())
    }

    /// `anyOf` and `oneOf`: what is wrong is told of the alternative that comes nearest.
    fn alternatives(
        &mut self,
        schemas: &[SchemaId],
        only_one: bool,
        value: Node<'_>,
        path: &Path<'_>,
        found: &mut Mistakes,
    ) -> Result<(), Exhausted> {
        let mut fitting = 0_usize;
        for schema in schemas {
            fitting += usize::from(self.is_valid(*schema, value)?);
            if fitting > usize::from(only_one) {
                break;
            }
        }
        match (fitting, only_one) {
            (1, _) | (2.., false) => return Ok(()),
            (2.., true) => {
                let expected = || "exactly one of the alternatives of the schema, and several fit".to_owned();
                found.add(path, expected, Some(value));
                return Ok(());
            }
            (0, _) => {}
        }
        let mut nearest: Option<Mistakes> = None;
        if !found.is_full() {
            for schema in schemas {
                let mut mistakes = Mistakes::kept();
                self.apply(*schema, value, path, &mut mistakes)?;
                if nearest
                    .as_ref()
                    .is_none_or(|known| mistakes.count() < known.count())
                {
                    nearest = Some(mistakes);
                }
            }
        }
        match nearest {
            Some(nearest) if nearest.any() => found.take(nearest),
            _ => found.add(
                path,
                || "one of the alternatives of the schema".to_owned(),
                Some(value),
            ),
        }
        Ok(())
    }

    fn array(
        &mut self,
        keyword: &'c Keyword,
        value: Node<'_>,
        path: &Path<'_>,
        found: &mut Mistakes,
    ) -> Result<(), Exhausted> {
        match keyword {
            Keyword::UniqueItems => {
                let mut seen = HashSet::new();
                if !value.elements().all(|item| seen.insert(canonical(item))) {
                    found.add(path, || "items that all differ".to_owned(), Some(value));
                }
            }
            Keyword::Items { prefix, rest } => {
                for (index, item) in value.elements().enumerate() {
                    let Some(schema) = prefix.get(index).or(rest.as_ref()) else {
                        break;
                    };
                    self.apply(*schema, item, &path.index(index), found)?;
                    if found.is_full() {
                        break;
                    }
                }
            }
            Keyword::Contains { schema, least, most } => {
                let mut fitting = 0_u64;
                for item in value.elements() {
                    fitting += u64::from(self.is_valid(*schema, item)?);
                }
                if fitting < *least || most.is_some_and(|most| fitting > most) {
                    let expected = || match most {
                        Some(most) => {
                            format!("between {least} and {most} items of the kind that `contains` asks for")
                        }
                        None => format!("at least {least} items of the kind that `contains` asks for"),
                    };
                    found.add(path, expected, Some(value));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn object(
        &mut self,
        keyword: &'c Keyword,
        value: Node<'_>,
        path: &Path<'_>,
        found: &mut Mistakes,
    ) -> Result<(), Exhausted> {
        match keyword {
            Keyword::Required(names) => requires(names, value, path, found),
            Keyword::Properties(properties) => self.properties(properties, value, path, found)?,
            Keyword::PropertyNames(schema) => {
                for (name, _) in value.members() {
                    let quoted = serde_json::Value::from(&*name).to_string();
                    let fits =
                        match crate::json::Document::parse(quoted.as_bytes(), crate::json::Limits::ARGUMENTS)
                        {
                            Ok(text) => self.is_valid(*schema, text.root())?,
                            Err(_) => false,
                        };
                    if !fits {
                        let expected =
                            || format!("property names as the schema wants them, not {:?}", cut(&name));
                        found.add(path, expected, None);
                        break;
                    }
                }
            }
            Keyword::DependentRequired(dependents) => {
                for (name, needed) in dependents {
                    if value.get(name).is_some() {
                        requires(needed, value, path, found);
                    }
                }
            }
            Keyword::DependentSchemas(dependents) => {
                for (name, schema) in dependents {
                    if value.get(name).is_some() {
                        self.apply(*schema, value, path, found)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn properties(
        &mut self,
        properties: &'c Properties,
        value: Node<'_>,
        path: &Path<'_>,
        found: &mut Mistakes,
    ) -> Result<(), Exhausted> {
        for (name, member) in value.members() {
            if found.is_full() {
                return Ok(());
            }
            let here = path.key(&name);
            let named = properties.named(&name);
            if let Some(schema) = named {
                self.apply(schema, member, &here, found)?;
            }
            let mut is_known = named.is_some();
            for (pattern, schema) in &properties.patterns {
                self.steps = self.steps.checked_sub(1).ok_or(Exhausted)?;
                if pattern.is_found_in(&name) {
                    is_known = true;
                    self.apply(*schema, member, &here, found)?;
                }
            }
            match properties.additional {
                Some(_) if !is_known && properties.is_closed => {
                    found.add_name(&here, || known_names(properties));
                }
                Some(schema) if !is_known => self.apply(schema, member, &here, found)?,
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}

//! The tools that are known when a policy is written: from files, or from the control plane.

use std::sync::Arc;

use serde_json::value::RawValue;
use tools::classify::{Classification, classify_call};
use tools::id::ToolName;
use tools::json::{Document, Kind, Limits, Node};
use tools::model::Tool;
use tools::program::KnownProgram;
use tools::targets::Targets;

use crate::decide::Floor;
use crate::document::{Path, Step};

/// One known tool.
#[derive(Debug, Clone)]
pub struct KnownTool {
    /// The tool, with its classification.
    pub tool: Arc<Tool>,
    /// Whether an extractor reads resources and columns from its arguments.
    pub has_extractor: bool,
    /// Pin and dispatcher floors, as far as they are known.
    pub floors: Vec<Floor>,
}

/// Known tools, sorted by name.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    tools: Vec<KnownTool>,
}

/// Whether a tool's schema has a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HasField {
    /// It is declared.
    Yes,
    /// The schema declares other fields, and not this one.
    No,
    /// The schema does not say.
    Unknown,
}

impl KnownTool {
    /// A tool without extractor and floors.
    pub fn of(tool: Tool) -> Self {
        Self {
            tool: Arc::new(tool),
            has_extractor: false,
            floors: Vec::new(),
        }
    }

    /// The governed name.
    pub fn name(&self) -> &ToolName {
        &self.tool.name
    }

    /// What the tool is judged to do.
    pub fn classification(&self) -> &Classification {
        &self.tool.classification
    }

    /// What one call of it is judged to do, and what it reaches.
    pub fn assess(&self, arguments: Option<Node<'_>>) -> (Classification, Targets) {
        let assessed = classify_call(&self.tool, arguments);
        (assessed.classification.into_owned(), assessed.targets)
    }

    /// Whether the tool's arguments have a field.
    pub fn has_field(&self, path: &Path) -> HasField {
        let schema: &RawValue = &self.tool.input_schema;
        let Ok(document) = Document::parse(schema.get().as_bytes(), Limits::MESSAGE) else {
            return HasField::Unknown;
        };
        let mut node = document.root();
        for step in path.steps() {
            match below(node, step) {
                Ok(deeper) => node = deeper,
                Err(answer) => return answer,
            }
        }
        HasField::Yes
    }
}

/// The schema of one step below a schema.
fn below<'d>(schema: Node<'d>, step: &Step) -> Result<Node<'d>, HasField> {
    match step {
        Step::Key(key) => {
            let Some(properties) = schema
                .get("properties")
                .filter(|found| found.kind() == Kind::Object)
            else {
                return Err(HasField::Unknown);
            };
            let composed = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"];
            match properties.get(key) {
                Some(found) => Ok(found),
                None if composed.iter().any(|word| schema.get(word).is_some()) => Err(HasField::Unknown),
                None if schema
                    .get("additionalProperties")
                    .is_some_and(|more| more.kind() == Kind::Object || more.as_bool() == Some(true)) =>
                {
                    Err(HasField::Unknown)
                }
                None => Err(HasField::No),
            }
        }
        Step::Index(_) | Step::Some | Step::Every => schema.get("items").ok_or(HasField::Unknown),
    }
}

impl Catalogue {
    /// The tool of a name.
    pub fn get(&self, name: &str) -> Option<&KnownTool> {
        let at = self
            .tools
            .binary_search_by(|known| known.name().as_str().cmp(name))
            .ok()?;
        self.tools.get(at)
    }

    /// Every tool, by name.
    pub fn tools(&self) -> &[KnownTool] {
        &self.tools
    }

    /// Whether no tool is known.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The program of which a tool of this name would be a command.
    pub fn program(&self, name: &ToolName) -> Option<KnownProgram> {
        let prefix = format!("{}.", name.upstream()?);
        let from = self
            .tools
            .partition_point(|known| known.name().as_str() < prefix.as_str());
        let tools = self.tools.iter().skip(from).map(|known| &*known.tool);
        KnownProgram::of(tools.take_while(|tool| tool.name.as_str().starts_with(&prefix)))
    }

    /// The tool of a name: a known one, else a command that a known program runs without declaring it, else one about which
    /// only its name is known.
    pub fn get_or_unknown(&self, name: &ToolName) -> KnownTool {
        if let Some(known) = self.get(name.as_str()) {
            return known.clone();
        }
        let command = self
            .program(name)
            .and_then(|program| program.undeclared(name.local()));
        KnownTool::of(command.unwrap_or_else(|| Tool::host(name.clone())))
    }
}

impl FromIterator<KnownTool> for Catalogue {
    /// Of several tools with one name the first counts.
    fn from_iter<T: IntoIterator<Item = KnownTool>>(tools: T) -> Self {
        let mut tools: Vec<KnownTool> = tools.into_iter().collect();
        tools.sort_by(|one, other| one.name().as_str().cmp(other.name().as_str()));
        tools.dedup_by(|later, first| later.name() == first.name());
        Self { tools }
    }
}

#[cfg(test)]
mod tests {
    use tools::id::UpstreamName;

    use super::*;
    use crate::document::Field;

    fn known(schema: &str) -> KnownTool {
        let text = format!(r#"{{"name":"run","inputSchema":{schema}}}"#);
        let raw = RawValue::from_string(text).unwrap();
        KnownTool::of(Tool::mcp(&UpstreamName::try_from("x").unwrap(), raw.into()).unwrap())
    }

    fn field(known: &KnownTool, path: &str) -> HasField {
        match path.parse().unwrap() {
            Field::Argument(path) => known.has_field(&path),
            Field::Agent | Field::User | Field::Session => unreachable!(),
        }
    }

    #[test]
    fn a_schema_says_which_fields_a_tool_has() {
        let tool = known(
            r#"{"properties":{"a":{"properties":{"b":{}}},"l":{"items":{"properties":{"p":{}}}},"free":{"type":"object"}}}"#,
        );
        for (path, expected) in [
            ("a", HasField::Yes),
            ("a.b", HasField::Yes),
            ("a.c", HasField::No),
            ("l[*].p", HasField::Yes),
            ("l[0].q", HasField::No),
            ("free.x", HasField::Unknown),
            ("command", HasField::No),
        ] {
            assert_eq!(field(&tool, path), expected, "{path}");
        }
        let open = known(r#"{"properties":{"a":{}},"additionalProperties":true}"#);
        assert_eq!(field(&open, "b"), HasField::Unknown);
        assert_eq!(field(&known("{}"), "b"), HasField::Unknown);
    }
}

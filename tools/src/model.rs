//! The tool: one callable operation, as its upstream declared it and as Toolgate judges it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::arguments::{ArgumentCheck, ArgumentError, LazyCheck, SchemaError};
use crate::classify::{CallPlan, Classification, Correction, Declared, Hints, ProgramSign, judge};
use crate::fingerprint::Fingerprint;
use crate::id::{IdError, ToolName, UpstreamName};
use crate::json::{Document, JsonError, Kind, Limits, Node};

/// Beginnings of governed names that are not tools.
const GOVERNED_PREFIXES: [&str; 3] = ["resource:", "prompt:", "method:"];
/// Where the declaration of an HTTP operation says its method.
const METHOD_KEY: &str = "art.flux7/method";
/// The schema of a tool that declared none.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// A tool of an MCP server.
    Mcp,
    /// An operation of an OpenAPI service.
    OpenApi,
    /// A command of a CLI program.
    Cli,
    /// A tool that an agent's host runs itself and only asks about.
    Host,
}

impl fmt::Display for ToolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mcp => "mcp",
            Self::OpenApi => "openapi",
            Self::Cli => "cli",
            Self::Host => "host",
        })
    }
}

/// Why a declaration is not a usable tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclareError {
    /// The declaration is not acceptable JSON.
    #[error("the declaration of a tool cannot be read: {0}")]
    Json(#[from] JsonError),
    /// The declaration is not an object with a `name`.
    #[error("the declaration of a tool has no \"name\" that is a string")]
    NoName,
    /// The name is not valid.
    #[error("the declared tool cannot be named: {0}")]
    Name(#[from] IdError),
    /// The name would be taken for a resource, a prompt or a method.
    #[error("the declared tool {name:?} has the name of a resource, prompt or method")]
    ReservedName {
        /// The declared name.
        name: String,
    },
    /// A name that has no prefix would be taken for one that has.
    #[error("the declared tool {name:?} has no prefix, so its name cannot hold a dot")]
    Dotted {
        /// The declared name.
        name: String,
    },
    /// The input schema is not an object.
    #[error("the declared tool {name:?} has an inputSchema that is not an object")]
    Schema {
        /// The declared name.
        name: String,
    },
}

/// One callable operation.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The governed name.
    pub name: ToolName,
    /// The upstream that has it; none for a host's own tool.
    pub upstream: Option<UpstreamName>,
    /// Where it comes from.
    pub kind: ToolKind,
    /// The title for people.
    pub title: Option<String>,
    /// The description for models.
    pub description: Option<String>,
    /// The JSON Schema of the arguments, as declared.
    pub input_schema: Arc<RawValue>,
    /// Everything that the upstream said about the tool, byte for byte.
    pub declared: Arc<RawValue>,
    /// What it claims about itself.
    pub annotations: Hints,
    /// The HTTP method, for a tool that is one HTTP operation.
    pub method: Option<String>,
    /// The fingerprint of what was declared.
    pub fingerprint: Fingerprint,
    /// What it is judged to do.
    pub classification: Classification,
    /// How its calls are judged.
    pub(crate) plan: CallPlan,
    /// Whether a call's arguments fit.
    pub(crate) check: LazyCheck,
    /// The program that it is a command of.
    pub(crate) program: Option<Arc<ProgramSign>>,
}

impl Tool {
    /// The tool that an MCP server declared in its `tools/list` answer.
    ///
    /// # Errors
    /// When the declaration has duplicate keys or is otherwise unreadable, or has no valid name or schema.
    pub fn mcp(upstream: &UpstreamName, declared: Arc<RawValue>) -> Result<Self, DeclareError> {
        Self::from_declaration(ToolKind::Mcp, Some(upstream), None, declared)
    }

    /// The tool that a declaration in MCP's shape describes. Without an upstream its own name is its governed name.
    ///
    /// # Errors
    /// As [`Tool::mcp`].
    pub fn from_declaration(
        kind: ToolKind,
        upstream: Option<&UpstreamName>,
        method: Option<&str>,
        declared: Arc<RawValue>,
    ) -> Result<Self, DeclareError> {
        Self::declared_as(kind, upstream, true, method, declared)
    }

    /// The tool that an upstream of this kind declared. The tools of an OpenAPI service without a name have no prefix: their own
    /// name is their governed name, and holds no dot.
    ///
    /// # Errors
    /// As [`Tool::mcp`].
    pub fn declared_by(
        upstream: &UpstreamName,
        kind: ToolKind,
        is_prefixed: bool,
        declared: Arc<RawValue>,
    ) -> Result<Self, DeclareError> {
        Self::declared_as(kind, Some(upstream), is_prefixed, None, declared)
    }

    fn declared_as(
        kind: ToolKind,
        upstream: Option<&UpstreamName>,
        is_prefixed: bool,
        method: Option<&str>,
        declared: Arc<RawValue>,
    ) -> Result<Self, DeclareError> {
        let document = Document::parse(declared.get().as_bytes(), Limits::MESSAGE)?;
        let root = document.root();
        let local = text(root, "name").ok_or(DeclareError::NoName)?;
        if GOVERNED_PREFIXES.iter().any(|prefix| local.starts_with(prefix)) {
            return Err(DeclareError::ReservedName { name: local });
        }
        let name = match upstream {
            Some(upstream) if is_prefixed => ToolName::of(upstream, &local)?,
            Some(_) if local.contains('.') => return Err(DeclareError::Dotted { name: local }),
            Some(_) | None => ToolName::try_from(local.as_str())?,
        };
        let own_method = root
            .get("_meta")
            .filter(|_| kind == ToolKind::OpenApi)
            .and_then(|meta| text(meta, METHOD_KEY));
        let method = method.or(own_method.as_deref());
        let input_schema = root.get("inputSchema").filter(|schema| !schema.is_null());
        if input_schema.is_some_and(|schema| schema.kind() != Kind::Object) {
            return Err(DeclareError::Schema { name: local });
        }
        let description = text(root, "description");
        let program = match kind {
            ToolKind::Cli => ProgramSign::of(root, &local),
            ToolKind::Mcp | ToolKind::OpenApi | ToolKind::Host => None,
        };
        let annotations = hints(root.get("annotations"));
        let declared_tool = Declared {
            name: &name,
            local: &local,
            kind,
            description: description.as_deref(),
            hints: annotations,
            method,
            input_schema,
            program: program.as_ref(),
        };
        let (classification, plan) = judge(&declared_tool, None);
        Ok(Self {
            upstream: upstream.cloned(),
            kind,
            title: text(root, "title"),
            description,
            input_schema: raw_value(input_schema.map_or(ANY_OBJECT, Node::raw_str)),
            annotations,
            method: method.map(str::to_owned),
            fingerprint: Fingerprint::of(root),
            classification,
            plan,
            check: LazyCheck::default(),
            program: program.map(Arc::new),
            name,
            declared: Arc::clone(&declared),
        })
    }

    /// A tool that an agent's host runs itself: only its name is known.
    pub fn host(name: ToolName) -> Self {
        let declared = raw_value("{}");
        let fingerprint = Document::parse(b"{}", Limits::ARGUMENTS)
            .map_or(Fingerprint::from_bytes([0; 32]), |document| {
                Fingerprint::of(document.root())
            });
        let (classification, plan) = judge(
            &Declared {
                name: &name,
                local: name.as_str(),
                kind: ToolKind::Host,
                description: None,
                hints: Hints::default(),
                method: None,
                input_schema: None,
                program: None,
            },
            None,
        );
        Self {
            upstream: None,
            kind: ToolKind::Host,
            title: None,
            description: None,
            input_schema: raw_value(ANY_OBJECT),
            declared,
            annotations: Hints::default(),
            method: None,
            fingerprint,
            classification,
            plan,
            check: LazyCheck::default(),
            program: None,
            name,
        }
    }

    /// A tool of which only the governed name is known: what stands before its first dot is its upstream's name.
    ///
    /// # Errors
    /// When this is no name.
    pub fn named(name: &str) -> Result<Self, DeclareError> {
        let upstream = name
            .split_once('.')
            .and_then(|(upstream, _)| UpstreamName::try_from(upstream).ok());
        let local = match &upstream {
            Some(upstream) => name
                .strip_prefix(upstream.as_str())
                .and_then(|rest| rest.strip_prefix('.')),
            None => Some(name),
        };
        let declared = serde_json::json!({ "name": local.unwrap_or(name) });
        Self::from_declaration(
            ToolKind::Host,
            upstream.as_ref(),
            None,
            raw_value(&declared.to_string()),
        )
    }

    /// Judges the tool anew, with what an operator corrected; without a correction, by its declaration alone.
    pub fn correct(&mut self, correction: Option<&Correction>) {
        // INVARIANT: the schema comes from a parsed document; one that cannot be read would only be missing.
        let schema = Document::parse(self.input_schema.get().as_bytes(), Limits::MESSAGE).ok();
        let declared = Declared {
            name: &self.name,
            local: self.local_name(),
            kind: self.kind,
            description: self.description.as_deref(),
            hints: self.annotations,
            method: self.method.as_deref(),
            input_schema: schema.as_ref().map(Document::root),
            program: self.program.as_deref(),
        };
        let (classification, plan) = judge(&declared, correction);
        self.classification = classification;
        self.plan = plan;
    }

    /// Whether the input schema is one by which arguments can be checked, where Toolgate has to.
    ///
    /// # Errors
    /// When it is not understood: the tool cannot be served.
    pub fn check_schema(&self) -> Result<(), SchemaError> {
        match self.kind {
            ToolKind::Mcp | ToolKind::Host => Ok(()),
            ToolKind::OpenApi | ToolKind::Cli => ArgumentCheck::compile(self.input_schema.get()).map(drop),
        }
    }

    /// Whether a call's arguments fit the input schema. MCP servers and hosts look at what they are sent themselves.
    ///
    /// # Errors
    /// With what is wrong, in words for a model.
    pub fn check_arguments(&self, arguments: Option<Node<'_>>) -> Result<(), ArgumentError> {
        match self.kind {
            ToolKind::Mcp | ToolKind::Host => Ok(()),
            ToolKind::OpenApi | ToolKind::Cli => self.check.check(self.input_schema.get(), arguments),
        }
    }

    /// The name of the action that no policy relaxes, where this is a program's tool that has such a floor.
    pub fn program_floor(&self) -> Option<&str> {
        self.program.as_ref()?.floor()
    }

    /// Whether it is a command of a program, or runs any of one that has commands.
    pub fn is_command(&self) -> bool {
        self.program.as_ref().is_some_and(|sign| !sign.is_bare())
    }

    /// The tool's own name, as its upstream knows it.
    pub fn local_name(&self) -> &str {
        match &self.upstream {
            // INVARIANT: a governed name is the upstream's name, a dot, and the tool's own name; or that alone, without a dot.
            Some(upstream) => self
                .name
                .as_str()
                .strip_prefix(upstream.as_str())
                .and_then(|rest| rest.strip_prefix('.'))
                .unwrap_or(self.name.as_str()),
            None => self.name.as_str(),
        }
    }

    /// Whether the governed name begins with the upstream's.
    pub fn is_prefixed(&self) -> bool {
        self.upstream.is_some() && self.local_name().len() < self.name.as_str().len()
    }
}

fn text(node: Node<'_>, key: &str) -> Option<String> {
    node.get(key)?.as_str().map(|text| text.into_owned())
}

fn hints(annotations: Option<Node<'_>>) -> Hints {
    let hint = |key| annotations.and_then(|node| node.get(key)).and_then(Node::as_bool);
    Hints {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}

fn raw_value(text: &str) -> Arc<RawValue> {
    // INVARIANT: the text comes from a parsed document or is a literal, so it is JSON.
    RawValue::from_string(text.to_owned()).map_or_else(|_| RawValue::NULL.to_owned().into(), Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(text: &str) -> Result<Tool, DeclareError> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        Tool::mcp(&UpstreamName::try_from("notes").unwrap(), raw.into())
    }

    #[test]
    fn a_declared_tool_keeps_what_its_upstream_said() {
        let text = r#"{"name": "a.b", "title":"T", "inputSchema": {"type": "object" }, "extra": 1e2}"#;
        let tool = tool(text).unwrap();
        assert_eq!(tool.name.as_str(), "notes.a.b");
        assert_eq!(tool.local_name(), "a.b");
        assert_eq!(tool.declared.get(), text);
        assert_eq!(tool.input_schema.get(), r#"{"type": "object" }"#);
        assert_eq!(tool.title.as_deref(), Some("T"));
    }

    #[test]
    fn unusable_declarations_are_refused() {
        assert!(matches!(tool("[]"), Err(DeclareError::NoName)));
        assert!(matches!(
            tool(r#"{"name":"a","name":"b"}"#),
            Err(DeclareError::Json(_))
        ));
        assert!(matches!(
            tool(r#"{"name":"a\u0000"}"#),
            Err(DeclareError::Name(_))
        ));
        assert!(matches!(
            tool(r#"{"name":"resource:x"}"#),
            Err(DeclareError::ReservedName { .. })
        ));
        assert!(matches!(
            tool(r#"{"name":"a","inputSchema":3}"#),
            Err(DeclareError::Schema { .. })
        ));
    }

    #[test]
    fn the_fingerprint_ignores_key_order_and_notices_text_and_schema() {
        let print = |text: &str| tool(text).unwrap().fingerprint;
        let base = print(r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1}}"#);
        assert_eq!(
            base,
            print(r#"{"inputSchema":{"x":1.0,"type":"object"},"description":"d","name":"a"}"#)
        );
        assert_ne!(
            base,
            print(r#"{"name":"a","description":"d ","inputSchema":{"type":"object","x":1}}"#)
        );
        assert_ne!(
            base,
            print(r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":2}}"#)
        );
        assert_ne!(
            base,
            print(r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1},"_meta":{}}"#)
        );
        let text = base.to_string();
        assert_eq!(text.parse::<Fingerprint>().unwrap(), base);
        assert_eq!(
            serde_json::from_str::<Fingerprint>(&format!("{text:?}")).unwrap(),
            base
        );
    }

    #[test]
    fn a_tool_of_a_service_without_a_name_has_no_prefix_and_its_method_is_known() {
        let declared =
            |text: &str| -> Arc<RawValue> { RawValue::from_string(text.to_owned()).unwrap().into() };
        let upstream = UpstreamName::try_from("date-nager-at").unwrap();
        let open = |text: &str| Tool::declared_by(&upstream, ToolKind::OpenApi, false, declared(text));
        let text = r#"{"name":"get_public_holidays","inputSchema":{"type":"object"},"_meta":{"art.flux7/method":"DELETE"}}"#;
        let tool = open(text).unwrap();
        assert_eq!(tool.name.as_str(), "get_public_holidays");
        assert_eq!(
            (tool.local_name(), tool.is_prefixed()),
            ("get_public_holidays", false)
        );
        assert_eq!(tool.upstream.as_ref(), Some(&upstream));
        assert_eq!(tool.method.as_deref(), Some("DELETE"));
        assert!(!tool.classification.plain_read);
        assert!(matches!(
            open(r#"{"name":"github.delete"}"#),
            Err(DeclareError::Dotted { .. })
        ));
        let prefixed = Tool::declared_by(&upstream, ToolKind::OpenApi, true, declared(text)).unwrap();
        assert_eq!(prefixed.name.as_str(), "date-nager-at.get_public_holidays");
        assert!(prefixed.is_prefixed());
        let mcp = Tool::declared_by(&upstream, ToolKind::Mcp, true, declared(text)).unwrap();
        assert_eq!(mcp.method, None, "only a document's operation has one");
    }

    #[test]
    fn a_hosts_own_tool_has_no_upstream() {
        let tool = Tool::host("Bash".parse().unwrap());
        assert_eq!((tool.kind, tool.local_name()), (ToolKind::Host, "Bash"));
        assert!(!tool.classification.plain_read);
    }
}

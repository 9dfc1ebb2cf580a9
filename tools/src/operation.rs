//! What a governed name stands for: a tool, or another request that takes the same gate.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::arguments::LazyCheck;
use crate::classify::{
    Access, CallPlan, Classification, Hints, Risk, RiskSet, RiskSource, SideEffect, SideEffectKind,
    SideEffectSource,
};
use crate::fingerprint::Fingerprint;
use crate::id::{IdError, ToolName, UpstreamName};
use crate::json::{Document, Limits};
use crate::model::{Tool, ToolKind};

/// What a governed name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Calling a tool.
    Tool,
    /// Reading a resource, named by its URI; also a template, named by its URI template.
    Resource,
    /// Getting a prompt, named by its name.
    Prompt,
    /// Any other request of the protocol, named by its method.
    Method,
}

impl Operation {
    /// What the own part of a governed name begins with; nothing for a tool.
    #[must_use]
    pub fn marker(self) -> &'static str {
        match self {
            Self::Tool => "",
            Self::Resource => "resource:",
            Self::Prompt => "prompt:",
            Self::Method => "method:",
        }
    }

    fn of_local(local: &str) -> Self {
        [Self::Resource, Self::Prompt, Self::Method]
            .into_iter()
            .find(|operation| local.starts_with(operation.marker()))
            .unwrap_or(Self::Tool)
    }
}

impl ToolName {
    /// What the name stands for.
    #[must_use]
    pub fn operation(&self) -> Operation {
        Operation::of_local(self.local())
    }
}

/// Requests of the protocol that only read, and what reading by them is called.
const READING: [(&str, &str); 3] = [
    ("completion/complete", "completion.read"),
    ("resources/subscribe", "resource.subscribe"),
    ("resources/unsubscribe", "resource.subscribe"),
];

impl Tool {
    /// What is governed when an agent asks `upstream` for something that is no tool: `what` is a resource's URI or URI
    /// template, a prompt's name, or a method. `declared` is what the upstream said about it, if it did.
    ///
    /// # Errors
    /// When the name would be empty, too long, or hold control characters.
    pub fn request(
        upstream: &UpstreamName,
        operation: Operation,
        what: &str,
        declared: Option<Arc<RawValue>>,
    ) -> Result<Self, IdError> {
        if what.is_empty() {
            return Err(IdError::Empty { what: "tool name" });
        }
        let name = ToolName::of(upstream, &format!("{}{what}", operation.marker()))?;
        let declared = declared.unwrap_or_else(|| RawValue::NULL.to_owned().into());
        let document = Document::parse(declared.get().as_bytes(), Limits::MESSAGE).ok();
        let text = |key: &str| {
            let node = document.as_ref()?.root().get(key)?;
            node.as_str().map(std::borrow::Cow::into_owned)
        };
        Ok(Self {
            classification: classification(&name, operation, what),
            upstream: Some(upstream.clone()),
            kind: ToolKind::Mcp,
            title: text("title"),
            description: text("description"),
            input_schema: RawValue::NULL.to_owned().into(),
            annotations: Hints::default(),
            method: None,
            fingerprint: document
                .as_ref()
                .map_or(Fingerprint::from_bytes([0; 32]), |document| {
                    Fingerprint::of(document.root())
                }),
            plan: CallPlan::default(),
            check: LazyCheck::default(),
            program: None,
            declared: Arc::clone(&declared),
            name,
        })
    }

    /// What the tool's own name says behind what marks its operation: the URI, the prompt's name or the method.
    #[must_use]
    pub fn asked_for(&self) -> &str {
        let local = self.local_name();
        local
            .strip_prefix(self.name.operation().marker())
            .unwrap_or(local)
    }
}

/// The protocol says what its requests do; about others nothing is known.
fn classification(name: &ToolName, operation: Operation, what: &str) -> Classification {
    let unknown = Classification::unknown(name.clone());
    let capability = match operation {
        Operation::Resource => "resource.read",
        Operation::Prompt => "prompt.read",
        Operation::Method => match READING.iter().find(|(method, _)| *method == what) {
            Some((_, capability)) => capability,
            None => return unknown,
        },
        Operation::Tool => return unknown,
    };
    Classification {
        capability: Some(capability.to_owned()),
        risk: Risk::Read,
        risks: RiskSet::of(Risk::Read),
        possible_risks: RiskSet::of(Risk::Read),
        source: RiskSource::Mapped,
        access: Access::Read,
        side_effect: SideEffect {
            kind: SideEffectKind::Read,
            source: SideEffectSource::Mapping,
        },
        plain_read: true,
        reasons: vec!["the protocol's request reads".to_owned()],
        ..unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream() -> UpstreamName {
        "notes".parse().unwrap()
    }

    #[test]
    fn a_name_tells_what_it_stands_for() {
        for (name, operation) in [
            ("notes.read", Operation::Tool),
            ("notes.resource:file:///a.txt", Operation::Resource),
            ("notes.prompt:greet", Operation::Prompt),
            ("notes.method:completion/complete", Operation::Method),
            ("Bash", Operation::Tool),
            ("notes.my-resource:x", Operation::Tool),
        ] {
            assert_eq!(name.parse::<ToolName>().unwrap().operation(), operation, "{name}");
        }
    }

    #[test]
    fn a_resource_is_a_plain_read_and_keeps_its_uri() {
        let declared = r#"{"uri":"file:///a.txt","name":"a","description":"d"}"#;
        let raw = RawValue::from_string(declared.to_owned()).unwrap();
        let tool = Tool::request(
            &upstream(),
            Operation::Resource,
            "file:///a.txt",
            Some(raw.into()),
        );
        let tool = tool.unwrap();
        assert_eq!(tool.name.as_str(), "notes.resource:file:///a.txt");
        assert_eq!(tool.asked_for(), "file:///a.txt");
        assert_eq!(tool.description.as_deref(), Some("d"));
        assert_eq!(tool.declared.get(), declared);
        assert!(tool.classification.plain_read);
        let call = crate::classify::classify_call(&tool, None);
        assert_eq!(*call.classification, tool.classification);
    }

    #[test]
    fn an_unknown_method_is_unknown() {
        let method = |name: &str| Tool::request(&upstream(), Operation::Method, name, None).unwrap();
        assert!(!method("logging/setLevel").classification.plain_read);
        assert_eq!(method("x/y").classification.risk, Risk::Unknown);
        assert!(method("completion/complete").classification.plain_read);
    }

    #[test]
    fn what_cannot_be_named_is_refused() {
        for what in ["", "a\nb"] {
            assert!(
                Tool::request(&upstream(), Operation::Prompt, what, None).is_err(),
                "{what:?}"
            );
        }
        assert!(Tool::request(&upstream(), Operation::Resource, &"x".repeat(3000), None).is_err());
    }
}

//! From a tool's declaration to its classification.
//!
//! One write signal outweighs any number of read signals. A read needs a claim (`readOnlyHint: true`, or a safe
//! HTTP method) that nothing in the declaration contradicts.

use std::borrow::Cow;

use super::words::{self, Verb};
use super::{
    Access, Classification, Family, Risk, RiskSet, RiskSource, SideEffect, SideEffectKind, SideEffectSource,
    arguments,
};
use crate::id::ToolName;
use crate::json::Node;
use crate::model::Tool;
use crate::targets::Targets;

/// What a tool claims about itself by MCP annotations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
}

/// What is known about a tool before it is called.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'a> {
    /// The governed name.
    pub name: &'a ToolName,
    /// The tool's own name, without its upstream's.
    pub local: &'a str,
    /// The description.
    pub description: Option<&'a str>,
    /// The annotations.
    pub hints: Hints,
    /// The HTTP method, for a tool that is one HTTP operation.
    pub method: Option<&'a str>,
    /// The JSON Schema of the arguments.
    pub input_schema: Option<Node<'a>>,
}

/// A claim about access, where it was found, and how a reason words it.
struct Signal {
    kind: SideEffectKind,
    source: SideEffectSource,
    reason: String,
}

/// Classifies a tool from its declaration. To be done once per tool.
pub fn classify_tool(declared: &Declared<'_>) -> Classification {
    let mut classification = Classification::unknown(declared.name.clone());
    let words = words::split(declared.local);
    let names = words.as_deref().unwrap_or_default();
    let generic = arguments::generic_reasons(declared.input_schema, names, declared.description);
    if !generic.is_empty() {
        classification.family = Family::Generic;
    }
    let writes = write_signals(declared, names);
    let reads = read_signals(declared);
    if let Some(gravest) = writes.iter().max_by_key(|signal| gravity(signal.kind)) {
        classification.access = Access::Write;
        classification.side_effect = SideEffect {
            kind: gravest.kind,
            source: gravest.source,
        };
    } else if words.is_none() {
        classification.reasons.push("name not readable".to_owned());
    } else if let (Some(read), Family::Named) = (reads.first(), classification.family) {
        classification.access = Access::Read;
        classification.side_effect = SideEffect {
            kind: SideEffectKind::Read,
            source: read.source,
        };
        set_risks(&mut classification, RiskSet::of(Risk::Read));
    }
    let signals = writes.into_iter().chain(reads).map(|signal| signal.reason);
    classification.reasons.extend(signals.chain(generic));
    classification
}

/// What one call is judged to do, and what it reaches.
#[derive(Debug, Clone)]
pub struct Assessment<'t> {
    /// The tool's own classification where the arguments change nothing, else the call's.
    pub classification: Cow<'t, Classification>,
    /// What the call reaches.
    pub targets: Targets,
}

/// Classifies one call of a tool from its arguments (absent: an empty object).
pub fn classify_call<'t>(tool: &'t Tool, _arguments: Option<Node<'_>>) -> Assessment<'t> {
    Assessment {
        classification: Cow::Borrowed(&tool.classification),
        targets: Targets::UNKNOWN,
    }
}

fn set_risks(classification: &mut Classification, risks: RiskSet) {
    classification.risks = risks;
    classification.possible_risks = risks;
    classification.risk = risks.gravest();
    classification.source = RiskSource::Inferred;
    classification.plain_read = risks == RiskSet::of(Risk::Read)
        && classification.access == Access::Read
        && classification.family == Family::Named;
}

/// `delete` before `admin` before `write`.
fn gravity(kind: SideEffectKind) -> u8 {
    match kind {
        SideEffectKind::Read => 0,
        SideEffectKind::Write => 1,
        SideEffectKind::Admin => 2,
        SideEffectKind::Delete => 3,
    }
}

fn write_signals(declared: &Declared<'_>, words: &[String]) -> Vec<Signal> {
    let mut signals = name_signals(words);
    if declared.hints.destructive == Some(true) {
        signals.push(Signal {
            kind: SideEffectKind::Delete,
            source: SideEffectSource::Annotation,
            reason: "annotation destructiveHint".to_owned(),
        });
    }
    if declared.hints.read_only == Some(false) {
        signals.push(Signal {
            kind: SideEffectKind::Write,
            source: SideEffectSource::Annotation,
            reason: "annotation readOnlyHint: false".to_owned(),
        });
    }
    if let Some(method) = declared.method.filter(|method| !is_safe(method)) {
        let is_delete = method.eq_ignore_ascii_case("DELETE");
        signals.push(Signal {
            kind: if is_delete {
                SideEffectKind::Delete
            } else {
                SideEffectKind::Write
            },
            source: SideEffectSource::Method,
            reason: format!("method {method}"),
        });
    }
    signals
}

fn read_signals(declared: &Declared<'_>) -> Vec<Signal> {
    let mut signals = Vec::new();
    if declared.hints.read_only == Some(true) {
        signals.push(Signal {
            kind: SideEffectKind::Read,
            source: SideEffectSource::Annotation,
            reason: "annotation readOnlyHint".to_owned(),
        });
    }
    if let Some(method) = declared.method.filter(|method| is_safe(method)) {
        signals.push(Signal {
            kind: SideEffectKind::Read,
            source: SideEffectSource::Method,
            reason: format!("method {method}"),
        });
    }
    signals
}

fn is_safe(method: &str) -> bool {
    ["GET", "HEAD", "OPTIONS"]
        .iter()
        .any(|safe| method.eq_ignore_ascii_case(safe))
}

/// The verbs of writing in a name.
fn name_signals(words: &[String]) -> Vec<Signal> {
    let head_reads = words
        .first()
        .is_some_and(|first| words::verb(first) == Some(Verb::Read));
    let mut signals = Vec::new();
    let mut previous = "";
    for word in words {
        let kind = match words::verb(word) {
            Some(Verb::Write) => Some(SideEffectKind::Write),
            Some(Verb::Delete) => Some(SideEffectKind::Delete),
            Some(Verb::Admin) => Some(SideEffectKind::Admin),
            Some(Verb::Noun) if !head_reads || matches!(previous, "and" | "or" | "then") => {
                Some(SideEffectKind::Write)
            }
            Some(Verb::Noun | Verb::Read) | None => None,
        };
        if let Some(kind) = kind {
            signals.push(Signal {
                kind,
                source: SideEffectSource::Name,
                reason: format!("name verb {word:?}"),
            });
        }
        previous = word;
    }
    signals
}

//! What a tool, or one call of it, is judged to do, with reasons.
//!
//! Classification is advice, except where a policy selects on it or where plain reads are treated as such. What
//! gives no signal is unknown, and unknown is never treated as safe. Only the tool's own name, schema, annotations,
//! method and description take part, never its upstream's name.

mod action;
mod call;
mod correction;
mod defaults;
mod family;
mod mapping;
mod name;
mod output;
mod plan;
mod program;
mod reach;
mod report;
mod risk;
mod schema;
mod signal;
mod text;
mod tool;
mod vocabulary;
mod words;

#[cfg(test)]
mod tests;

pub use call::{Assessment, classify_call};
pub use correction::Correction;
pub use mapping::{Effect, Mapping, MappingError, Role};
pub(crate) use plan::CallPlan;
pub use program::ProgramSign;
pub use report::Report;
pub use risk::{Risk, RiskSet};
pub(crate) use tool::judge;
pub use tool::{Declared, Hints, classify_tool};

use serde::{Deserialize, Serialize};

use crate::id::ToolName;

/// Whether a tool does one named thing, or whatever its text arguments say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// One named operation.
    Named,
    /// Runs code, queries or requests that its arguments hold.
    Generic,
}

/// Whether a tool reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It reads.
    Read,
    /// It changes something.
    Write,
    /// No signal says.
    Unknown,
}

/// The kind of a tool's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffectKind {
    /// None but reading.
    Read,
    /// Creates or changes.
    Write,
    /// Removes.
    Delete,
    /// Changes who may do what, or how things run.
    Admin,
}

impl SideEffectKind {
    /// The kind as policies and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Admin => "admin",
        }
    }
}

/// Where the side effect was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffectSource {
    /// A verb in the tool's name.
    Name,
    /// An MCP annotation.
    Annotation,
    /// The HTTP method.
    Method,
    /// A verb in the first sentence of the description.
    Description,
    /// An explicit mapping or a pattern.
    Mapping,
    /// The arguments of the call.
    Arguments,
    /// An operator.
    Correction,
    /// Nothing said anything: `read` is assumed and is not to be relied on.
    Default,
}

/// A tool's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SideEffect {
    /// What kind of effect.
    pub kind: SideEffectKind,
    /// Where that was read from.
    pub source: SideEffectSource,
}

impl SideEffect {
    /// Whether the kind rests on a signal, not on the default.
    pub fn is_known(self) -> bool {
        self.source != SideEffectSource::Default
    }
}

/// Which layer gave the base of the risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskSource {
    /// An explicit mapping.
    Mapped,
    /// A glob pattern.
    Pattern,
    /// Inference from the tool's own declaration.
    Inferred,
    /// No signal.
    Unknown,
}

/// What a tool, or one call of it, is judged to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classification {
    /// The tool's governed name.
    pub name: ToolName,
    /// What is done, such as `file.read`, when it is known.
    pub capability: Option<String>,
    /// The gravest of `risks`.
    pub risk: Risk,
    /// The risks of this tool or call.
    pub risks: RiskSet,
    /// The risks that calls of this tool can have.
    pub possible_risks: RiskSet,
    /// Which layer gave the base of the risk.
    pub source: RiskSource,
    /// Named or generic.
    pub family: Family,
    /// Read, write or unknown.
    pub access: Access,
    /// The effect, and where it was read from.
    pub side_effect: SideEffect,
    /// Whether this is a read that is safe to treat as one: every possible risk is READ, access is read, and the
    /// family is named.
    pub plain_read: bool,
    /// Free-form tags for policies to select on.
    pub tags: Vec<String>,
    /// Why, such as `name verb "send"`, `annotation readOnlyHint`, `argument "sql"`.
    pub reasons: Vec<String>,
}

impl Classification {
    /// The classification of something about which nothing is known.
    pub fn unknown(name: ToolName) -> Self {
        Self {
            name,
            capability: None,
            risk: Risk::Unknown,
            risks: RiskSet::of(Risk::Unknown),
            possible_risks: RiskSet::of(Risk::Unknown),
            source: RiskSource::Unknown,
            family: Family::Named,
            access: Access::Unknown,
            side_effect: SideEffect {
                kind: SideEffectKind::Read,
                source: SideEffectSource::Default,
            },
            plain_read: false,
            tags: Vec::new(),
            reasons: Vec::new(),
        }
    }
}

//! Texts that a call carries and that are read by their own parsers: shell text, patches, SQL.

use super::mapping::Role;
use super::risk::{Risk, RiskSet};
use crate::extract::{Dialect, Extraction, Extractor};
use crate::json::Node;
use crate::targets::Extent;
use crate::{patch, shell};

/// What a text was found to do.
#[derive(Debug)]
pub(super) struct TextReading {
    pub(super) risks: RiskSet,
    /// Whether all of it was understood.
    pub(super) is_complete: bool,
    pub(super) capability: Option<&'static str>,
    pub(super) hosts: Extent,
    pub(super) paths: Extent,
    pub(super) recipients: Extent,
    pub(super) resources: Extent,
    pub(super) columns: Extent,
    pub(super) reasons: Vec<String>,
}

impl Default for TextReading {
    fn default() -> Self {
        Self {
            risks: RiskSet::of(Risk::Execution),
            is_complete: false,
            capability: None,
            hosts: Extent::Unknown,
            paths: Extent::Unknown,
            recipients: Extent::Unknown,
            resources: Extent::Unknown,
            columns: Extent::Unknown,
            reasons: Vec::new(),
        }
    }
}

impl TextReading {
    fn shell(text: &str) -> Self {
        Self::of(shell::read(text))
    }

    /// The reading of a program and its arguments, which no shell sees.
    pub(super) fn command(argv: &[&str], stdin: Option<&str>) -> Self {
        Self::of(shell::read_command(argv, stdin))
    }

    fn of(reading: shell::ShellReading) -> Self {
        Self {
            risks: reading.risks,
            is_complete: reading.complete,
            capability: reading.capability,
            hosts: reading.hosts,
            paths: reading.paths,
            recipients: reading.recipients,
            reasons: reading.reasons,
            ..Self::default()
        }
    }

    fn patch(text: &str) -> Self {
        let reading = patch::read(text);
        Self {
            risks: reading.risks,
            is_complete: reading.complete,
            capability: Some(if reading.deletes {
                "file.delete"
            } else {
                "file.write"
            }),
            paths: reading.paths,
            reasons: reading.reasons,
            ..Self::default()
        }
    }

    pub(super) fn sql(extraction: Extraction) -> Self {
        Self {
            is_complete: extraction.risks.is_some(),
            risks: extraction.risks.unwrap_or(RiskSet::of(Risk::Execution)),
            resources: extraction.resources,
            columns: extraction.columns,
            reasons: extraction.reasons,
            ..Self::default()
        }
    }
}

/// Reads the text of an argument; `None` for what is no text, and for a role that is nothing to run.
pub(super) fn read(
    role: Role,
    name: &str,
    value: Node<'_>,
    arguments: Option<Node<'_>>,
) -> Option<TextReading> {
    let text = value.as_str()?;
    match role {
        Role::Shell => Some(TextReading::shell(&text)),
        Role::Patch => Some(TextReading::patch(&text)),
        Role::Sql => {
            let extractor = Extractor::Sql {
                argument: name.to_owned(),
                dialect: Dialect::Generic,
                schema: None,
                functions: Vec::new(),
            };
            Some(TextReading::sql(extractor.extract(arguments)))
        }
        Role::Path | Role::Url | Role::Host | Role::Recipient | Role::Data => None,
    }
}

/// Whether an argument with this role is read by a parser.
pub(super) fn is_text(role: Role) -> bool {
    match role {
        Role::Shell | Role::Patch | Role::Sql => true,
        Role::Path | Role::Url | Role::Host | Role::Recipient | Role::Data => false,
    }
}

/// What texts with this role can do.
pub(super) fn possible(role: Role) -> RiskSet {
    match role {
        Role::Shell | Role::Sql => RiskSet::KNOWN,
        Role::Patch => [Risk::LocalWrite, Risk::Delete, Risk::Execution]
            .into_iter()
            .collect(),
        Role::Path | Role::Url | Role::Host | Role::Recipient | Role::Data => RiskSet::EMPTY,
    }
}

//! The selectors beside `tools` and `except`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tools::classify::{Access, Family, RiskSet, SideEffectKind};
use tools::targets::{Extent, Targets};

use crate::glob::Glob;

/// One selector of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selector {
    /// The call's risk classes.
    Risk(RiskSet),
    /// Reads or writes.
    Access(Vec<Access>),
    /// Named or generic.
    Family(Vec<Family>),
    /// The kind of effect.
    SideEffect(Vec<SideEffectKind>),
    /// What is done.
    Capability(Vec<Glob>),
    /// Any of these tags.
    Tags(Vec<Arc<str>>),
    /// The human that the agent acts for.
    User(Vec<Glob>),
    /// What the call reaches.
    Targets(TargetKind, Vec<Glob>),
}

/// Which extracted set a selector looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// URIs.
    Resources,
    /// `table.column`.
    Columns,
    /// Host names.
    Hosts,
    /// File paths.
    Paths,
    /// Addresses of people.
    Recipients,
}

impl TargetKind {
    /// The set itself.
    pub fn of(self, targets: &Targets) -> &Extent {
        match self {
            Self::Resources => &targets.resources,
            Self::Columns => &targets.columns,
            Self::Hosts => &targets.hosts,
            Self::Paths => &targets.paths,
            Self::Recipients => &targets.recipients,
        }
    }
}

impl Selector {
    /// The selector's key in documents.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Risk(_) => "risk",
            Self::Access(_) => "access",
            Self::Family(_) => "family",
            Self::SideEffect(_) => "side_effect",
            Self::Capability(_) => "capability",
            Self::Tags(_) => "tags",
            Self::User(_) => "user",
            Self::Targets(TargetKind::Resources, _) => "resources",
            Self::Targets(TargetKind::Columns, _) => "columns",
            Self::Targets(TargetKind::Hosts, _) => "hosts",
            Self::Targets(TargetKind::Paths, _) => "paths",
            Self::Targets(TargetKind::Recipients, _) => "recipients",
        }
    }
}

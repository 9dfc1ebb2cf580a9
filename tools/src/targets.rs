//! What a call reaches: the sets that selectors look at.

use serde::{Deserialize, Serialize};

/// A set of targets, or the fact that it could not be read with certainty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Exactly these.
    Known(Vec<String>),
    /// Could be anything: selectors on it are undecided.
    #[default]
    Unknown,
}

impl Extent {
    /// The members, when they are known.
    pub fn known(&self) -> Option<&[String]> {
        match self {
            Self::Known(members) => Some(members),
            Self::Unknown => None,
        }
    }
}

/// What one call reaches. By default nothing about it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Targets {
    /// URIs, such as `github://owner/repo` or `table://public.users`.
    pub resources: Extent,
    /// `table.column`.
    pub columns: Extent,
    /// Host names.
    pub hosts: Extent,
    /// File paths.
    pub paths: Extent,
    /// Addresses of people: mail addresses, phone numbers, account names.
    pub recipients: Extent,
}

impl Targets {
    /// A call about which nothing is known.
    pub const UNKNOWN: Self = Self {
        resources: Extent::Unknown,
        columns: Extent::Unknown,
        hosts: Extent::Unknown,
        paths: Extent::Unknown,
        recipients: Extent::Unknown,
    };
}

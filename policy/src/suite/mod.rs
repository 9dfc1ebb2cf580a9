//! Tests of policies: calls with what they are to be answered, in `*.test.yaml` files.
//!
//! ```yaml
//! tests:
//!   - name: small refunds need nobody
//!     agent: [support-1, support-2]        # a list: each of them
//!     tool: create_refund
//!     params: {amount: 300}
//!     action: allow
//!     rule: support-agent#1                # or only the policy's name
//!   - matrix:                              # agent -> tool -> action; what is not listed is not asserted
//!       support-1: {crm.read_case: allow, crm.delete_case: deny}
//! ```

mod given;
mod read;
mod run;
mod write;

use std::sync::Arc;

use tools::classify::{Access, RiskSet};
use tools::id::{AgentId, Namespace, SessionId, ToolName, UserId};
use tools::targets::Targets;

use crate::decide::Floor;
use crate::document::Action;

pub use run::Outcome;
pub use write::{Observed, write};

/// The most cases that the lists and matrices of one file make.
pub const MAX_CASES: usize = 20_000;

/// The tests of one file.
#[derive(Debug, Clone, Default)]
pub struct Suite {
    /// Policy files beside this one; none: all of its folder.
    pub policies: Vec<String>,
    /// Catalogue files beside this one.
    pub catalogues: Vec<String>,
    /// Every case, lists and matrices spread out.
    pub cases: Vec<Case>,
}

/// One call and what it is to be answered.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file.
    pub file: Arc<str>,
    /// The line of the test that it comes from.
    pub line: u32,
    /// The test's name, when it has one.
    pub name: Option<Arc<str>>,
    /// Who calls.
    pub agent: AgentId,
    /// The human it acts for.
    pub user: Option<UserId>,
    /// The conversation.
    pub session: Option<SessionId>,
    /// Where.
    pub namespace: Namespace,
    /// What is called.
    pub tool: ToolName,
    /// The arguments, a JSON object.
    pub params: Arc<str>,
    /// What the call is said to be, in place of what the catalogue says.
    pub given: Arc<Given>,
    /// What it is to be answered.
    pub expected: Expected,
}

/// What a test says about a call, in place of its classification and extraction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    /// The risks.
    pub risk: Option<RiskSet>,
    /// Reads or writes.
    pub access: Option<Access>,
    /// What is done.
    pub capability: Option<String>,
    /// Its tags.
    pub tags: Option<Vec<String>>,
    /// What it reaches; unknown where nothing is said.
    pub targets: Targets,
    /// Pins and dispatcher; none: those of the catalogue.
    pub floors: Option<Vec<Floor>>,
}

/// What is asserted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The action.
    pub action: Option<Action>,
    /// The deciding rule's policy.
    pub policy: Option<String>,
    /// Its place there, from 0.
    pub index: Option<usize>,
}

#[cfg(test)]
mod tests;

//! What happens to a call.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What happens to a call, from mild to strict: the greater is the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is forwarded.
    Allow,
    /// A person is asked first.
    HumanApproval,
    /// It is refused.
    Deny,
}

/// The text names no action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("action \"{0}\" is unknown")]
pub struct UnknownAction(pub String);

impl Action {
    /// Every action, from mild to strict.
    pub const ALL: [Action; 3] = [Action::Allow, Action::HumanApproval, Action::Deny];

    /// The action's name in documents and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::HumanApproval => "human_approval",
            Self::Deny => "deny",
        }
    }
}

impl std::str::FromStr for Action {
    type Err = UnknownAction;

    fn from_str(text: &str) -> Result<Self, UnknownAction> {
        Self::ALL
            .into_iter()
            .find(|action| action.as_str() == text)
            .ok_or_else(|| UnknownAction(text.to_owned()))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

//! Who is calling, and how sure that is.
//!
//! An identity is resolved once, at the entrance, from the request's credential alone. An agent that this sidecar's
//! own credential does not cover is refused here, before anything is recorded in its name.

mod credential;
mod launch;
mod resolve;
mod scope;
mod setup;
mod tokens;

#[cfg(test)]
mod tests;

use std::fmt;

use tools::id::{AgentId, UserId};

pub use launch::{LAUNCH_HEADER, LaunchKey};
pub use resolve::{Identities, IdentityError};
pub use scope::{AgentScope, Coverage};
pub use setup::SetupError;
pub use tokens::{Naming, Proofs};

/// The agent id of a caller without a credential.
pub const ANONYMOUS: &str = "anonymous";

/// How sure it is that a caller is who it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strength {
    /// No credential.
    Anonymous,
    /// A plaintext `agent:<id>`.
    Asserted,
    /// Fixed at launch: stdio, or an injected pod.
    Bound,
    /// Proven by a token or a certificate.
    Verified,
}

impl Strength {
    /// The strength as records and the wire name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Asserted => "asserted",
            Self::Bound => "bound",
            Self::Verified => "verified",
        }
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The program that calls.
    pub agent: AgentId,
    /// How sure that is.
    pub strength: Strength,
    /// The human it acts for, when a verified credential names one.
    pub user: Option<UserId>,
}

//! Names that are parsed once, at the edge.
//!
//! Each is a cheap-to-clone newtype over `Arc<str>`, validated when it is made: not empty, bounded, and without
//! control characters.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest identifier, in bytes.
pub const MAX_ID_BYTES: usize = 256;
/// The longest tool name, in bytes: resources are named by their URI.
pub const MAX_TOOL_NAME_BYTES: usize = 2048;
/// Upstream names that Toolgate keeps for its own tools.
pub const RESERVED_UPSTREAMS: [&str; 3] = ["mesh", "approval", "grant"];

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("{what} is empty; give it a name")]
    Empty {
        /// The kind of name.
        what: &'static str,
    },
    /// The text is too long.
    #[error("{what} has {length} bytes; at most {limit} are allowed")]
    TooLong {
        /// The kind of name.
        what: &'static str,
        /// Bytes found.
        length: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The text holds a control character.
    #[error("{what} holds a control character at byte {at}; remove it")]
    Control {
        /// The kind of name.
        what: &'static str,
        /// Byte position of the character.
        at: usize,
    },
    /// The text holds a character that this kind of name does not allow.
    #[error("{what} {name:?} may hold only letters, digits, \"_\" and \"-\"")]
    Characters {
        /// The kind of name.
        what: &'static str,
        /// The text.
        name: String,
    },
    /// The name belongs to Toolgate itself.
    #[error("{what} {name:?} is reserved; choose another name")]
    Reserved {
        /// The kind of name.
        what: &'static str,
        /// The text.
        name: String,
    },
}

fn check(what: &'static str, text: &str, limit: usize) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what });
    }
    if text.len() > limit {
        return Err(IdError::TooLong {
            what,
            length: text.len(),
            limit,
        });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(IdError::Control { what, at }),
        None => Ok(()),
    }
}

fn check_upstream(what: &'static str, text: &str, limit: usize) -> Result<(), IdError> {
    check(what, text, limit)?;
    if !text.bytes().all(is_upstream_byte) {
        return Err(IdError::Characters {
            what,
            name: text.to_owned(),
        });
    }
    if RESERVED_UPSTREAMS.contains(&text) {
        return Err(IdError::Reserved {
            what,
            name: text.to_owned(),
        });
    }
    Ok(())
}

fn is_upstream_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $limit:expr, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<&str> for $name {
            type Error = IdError;

            fn try_from(text: &str) -> Result<Self, IdError> {
                $check($what, text, $limit)?;
                Ok(Self(Arc::from(text)))
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                Self::try_from(text.as_str())
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::try_from(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                Self::try_from(&*text).map_err(D::Error::custom)
            }
        }
    };
}

id!(
    /// The program that calls tools; comes from a credential.
    AgentId, "agent id", MAX_ID_BYTES, check
);
id!(
    /// The human that an agent acts for.
    UserId, "user id", MAX_ID_BYTES, check
);
id!(
    /// The calls of one agent conversation.
    SessionId, "session id", MAX_ID_BYTES, check
);
id!(
    /// The tenant that sidecars, upstreams, pins, grants, approvals and records belong to.
    Namespace, "namespace", MAX_ID_BYTES, check
);
id!(
    /// The name of one source of tools: letters, digits, `_` and `-`; `mesh`, `approval` and `grant` are reserved.
    UpstreamName, "upstream name", MAX_ID_BYTES, check_upstream
);
id!(
    /// The full governed name of a tool: `<upstream>.<tool>`, `<upstream>.resource:<uri>`,
    /// `<upstream>.prompt:<name>`, `<upstream>.method:<method>`, or the bare name of a tool that an agent's host
    /// runs itself.
    ToolName, "tool name", MAX_TOOL_NAME_BYTES, check
);
id!(
    /// The name of a policy, unique in the installation.
    PolicyName, "policy name", MAX_ID_BYTES, check
);

impl Default for Namespace {
    /// The namespace of one machine: `default`.
    fn default() -> Self {
        Self(Arc::from("default"))
    }
}

impl ToolName {
    /// The governed name of an upstream's tool.
    ///
    /// # Errors
    /// When `local` is empty, or the whole is too long or holds control characters.
    pub fn of(upstream: &UpstreamName, local: &str) -> Result<Self, IdError> {
        check("tool name", local, MAX_TOOL_NAME_BYTES)?;
        Self::try_from(format!("{upstream}.{local}"))
    }

    /// The upstream's name: what stands before the first dot, when that can be an upstream's name.
    pub fn upstream(&self) -> Option<&str> {
        self.split().map(|(upstream, _)| upstream)
    }

    /// The tool's own name, without its upstream.
    pub fn local(&self) -> &str {
        self.split().map_or(self.as_str(), |(_, local)| local)
    }

    fn split(&self) -> Option<(&str, &str)> {
        self.0.split_once('.').filter(|(upstream, local)| {
            !upstream.is_empty() && !local.is_empty() && upstream.bytes().all(is_upstream_byte)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_name_knows_its_upstream_and_its_own_part() {
        let name: ToolName = "github.resource:file:///a.txt".parse().unwrap();
        assert_eq!(name.upstream(), Some("github"));
        assert_eq!(name.local(), "resource:file:///a.txt");
        let host: ToolName = "Bash".parse().unwrap();
        assert_eq!(host.upstream(), None);
        assert_eq!(host.local(), "Bash");
    }

    #[test]
    fn names_that_are_empty_too_long_or_hold_control_characters_are_refused() {
        assert!(matches!(AgentId::try_from(""), Err(IdError::Empty { .. })));
        assert!(matches!(
            AgentId::try_from("a\nb"),
            Err(IdError::Control { at: 1, .. })
        ));
        assert!(matches!(
            AgentId::try_from("x".repeat(257)),
            Err(IdError::TooLong { length: 257, .. })
        ));
    }

    #[test]
    fn reserved_and_dotted_upstream_names_are_refused() {
        for reserved in RESERVED_UPSTREAMS {
            assert!(matches!(
                UpstreamName::try_from(reserved),
                Err(IdError::Reserved { .. })
            ));
        }
        assert!(matches!(
            UpstreamName::try_from("a.b"),
            Err(IdError::Characters { .. })
        ));
    }

    #[test]
    fn deserialising_validates() {
        assert!(serde_json::from_str::<AgentId>("\"a\\u0000\"").is_err());
        assert_eq!(serde_json::from_str::<AgentId>("\"a\"").unwrap().as_str(), "a");
    }
}

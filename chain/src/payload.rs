//! The erasable part of a record.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::hash::{Hash, hex};
use crate::record::RecordError;

/// What can be erased without breaking the chain. The header holds only its salted digest, so that small values
/// cannot be guessed from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// Random bytes in hexadecimal.
    pub salt: String,
    /// The arguments after redaction, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
    /// The arguments that a program was run with, after redaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// The governed name of the command that the program was run for, where another name was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// URIs that the call reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
    /// `table.column`s that it reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Hosts that it reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Paths that it reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// People that it reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients: Option<Vec<String>>,
    /// The error, as the agent was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A payload's exact text, and the digest that its header holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedPayload {
    /// The exact bytes.
    pub text: String,
    /// SHA-256 of the salt and the text.
    pub digest: Hash,
}

#[derive(Deserialize)]
struct Salted<'a> {
    #[serde(borrow)]
    salt: std::borrow::Cow<'a, str>,
}

impl Payload {
    /// A payload with nothing in it yet. `salt` must be random.
    pub fn new(salt: [u8; 16]) -> Self {
        Self {
            salt: hex(&salt),
            params: None,
            argv: None,
            command: None,
            resources: None,
            columns: None,
            hosts: None,
            paths: None,
            recipients: None,
            error: None,
        }
    }

    /// Makes the text, once, and its digest.
    ///
    /// # Errors
    /// When it cannot be serialised.
    pub fn seal(&self) -> Result<SealedPayload, RecordError> {
        let text = serde_json::to_string(self).map_err(RecordError::Encode)?;
        let digest = salted(&self.salt, &text);
        Ok(SealedPayload { text, digest })
    }
}

/// The digest of a payload's text: SHA-256 of the salt, as its text stands there, followed by the whole text.
///
/// # Errors
/// When the text is not a JSON object with a `salt`.
pub fn payload_digest(text: &str) -> Result<Hash, RecordError> {
    let payload: Salted<'_> = serde_json::from_str(text).map_err(RecordError::Decode)?;
    Ok(salted(&payload.salt, text))
}

fn salted(salt: &str, text: &str) -> Hash {
    Hash::of(&[salt.as_bytes(), text.as_bytes()])
}

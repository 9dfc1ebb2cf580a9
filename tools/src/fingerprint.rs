//! The fingerprint of a declared tool.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::json::{Node, canonical_into, canonical_string_into};

/// What a model or a host sees of a tool, in canonical order.
const SEEN: [&str; 7] = [
    "_meta",
    "annotations",
    "description",
    "icons",
    "inputSchema",
    "outputSchema",
    "title",
];

/// SHA-256 over the canonical JSON of everything that a model or a host sees of a tool: title, description, input
/// and output schema, annotations, icons, `_meta`. Key order changes nothing, any change of text or schema does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// The text is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 64 hexadecimal digits")]
pub struct FingerprintError;

impl Fingerprint {
    /// The fingerprint of a tool as its upstream declared it.
    pub fn of(declared: Node<'_>) -> Self {
        let mut bytes = vec![b'{'];
        for key in SEEN {
            let Some(value) = declared.get(key) else {
                continue;
            };
            if bytes.len() > 1 {
                bytes.push(b',');
            }
            canonical_string_into(key, &mut bytes);
            bytes.push(b':');
            canonical_into(value, &mut bytes);
        }
        bytes.push(b'}');
        Self(Sha256::digest(&bytes).into())
    }

    /// The fingerprint with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if !rest.is_empty() || pairs.len() != 32 {
            return Err(FingerprintError);
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = hex(*high)? << 4 | hex(*low)?;
        }
        Ok(Self(bytes))
    }
}

fn hex(byte: u8) -> Result<u8, FingerprintError> {
    let digit = char::from(byte).to_digit(16).ok_or(FingerprintError)?;
    u8::try_from(digit).map_err(|_| FingerprintError)
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

//! SHA-256 digests and their hexadecimal text.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A SHA-256 digest; written as 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash([u8; 32]);

/// The text is not the hexadecimal form that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {digits} hexadecimal digits in lower case")]
pub struct HexError {
    /// Digits expected.
    pub digits: usize,
}

impl Hash {
    /// What the first record of a chain links to.
    pub const ZERO: Self = Self([0; 32]);

    /// The digest with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest of the parts, one after the other.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(part);
        }
        Self(digest.finalize().into())
    }

    /// Its text, without a heap allocation: every record holds several.
    pub(crate) fn text(&self) -> [u8; 64] {
        let mut text = [0; 64];
        let (pairs, _) = text.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(self.0) {
            *pair = digits(byte);
        }
        text
    }

    /// Reads 64 hexadecimal digits in lower case.
    pub(crate) fn from_hex(text: &[u8]) -> Result<Self, HexError> {
        decode(text).map(Self)
    }
}

/// Reads `2 * N` hexadecimal digits in lower case.
pub(crate) fn decode<const N: usize>(text: &[u8]) -> Result<[u8; N], HexError> {
    let error = HexError { digits: 2 * N };
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() || pairs.len() != N {
        return Err(error);
    }
    let mut bytes = [0; N];
    let mut invalid = 0;
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let (high, low) = (digit(*high), digit(*low));
        invalid |= high | low;
        *byte = high << 4 | (low & 0x0f);
    }
    if invalid & 0xf0 == 0 {
        Ok(bytes)
    } else {
        Err(error)
    }
}

/// A digit's value; 0xff for anything else. Without branches, since this is done for every record.
fn digit(byte: u8) -> u8 {
    let (decimal, letter) = (byte.wrapping_sub(b'0'), byte.wrapping_sub(b'a'));
    let letter = if letter < 6 { letter + 10 } else { 0xff };
    if decimal < 10 { decimal } else { letter }
}

/// The hexadecimal text of bytes, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let [high, low] = digits(*byte);
        text.push(char::from(high));
        text.push(char::from(low));
    }
    text
}

/// The two hexadecimal digits of a byte.
fn digits(byte: u8) -> [u8; 2] {
    let digit = |nibble: u8| {
        if nibble < 10 {
            b'0' + nibble
        } else {
            b'a' + nibble - 10
        }
    };
    [digit(byte >> 4), digit(byte & 0x0f)]
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

impl FromStr for Hash {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        Self::from_hex(text.as_bytes())
    }
}

impl From<[u8; 32]> for Hash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.text();
        serializer.serialize_str(std::str::from_utf8(&text).map_err(S::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_hex(text.as_bytes()).map_err(D::Error::custom)
    }
}

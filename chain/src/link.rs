//! The links of the chain, and its writer.

use std::fmt;

use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hash::{Hash, hex};

/// A place in the chain. Ordered: a later generation is after every number of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Position {
    /// The generation.
    pub generation: u64,
    /// The number within the generation, from 1; 0: before the first record.
    pub seq: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.generation, self.seq)
    }
}

/// The end of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Where it is.
    pub at: Position,
    /// The hash there; before a generation's first record: what that record links to.
    pub hash: Hash,
}

impl Head {
    /// The end of a chain that has no record yet.
    pub const GENESIS: Self = Self {
        at: Position {
            generation: 1,
            seq: 0,
        },
        hash: Hash::ZERO,
    };

    /// The end of a new generation that has no record yet: its first record links to the last trusted checkpoint.
    pub fn of_generation(generation: u64, checkpoint: Hash) -> Self {
        Self {
            at: Position { generation, seq: 0 },
            hash: checkpoint,
        }
    }
}

/// The hash of a record: SHA-256 of the hash before and the header's text.
pub fn link(prev: &Hash, header: &[u8]) -> Hash {
    Hash::of(&[prev.as_bytes(), header])
}

/// A key of the chain: with it, each record also has `HMAC-SHA256(key, hash)`.
#[derive(Clone)]
pub struct MacKey {
    id: String,
    keyed: Hmac<Sha256>,
}

impl MacKey {
    /// The key with this id. The bytes should be random and 32 long.
    pub fn new(id: impl Into<String>, key: &[u8]) -> Option<Self> {
        // INVARIANT: HMAC takes keys of every length.
        let keyed = <Hmac<Sha256> as hmac::Mac>::new_from_slice(key).ok()?;
        Some(Self { id: id.into(), keyed })
    }

    /// The key whose id follows from itself, so that whoever has the key can name it: `trace-` and 16 digits that tell nothing of
    /// the key that could be tried out cheaply.
    pub fn from_text(key: &str) -> Option<Self> {
        let digest = hex(&Sha256::digest(
            [b"toolgate trace key id\n", key.as_bytes()].concat(),
        ));
        Self::new(format!("trace-{}", digest.get(..16)?), key.as_bytes())
    }

    /// The key's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The MAC of a record's hash.
    pub fn tag(&self, hash: &Hash) -> Hash {
        let mut mac = self.keyed.clone();
        mac.update(hash.as_bytes());
        Hash::from_bytes(mac.finalize().into_bytes().into())
    }

    /// Whether this is the MAC of the hash; takes the same time for every wrong one.
    pub fn verifies(&self, hash: &Hash, tag: &Hash) -> bool {
        let mut mac = self.keyed.clone();
        mac.update(hash.as_bytes());
        mac.verify_slice(tag.as_bytes()).is_ok()
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MacKey({:?})", self.id)
    }
}

/// A record with its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// Where it stands.
    pub at: Position,
    /// The exact text that is hashed and stored.
    pub header: String,
    /// Its link.
    pub hash: Hash,
    /// Its MAC, when the chain has a key.
    pub mac: Option<Hash>,
}

/// The bytes are not the text of an encoded source record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the source record is not the JSON text of an object with fields")]
pub struct NotARecord;

/// Links records, in memory, one after the other.
///
/// The caller holds the lock on the stored head and writes what comes out, and the head, in one transaction. Its
/// records MUST have been read by [`SourceRecord::decode`](crate::record::SourceRecord::decode), or been encoded
/// here.
#[derive(Debug, Clone)]
pub struct ChainWriter {
    head: Head,
    key: Option<MacKey>,
}

impl ChainWriter {
    /// Continues at the head.
    pub fn new(head: Head, key: Option<MacKey>) -> Self {
        Self { head, key }
    }

    /// Where the chain ends now.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The id of the key that MACs are made with.
    pub fn key_id(&self) -> Option<&str> {
        self.key.as_ref().map(MacKey::id)
    }

    /// Records after this one have MACs under another key. The last record under the old key must be the one that
    /// says so ([`KEY_CHANGE`]).
    pub fn change_key(&mut self, key: MacKey) {
        self.key = Some(key);
    }

    /// Links one record, given by its canonical text.
    ///
    /// # Errors
    /// When the text is not that of an object with fields; the chain has not moved.
    pub fn append(&mut self, source: &str) -> Result<Linked, NotARecord> {
        let fields = source
            .strip_prefix('{')
            .filter(|fields| fields.starts_with('"') && fields.ends_with('}'))
            .ok_or(NotARecord)?;
        let at = Position {
            generation: self.head.at.generation,
            seq: self.head.at.seq + 1,
        };
        let mut header = String::with_capacity(source.len() + 56);
        header.push_str(GENERATION);
        push_number(&mut header, at.generation);
        header.push_str(SEQ);
        push_number(&mut header, at.seq);
        header.push(',');
        header.push_str(fields);
        let hash = link(&self.head.hash, header.as_bytes());
        self.head = Head { at, hash };
        let mac = self.key.as_ref().map(|key| key.tag(&hash));
        Ok(Linked {
            at,
            header,
            hash,
            mac,
        })
    }
}

/// The `tool` of the act that changes the chain's key.
pub const KEY_CHANGE: &str = "mesh.key_change";

const GENERATION: &str = "{\"generation\":";
const SEQ: &str = ",\"seq\":";

fn push_number(out: &mut String, number: u64) {
    use fmt::Write as _;
    // INVARIANT: writing to a String cannot fail.
    let _ = write!(out, "{number}");
}

/// The position that a header's text states, and the source record's text without its first brace. `None` when the
/// text does not begin as [`ChainWriter`] makes it.
pub fn split_header(header: &str) -> Option<(Position, &str)> {
    let rest = header.strip_prefix(GENERATION)?;
    let (generation, rest) = number(rest)?;
    let rest = rest.strip_prefix(SEQ)?;
    let (seq, rest) = number(rest)?;
    let source = rest.strip_prefix(',')?;
    Some((Position { generation, seq }, source))
}

/// The number that a text begins with, in canonical form, and what follows.
pub(crate) fn number(text: &str) -> Option<(u64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(length)?;
    if digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

//! Checkpoints: signed statements of the chain's head. What somebody else holds is what truncation and rewriting
//! are found by.

use std::collections::BTreeMap;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::hash::{Hash, HexError, decode, hex};
use crate::link::Position;
use crate::timestamp::Timestamp;

/// What is signed begins with this, so that no other document's signature passes for a checkpoint's.
const CONTEXT: &[u8] = b"toolgate checkpoint 1\n";

/// A statement: at this time, the chain's head was this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Which installation's chain.
    pub origin: String,
    /// The head's generation.
    pub generation: u64,
    /// The head's number.
    pub seq: u64,
    /// The head's hash.
    pub hash: Hash,
    /// When it was made.
    pub time: Timestamp,
}

impl Checkpoint {
    /// The place that it speaks of.
    pub fn position(&self) -> Position {
        Position {
            generation: self.generation,
            seq: self.seq,
        }
    }
}

/// A checkpoint's exact text with its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedCheckpoint {
    /// The checkpoint as JSON; exactly this is signed (after a fixed first line).
    pub text: String,
    /// Ed25519, 128 hexadecimal digits.
    pub signature: String,
    /// Names the key: see [`PublicKey::id`].
    pub key_id: String,
}

/// Why a checkpoint is not to be trusted.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The text is not a checkpoint.
    #[error("the text is not a checkpoint: {0}")]
    Decode(#[source] serde_json::Error),
    /// The checkpoint cannot be written.
    #[error("the checkpoint cannot be written: {0}")]
    Encode(#[source] serde_json::Error),
    /// No public key has this id.
    #[error("no public key {key_id:?} is known; give it with --public-key")]
    UnknownKey {
        /// The id.
        key_id: String,
    },
    /// The signature is not that of the key.
    #[error("the signature is not that of key {key_id:?}")]
    Signature {
        /// The id.
        key_id: String,
    },
}

impl SignedCheckpoint {
    /// What it states, whoever signed it.
    ///
    /// # Errors
    /// When the text is not a checkpoint.
    pub fn statement(&self) -> Result<Checkpoint, CheckpointError> {
        serde_json::from_str(&self.text).map_err(CheckpointError::Decode)
    }

    /// The signature's bytes, when its text is well formed.
    pub fn signature_bytes(&self) -> Option<[u8; 64]> {
        decode(self.signature.as_bytes()).ok()
    }

    /// A checkpoint from its stored parts.
    pub fn from_parts(text: String, signature: &[u8], key_id: String) -> Self {
        Self {
            text,
            signature: hex(signature),
            key_id,
        }
    }
}

/// Signs checkpoints.
pub struct CheckpointSigner {
    key: SigningKey,
    public: PublicKey,
}

impl CheckpointSigner {
    /// The key that these 32 random bytes make.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        let public = PublicKey {
            key: key.verifying_key(),
        };
        Self { key, public }
    }

    /// The key that others verify with.
    pub fn public_key(&self) -> PublicKey {
        self.public.clone()
    }

    /// Signs a checkpoint. Its head MUST be in the chain, and not behind the last one signed.
    ///
    /// # Errors
    /// When it cannot be serialised.
    pub fn sign(&self, checkpoint: &Checkpoint) -> Result<SignedCheckpoint, CheckpointError> {
        let text = serde_json::to_string(checkpoint).map_err(CheckpointError::Encode)?;
        let signature = self.key.sign(&signed_bytes(&text));
        Ok(SignedCheckpoint::from_parts(
            text,
            &signature.to_bytes(),
            self.public.id(),
        ))
    }
}

impl std::fmt::Debug for CheckpointSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CheckpointSigner({})", self.public.id())
    }
}

fn signed_bytes(text: &str) -> Vec<u8> {
    [CONTEXT, text.as_bytes()].concat()
}

/// A public key for checkpoints; its text is 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    key: VerifyingKey,
}

/// The bytes or the text are not a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// Not 64 hexadecimal digits.
    #[error("a public key has 64 hexadecimal digits: {0}")]
    Hex(#[from] HexError),
    /// Not a point of the curve.
    #[error("the bytes are not an Ed25519 public key")]
    Invalid,
}

impl PublicKey {
    /// The key with these bytes.
    ///
    /// # Errors
    /// When they are not a point of the curve.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, PublicKeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| PublicKeyError::Invalid)?;
        Ok(Self { key })
    }

    /// The key's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// Names the key: the first 16 hexadecimal digits of the SHA-256 of its bytes.
    pub fn id(&self) -> String {
        let digest = Hash::of(&[self.key.as_bytes()]);
        let short = digest.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
        hex(&short)
    }

    /// Checks a checkpoint's signature, whatever key id it names, and reads the checkpoint.
    ///
    /// # Errors
    /// When the signature is not this key's, or the text is not a checkpoint.
    pub fn verify(&self, signed: &SignedCheckpoint) -> Result<Checkpoint, CheckpointError> {
        let bytes = signed.signature_bytes();
        let valid = bytes.is_some_and(|bytes| {
            let signature = Signature::from_bytes(&bytes);
            self.key
                .verify_strict(&signed_bytes(&signed.text), &signature)
                .is_ok()
        });
        if !valid {
            return Err(CheckpointError::Signature {
                key_id: signed.key_id.clone(),
            });
        }
        signed.statement()
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(self.key.as_bytes()))
    }
}

impl std::str::FromStr for PublicKey {
    type Err = PublicKeyError;

    fn from_str(text: &str) -> Result<Self, PublicKeyError> {
        Self::from_bytes(&decode(text.trim().as_bytes())?)
    }
}

/// The public keys that are trusted, by id.
#[derive(Debug, Clone, Default)]
pub struct PublicKeys(BTreeMap<String, PublicKey>);

impl PublicKeys {
    /// Reads keys from text: one a line; empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// With the first line that is not a key.
    pub fn from_text(text: &str) -> Result<Self, PublicKeyError> {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::parse)
            .collect()
    }

    /// Trusts a key.
    pub fn insert(&mut self, key: PublicKey) {
        self.0.insert(key.id(), key);
    }

    /// Whether no key is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks a checkpoint's signature by the key that it names.
    ///
    /// # Errors
    /// When the key is not known, the signature is not that key's, or the text is not a checkpoint.
    pub fn verify(&self, signed: &SignedCheckpoint) -> Result<Checkpoint, CheckpointError> {
        self.0
            .get(&signed.key_id)
            .ok_or_else(|| CheckpointError::UnknownKey {
                key_id: signed.key_id.clone(),
            })?
            .verify(signed)
    }
}

impl FromIterator<PublicKey> for PublicKeys {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        let mut trusted = Self::default();
        keys.into_iter().for_each(|key| trusted.insert(key));
        trusted
    }
}

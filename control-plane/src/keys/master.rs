//! The master key, under which every other key is kept encrypted.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce};

/// Name of the file that holds a master key made at first start.
const FILE: &str = "master-key";
const NONCE_BYTES: usize = 12;

/// Why a master key cannot be had or cannot open what is kept under it.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    /// The text is no key.
    #[error(
        "{from}: a master key is 32 bytes, written as 64 hex digits or as base64; make one with `openssl rand -hex 32`"
    )]
    Malformed {
        /// Where the text came from.
        from: String,
    },
    /// A file cannot be read or written.
    #[error("master key file {path}: {source}; check its path and permissions")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// None is configured and there is no data directory to make one in.
    #[error(
        "no master key: set TOOLGATE_MASTER_KEY to 64 hex digits, or to the path of a file that holds them"
    )]
    Missing,
    /// The system has no randomness to give.
    #[error("the system's random source failed; the master key cannot be made")]
    Random,
    /// The database holds keys that this master key does not open.
    #[error(
        "key {id} does not open under this master key; start with the TOOLGATE_MASTER_KEY that this database was first started with"
    )]
    Wrong {
        /// The key that did not open.
        id: String,
    },
}

/// 32 secret bytes.
#[derive(Clone)]
pub struct MasterKey([u8; 32]);

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

impl MasterKey {
    /// A fresh random key.
    ///
    /// # Errors
    /// When the system's random source fails.
    pub fn random() -> Result<Self, MasterKeyError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| MasterKeyError::Random)?;
        Ok(Self(bytes))
    }

    /// Reads a key written as 64 hex digits or as base64.
    ///
    /// # Errors
    /// When `text` is neither; the message names `from`, never the text.
    pub fn parse(text: &str, from: &str) -> Result<Self, MasterKeyError> {
        let text = text.trim();
        let bytes = super::hex::decode(text).or_else(|| STANDARD.decode(text).ok());
        let bytes = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        bytes.map(Self).ok_or_else(|| MasterKeyError::Malformed {
            from: from.to_owned(),
        })
    }

    /// The key that `setting` gives (a value, or the path of a file), else the one kept in `data_dir`, made there if need be.
    ///
    /// # Errors
    /// When there is neither, or the key or its file is unusable.
    pub fn load(setting: Option<&str>, data_dir: Option<&Path>) -> Result<Self, MasterKeyError> {
        match (setting, data_dir) {
            (Some(value), _) if Path::new(value.trim()).is_file() => Self::read(Path::new(value.trim())),
            (Some(value), _) => Self::parse(value, "TOOLGATE_MASTER_KEY"),
            (None, Some(data_dir)) => Self::kept_in(data_dir),
            (None, None) => Err(MasterKeyError::Missing),
        }
    }

    fn read(path: &Path) -> Result<Self, MasterKeyError> {
        let text = std::fs::read_to_string(path).map_err(|source| MasterKeyError::File {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, &path.display().to_string())
    }

    fn kept_in(data_dir: &Path) -> Result<Self, MasterKeyError> {
        let path = data_dir.join(FILE);
        if path.exists() {
            return Self::read(&path);
        }
        let key = Self::random()?;
        match crate::secret_file::create(&path, &super::hex::encode(&key.0)) {
            Ok(()) => Ok(key),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Self::read(&path),
            Err(source) => Err(MasterKeyError::File { path, source }),
        }
    }

    /// Encrypts `secret`, bound to the key's name.
    ///
    /// # Errors
    /// When the system's random source fails.
    pub fn seal(&self, id: &str, secret: &[u8]) -> Result<Vec<u8>, MasterKeyError> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| MasterKeyError::Random)?;
        let payload = Payload {
            msg: secret,
            aad: id.as_bytes(),
        };
        let cipher = ChaCha20Poly1305::new(&self.0.into());
        let sealed = cipher
            .encrypt(Nonce::from_slice(&nonce), payload)
            .map_err(|_| MasterKeyError::Random)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Decrypts what [`MasterKey::seal`] made for the same name.
    ///
    /// # Errors
    /// When it was sealed under another key or name, or was changed.
    pub fn open(&self, id: &str, sealed: &[u8]) -> Result<Vec<u8>, MasterKeyError> {
        let wrong = || MasterKeyError::Wrong { id: id.to_owned() };
        let (nonce, sealed) = sealed.split_at_checked(NONCE_BYTES).ok_or_else(wrong)?;
        let payload = Payload {
            msg: sealed,
            aad: id.as_bytes(),
        };
        let cipher = ChaCha20Poly1305::new(&self.0.into());
        cipher
            .decrypt(Nonce::from_slice(nonce), payload)
            .map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_under_the_same_key_and_name_only() {
        let key = MasterKey::random().unwrap();
        let sealed = key.seal("k1", b"secret").unwrap();
        assert_eq!(key.open("k1", &sealed).unwrap(), b"secret");
        assert!(key.open("k2", &sealed).is_err());
        assert!(MasterKey::random().unwrap().open("k1", &sealed).is_err());
        assert!(key.open("k1", b"short").is_err());
    }

    #[test]
    fn a_key_made_in_a_data_directory_is_found_again_and_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let made = MasterKey::load(None, Some(directory.path())).unwrap();
        let again = MasterKey::load(None, Some(directory.path())).unwrap();
        assert_eq!(made.0, again.0);
        let mode = std::fs::metadata(directory.path().join(FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_setting_is_a_value_or_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k");
        let hex = "ab".repeat(32);
        std::fs::write(&path, format!("{hex}\n")).unwrap();
        let by_file = MasterKey::load(Some(path.to_str().unwrap()), None).unwrap();
        let by_value = MasterKey::load(Some(&hex), None).unwrap();
        assert_eq!(by_file.0, by_value.0);
        let error = MasterKey::load(Some("hunter2"), None).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

//! The operator's token.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use crate::keys::hex;

/// Name of the file that holds a token made at first start.
const FILE: &str = "admin-token";

/// Why there is no operator token.
#[derive(Debug, thiserror::Error)]
pub enum AdminTokenError {
    /// Its file cannot be read or written.
    #[error("operator token file {path}: {source}; check its path and permissions")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// None is configured and there is no data directory to make one in.
    #[error("no operator token: set auth.admin_token or TOOLGATE_ADMIN_TOKEN")]
    Missing,
    /// It is empty.
    #[error(
        "the operator token is empty; set auth.admin_token to a long random text, or remove it to have one made"
    )]
    Empty,
    /// The system has no randomness to give.
    #[error("the system's random source failed; the operator token cannot be made")]
    Random,
}

/// The operator's token; compared in constant time, never shown.
#[derive(Clone)]
pub struct AdminToken {
    digest: [u8; 32],
    text: String,
}

impl std::fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminToken(..)")
    }
}

impl AdminToken {
    /// The configured token, else the one kept in `data_dir`, made there (0600) if need be.
    ///
    /// # Errors
    /// When there is none and none can be made.
    pub fn load(configured: Option<&str>, data_dir: Option<&Path>) -> Result<Self, AdminTokenError> {
        match (configured, data_dir) {
            (Some(text), _) => Self::new(text),
            (None, Some(data_dir)) => Self::kept_in(data_dir),
            (None, None) => Err(AdminTokenError::Missing),
        }
    }

    fn new(text: &str) -> Result<Self, AdminTokenError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(AdminTokenError::Empty);
        }
        Ok(Self {
            digest: Sha256::digest(text).into(),
            text: text.to_owned(),
        })
    }

    fn kept_in(data_dir: &Path) -> Result<Self, AdminTokenError> {
        let path = data_dir.join(FILE);
        let made = hex::random_secret().map_err(|_| AdminTokenError::Random)?;
        match crate::secret_file::create(&path, &made) {
            Ok(()) => Self::new(&made),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let text = std::fs::read_to_string(&path)
                    .map_err(|source| AdminTokenError::File { path, source })?;
                Self::new(&text)
            }
            Err(source) => Err(AdminTokenError::File { path, source }),
        }
    }

    /// Whether a presented token is this one.
    #[must_use]
    pub fn matches(&self, presented: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(presented).into();
        digest.ct_eq(&self.digest).into()
    }

    /// The token itself, for programs of this process that act for the operator.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_it_opens() {
        let directory = tempfile::tempdir().unwrap();
        let made = AdminToken::load(None, Some(directory.path())).unwrap();
        let again = AdminToken::load(None, Some(directory.path())).unwrap();
        assert!(again.matches(made.reveal()));
        assert!(!again.matches(""));
        assert!(!again.matches("guess"));
        assert!(
            AdminToken::load(Some("given"), Some(directory.path()))
                .unwrap()
                .matches("given")
        );
    }

    #[test]
    fn an_empty_token_opens_nothing() {
        assert!(matches!(
            AdminToken::load(Some("  "), None),
            Err(AdminTokenError::Empty)
        ));
    }
}

//! The last good document of a service, on the disk.

use std::path::PathBuf;

use net::files;
use tools::openapi::MAX_DOCUMENT_BYTES;

/// Where the last good document of a service is kept.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    path: PathBuf,
}

impl Kept {
    /// The place of the service's document; its name is a file name.
    pub(super) fn new(folder: PathBuf, name: &str) -> Self {
        Self {
            path: folder.join(format!("{name}.json")),
        }
    }

    /// Keeps a document. One that is kept already is not written again.
    pub(super) fn keep(&self, document: &[u8]) {
        if self.read().is_some_and(|kept| kept == document) {
            return;
        }
        let written = match self.path.parent() {
            Some(folder) => {
                files::create_private_dir(folder).and_then(|()| files::write_private(&self.path, document))
            }
            None => Ok(()),
        };
        if let Err(error) = written {
            tracing::warn!("an OpenAPI document is not kept for the next start: {error}");
        }
    }

    /// The document that is kept.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let size = std::fs::metadata(&self.path).ok()?.len();
        if size > MAX_DOCUMENT_BYTES as u64 {
            return None;
        }
        files::read_optional(&self.path).ok().flatten()
    }
}

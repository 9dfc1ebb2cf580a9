//! Files that only their owner may read.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Creates `path` with mode 0600 and writes `text` and a line end; the folder is made if it is missing.
///
/// # Errors
/// `AlreadyExists` when the file is there already, else what the system says.
pub(crate) fn create(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// Creates a folder with mode 0700, and those above it, where they are missing.
///
/// # Errors
/// What the system says.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

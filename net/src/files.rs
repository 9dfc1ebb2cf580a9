//! Small files that must be private, whole, and on the disk. These calls block: async code runs them in
//! `tokio::task::spawn_blocking`, or before it serves.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {source}", path.display())]
pub struct FileError {
    doing: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl FileError {
    fn new(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { doing, path, source }
    }

    /// What the operating system said.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

/// Writes a file that only its owner may read (0600): into a temporary neighbour, synced, then renamed
/// over `path`, so that a reader or a crash sees the old bytes or the new, never a part.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let random = getrandom::u64()
        .map_err(|error| FileError::new("write", path)(io::Error::other(error.to_string())))?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file");
    let temporary = path.with_file_name(format!(".{name}.{random:016x}.tmp"));
    let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(FileError::new("write", path)(error));
    }
    sync_parent(path).map_err(FileError::new("write", path))
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}

/// Makes a folder, and those above it, that only its owner may enter (0700). One that exists is left as it is.
pub fn create_private_dir(path: &Path) -> Result<(), FileError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(FileError::new("create the folder", path))
}

/// Reads a file, or `None` where there is none.
pub fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::new("read", path)(error)),
    }
}

/// Reads a secret kept as one line of text; white space around it is dropped. An empty file is an error.
pub fn read_secret(path: &Path) -> Result<String, FileError> {
    let text = fs::read_to_string(path).map_err(FileError::new("read", path))?;
    let secret = text.trim();
    if secret.is_empty() {
        let empty = io::Error::new(io::ErrorKind::InvalidData, "the file is empty");
        return Err(FileError::new("read", path)(empty));
    }
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_private_file_is_whole_and_only_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_names_the_file() {
        let error = write_private(Path::new("/nowhere/token"), b"x").unwrap_err();
        assert!(
            error.to_string().starts_with("cannot write /nowhere/token: "),
            "{error}"
        );
    }

    #[test]
    fn a_private_folder_is_only_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        create_private_dir(&path).unwrap();
        create_private_dir(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_secret_is_read_without_its_line_end_and_never_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert_eq!(read_secret(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "abc\n").unwrap();
        assert_eq!(read_secret(&path).unwrap(), "abc");
        fs::write(&path, "\n").unwrap();
        assert!(read_secret(&path).unwrap_err().to_string().contains("empty"));
    }

    #[test]
    fn a_missing_file_is_none() {
        assert!(read_optional(Path::new("/nowhere/file")).unwrap().is_none());
    }
}

//! Replacing one file of the policy directory, whole or not at all.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

/// The mode of a file that was not there before.
const NEW_FILE: u32 = 0o644;

/// What one file of the directory is to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Its name in the directory.
    pub file: String,
    /// What it holds now; `None`: it is not there.
    pub before: Option<String>,
    /// What it is to hold; `None`: it is to go.
    pub after: Option<String>,
}

/// Why a file was not replaced. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum FileRefused {
    /// Somebody else was faster.
    #[error("{file} has been changed in between; read it again")]
    Changed {
        /// The file.
        file: String,
    },
    /// It is not for this server to change.
    #[error("{file} cannot be changed here: {reason}")]
    ReadOnly {
        /// The file.
        file: String,
        /// What stands in the way.
        reason: String,
    },
    /// The text is not valid where it stands, beside the other files.
    #[error("{file} would not be valid: {problem}")]
    Invalid {
        /// The file.
        file: String,
        /// The first problem.
        problem: String,
    },
    /// The system does not do it.
    #[error("{file} cannot be written: {reason}")]
    Failed {
        /// The file.
        file: String,
        /// What the system says.
        reason: String,
    },
}

impl FileRefused {
    fn of(file: &str, error: &io::Error) -> Self {
        let file = file.to_owned();
        let reason = error.to_string();
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { file, reason }
            }
            _ => Self::Failed { file, reason },
        }
    }
}

/// The text of a file; `None` when it is not there.
///
/// # Errors
/// When it cannot be read, or is no text.
pub fn read_text(folder: &Path, file: &str) -> Result<Option<String>, FileRefused> {
    match std::fs::read(folder.join(file)) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(FileRefused::Invalid {
                file: file.to_owned(),
                problem: "it is not UTF-8 text".to_owned(),
            }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileRefused::of(file, &error)),
    }
}

/// Replaces a file by a rename, so that no reader sees half of it. Its mode stays, and its text is kept in `<file>.bak`.
///
/// # Errors
/// When it does not hold what it is said to hold, is not for this server to change, or the system does not do it.
pub(super) fn replace(folder: &Path, wanted: &Replacement) -> Result<(), FileRefused> {
    let file = wanted.file.as_str();
    check_source(folder, file)?;
    if read_text(folder, file)? != wanted.before {
        return Err(FileRefused::Changed {
            file: file.to_owned(),
        });
    }
    write(folder, wanted).map_err(|error| FileRefused::of(file, &error))
}

/// Undoes [`replace`].
///
/// # Errors
/// When the system does not do it.
pub(super) fn restore(folder: &Path, done: &Replacement) -> Result<(), FileRefused> {
    let back = Replacement {
        file: done.file.clone(),
        before: None,
        after: done.before.clone(),
    };
    write(folder, &back).map_err(|error| FileRefused::of(&done.file, &error))
}

/// Refuses what is fed from elsewhere, or must not be written.
fn check_source(folder: &Path, file: &str) -> Result<(), FileRefused> {
    let read_only = |reason: &str| FileRefused::ReadOnly {
        file: file.to_owned(),
        reason: reason.to_owned(),
    };
    let facts = |path: &Path| std::fs::symlink_metadata(path).ok();
    let is_link = |path: &Path| facts(path).is_some_and(|facts| facts.is_symlink());
    if is_link(&folder.join(file)) {
        return Err(read_only(
            "it is a link, so something else provides it; change it there",
        ));
    }
    if is_link(folder) && folder.join(".git").exists() {
        return Err(read_only("the policy directory is fed from Git; change it there"));
    }
    let is_locked =
        |path: &Path| std::fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o222 == 0);
    if is_locked(folder) {
        return Err(read_only("the policy directory is read-only"));
    }
    if is_locked(&folder.join(file)) {
        return Err(read_only("the file is read-only"));
    }
    Ok(())
}

fn write(folder: &Path, wanted: &Replacement) -> io::Result<()> {
    let path = folder.join(&wanted.file);
    let facts = std::fs::metadata(&path).ok();
    if let Some(before) = &wanted.before {
        let kept = format!("{}.bak", wanted.file);
        put(folder, &kept, before, facts.as_ref())?;
    }
    match &wanted.after {
        Some(after) => put(folder, &wanted.file, after, facts.as_ref())?,
        None => match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        },
    }
    File::open(folder)?.sync_all()
}

/// Writes a hidden file, which is read as no policy, and gives it its name when it is whole.
fn put(folder: &Path, name: &str, text: &str, like: Option<&std::fs::Metadata>) -> io::Result<()> {
    let hidden = folder.join(format!(".{name}.new"));
    let _ = std::fs::remove_file(&hidden);
    let written = write_whole(&hidden, text, like).and_then(|()| std::fs::rename(&hidden, folder.join(name)));
    if written.is_err() {
        let _ = std::fs::remove_file(&hidden);
    }
    written
}

fn write_whole(path: &Path, text: &str, like: Option<&std::fs::Metadata>) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    if let Some(like) = like {
        // Only a privileged process can give a file away; the mode is what matters.
        let _ = fchown(&file, Some(like.uid()), Some(like.gid()));
    }
    let mode = like.map_or(NEW_FILE, |like| like.permissions().mode() & 0o7777);
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(before: Option<&str>, after: Option<&str>) -> Replacement {
        Replacement {
            file: "a.yaml".to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_keeps_its_mode_and_leaves_its_text_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "one").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(folder.path(), &wanted(Some("one"), Some("two"))).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            (read("a.yaml"), read("a.yaml.bak")),
            ("two".to_owned(), "one".to_owned())
        );
        assert_eq!(
            (mode(&path), mode(&folder.path().join("a.yaml.bak"))),
            (0o640, 0o640)
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        restore(folder.path(), &wanted(Some("one"), Some("two"))).unwrap();
        assert_eq!((read("a.yaml"), mode(&path)), ("one".to_owned(), 0o640));
    }

    #[test]
    fn a_file_is_made_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        replace(folder.path(), &wanted(None, Some("one"))).unwrap();
        assert_eq!(mode(&path), NEW_FILE);
        replace(folder.path(), &wanted(Some("one"), None)).unwrap();
        assert!(!path.exists());
        assert_eq!(
            std::fs::read_to_string(folder.path().join("a.yaml.bak")).unwrap(),
            "one"
        );
    }

    #[test]
    fn what_somebody_else_changed_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "other").unwrap();
        for before in [Some("one"), None] {
            let refused = replace(folder.path(), &wanted(before, Some("two")));
            assert!(matches!(refused, Err(FileRefused::Changed { .. })), "{refused:?}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "other");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_source_that_is_not_ours_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "one").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        let refused = |folder: &Path| {
            replace(folder, &wanted(Some("one"), Some("two")))
                .unwrap_err()
                .to_string()
        };
        assert!(refused(folder.path()).contains("read-only"));
        std::fs::rename(&path, folder.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", &path).unwrap();
        assert!(refused(folder.path()).contains("it is a link"));
        let outside = tempfile::tempdir().unwrap();
        let link = outside.path().join("current");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(folder.path().join("real"), &path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        std::fs::write(folder.path().join(".git"), "gitdir: elsewhere").unwrap();
        assert!(refused(&link).contains("fed from Git"));
    }
}

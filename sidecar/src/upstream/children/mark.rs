//! What the environment of a program says about where it comes from.

use std::path::Path;

use net::files::{self, FileError};
use uuid::Uuid;

/// The variable.
pub(super) const VARIABLE: &str = "TOOLGATE_RUN";
/// Where an installation's part of its marks is kept.
const FILE: &str = "programs";

/// The mark of this process: an installation, a process of it, and behind both the number of a run.
#[derive(Debug)]
pub(super) struct Mark {
    installation: String,
    process: String,
}

/// Whether an installation was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Programs of an earlier process may still run.
    Before,
    New,
}

impl Mark {
    /// A mark whose installation is kept in this directory.
    pub(super) fn kept_in(folder: &Path) -> Result<(Self, Found), FileError> {
        let path = folder.join(FILE);
        let kept = files::read_optional(&path)?.and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(installation) = kept.filter(|text| Uuid::parse_str(text).is_ok()) {
            return Ok((Self::of(installation), Found::Before));
        }
        let mark = Self::fresh();
        files::write_private(&path, mark.installation.as_bytes())?;
        Ok((mark, Found::New))
    }

    /// A mark of an installation that nobody knows.
    pub(super) fn fresh() -> Self {
        Self::of(random())
    }

    fn of(installation: String) -> Self {
        Self {
            installation,
            process: random(),
        }
    }

    /// What every mark of this installation begins with.
    pub(super) fn of_installation(&self) -> String {
        format!("{}.", self.installation)
    }

    /// What every mark of this process begins with.
    pub(super) fn of_process(&self) -> String {
        format!("{}.{}.", self.installation, self.process)
    }

    /// The mark of a run.
    pub(super) fn of_run(&self, number: u64) -> String {
        format!("{}{number}", self.of_process())
    }

    /// The run of this process that a mark names.
    pub(super) fn run(&self, mark: &str) -> Option<u64> {
        mark.strip_prefix(&self.of_process())?.parse().ok()
    }
}

fn random() -> String {
    Uuid::new_v4().simple().to_string()
}

//! The way of an edit to the task that owns the policy directory.

use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};

use super::file::{FileRefused, Replacement};
use crate::store::desired::Applied;
use crate::store::{Act, StoreError};

/// Edits that wait for the directory's owner; who comes later waits before the door.
const QUEUE: usize = 8;

/// The policy directory, as those see it who want a file of it changed.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    edits: mpsc::Sender<FileEdit>,
}

/// A change of one file, to be applied at once, with its record.
#[derive(Debug)]
pub(crate) struct FileEdit {
    pub(crate) wanted: Replacement,
    pub(crate) act: Act,
    pub(crate) done: oneshot::Sender<Result<Applied, EditFailed>>,
}

/// Why a file of the directory was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditFailed {
    /// The file was not written.
    #[error(transparent)]
    File(#[from] FileRefused),
    /// The documents were not stored; the file is as it was.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The control plane is going down.
    #[error("the control plane is shutting down")]
    Ended,
}

impl Directory {
    /// A directory, and where its owner takes edits from.
    pub(crate) fn new(path: PathBuf) -> (Self, mpsc::Receiver<FileEdit>) {
        let (edits, receiver) = mpsc::channel(QUEUE);
        (Self { path, edits }, receiver)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes one file and applies the directory; answers when the change is in force.
    ///
    /// # Errors
    /// When the file is not written, or its documents are not stored. Nothing has changed then.
    pub async fn edit(&self, wanted: Replacement, act: Act) -> Result<Applied, EditFailed> {
        let (done, answer) = oneshot::channel();
        let edit = FileEdit { wanted, act, done };
        self.edits.send(edit).await.map_err(|_| EditFailed::Ended)?;
        answer.await.map_err(|_| EditFailed::Ended)?
    }
}

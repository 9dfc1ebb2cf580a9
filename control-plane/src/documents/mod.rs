//! Policy documents of the configuration and of the policy directory, on their way into the store.

mod directory;
mod draft;
mod file;
mod folder;
mod watch;

pub use directory::{Directory, EditFailed};
pub use draft::{draft, split_documents};
pub use file::{FileRefused, Replacement, read_text};
pub(crate) use folder::Stamp;
pub use folder::{Folder, Reading};
pub(crate) use watch::{apply, keep_applied, kept, read, say, taken};

//! Policy documents of the configuration and of the policy directory, on their way into the store.

mod draft;
mod folder;
mod watch;

pub use draft::{draft, split_documents};
pub(crate) use folder::Stamp;
pub use folder::{Folder, Reading};
pub(crate) use watch::{apply, keep_applied, kept, read, say, taken};

//! Records on their way into the chain, how far they have come, and the signed statements of the chain's head.

mod checkpoint;
mod held;
mod ingest;
mod marks;
mod notice;
mod reader;
mod signed;
mod verify;

pub(crate) use checkpoint::keep_checkpoints;
pub(crate) use held::compare_with_held;
pub use ingest::{Ingest, IngestError};
pub use marks::Marks;
pub use notice::Notice;
pub(crate) use reader::{ChainItem, ChainReader, Part, signed};
pub(crate) use verify::{line, verify};

//! Records: lists, sessions, and the chain itself.

mod chain;
mod item;
mod list;
mod sessions;

pub(super) use chain::{checkpoints, export, gaps, keys, verify};
pub(super) use item::TraceItem;
pub(super) use list::{list, one};
pub(super) use sessions::{session, sessions};

//! Records: lists, sessions, and the chain itself.

mod again;
mod chain;
mod item;
mod list;
mod recorded;
mod sessions;

pub(super) use again::{as_tests, replayed, why};
pub(super) use chain::{checkpoints, export, gaps, keys, verify};
pub(super) use item::TraceItem;
pub(super) use list::{list, one};
pub(super) use sessions::{session, sessions};

//! Records: lists, sessions, and the chain itself.

mod item;

pub(super) use item::TraceItem;

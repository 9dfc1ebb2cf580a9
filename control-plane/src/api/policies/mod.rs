//! Policy documents: reading, editing, history.

mod document;
mod edit;
mod tool;
mod view;

pub(super) use document::{Belief, belief};
pub(super) use edit::{put, remove, rollback, validate};
pub(super) use tool::put_tool;
pub(super) use view::{etag, list, one, versions};

//! Policy documents: reading, editing, history.

mod document;
mod edit;
mod view;

pub(super) use document::{Belief, belief};
pub(super) use edit::{put, remove, rollback, validate};
pub(super) use view::{etag, list, one, versions};

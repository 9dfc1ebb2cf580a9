//! Policy documents: reading, editing, history.

mod document;
mod edit;
mod view;

pub(super) use edit::{put, remove, rollback, validate};
pub(super) use view::{list, one, versions};

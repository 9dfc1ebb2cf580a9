//! Tools: what upstreams declare, what policies decide about them, and their pins.

mod accept;
mod catalogue;
mod decisions;
mod pins;

pub(super) use accept::accept;
pub(super) use catalogue::{catalogue, list};
pub(super) use decisions::{classification_by_name, compiled, decisions, known_as, query};
pub(super) use pins::pins;

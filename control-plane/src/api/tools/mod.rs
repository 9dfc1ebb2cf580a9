//! Tools: what upstreams declare, what operators correct, what policies decide about them, and their pins.

mod accept;
mod catalogue;
mod classify;
mod correct;
mod coverage;
mod decisions;
mod extractor;
mod known;
mod pins;
mod said;

pub(super) use accept::accept;
pub(super) use catalogue::{list, one};
pub(super) use classify::classify;
pub(super) use correct::correct;
pub(super) use decisions::{classification_by_name, compiled, decisions, known_as, query};
pub(super) use extractor::{put_extractor, remove_extractor, try_extractor};
pub(super) use known::{Known, all, catalogue};
pub(super) use pins::pins;

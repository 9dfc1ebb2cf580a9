//! The trace chain: records, their links, checkpoints, and verification.
//!
//! Everything here is pure: no I/O of its own, no clock, no global state. What is hashed is the exact text that is
//! stored, made once; verification never serialises anything again.
//!
//! A record's way: its source (a sidecar, or the control plane) makes a [`record::SourceRecord`], numbers and links
//! it in its own chain ([`source::SourceChain`]); the writer of the chain puts `generation` and `seq` before it and
//! links it to the record before ([`link::ChainWriter`]); checkpoints ([`checkpoint`]) state the head under a
//! signature; [`verify`] says whether all of that still holds, and where it first does not.

mod canonical;
pub mod checkpoint;
pub mod hash;
pub mod link;
pub mod payload;
pub mod record;
pub mod source;
pub mod timestamp;
pub mod verify;
pub mod vocabulary;

#[cfg(test)]
mod tests;

//! What may run: policy documents, their compiled form, and the decision.
//!
//! This crate is pure: no I/O, no async, no clock (time is an argument), no global state.
//!
//! - [`yaml`] reads YAML with the position of every key and value, and collects [`yaml::Problem`]s.
//! - [`glob`] holds the patterns of the policy language.

pub mod glob;
pub mod nearest;
pub mod yaml;

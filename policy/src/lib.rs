//! What may run: policy documents, their compiled form, and the decision.
//!
//! This crate is pure: no I/O, no async, no clock (time is an argument), no global state.
//!
//! - [`yaml`] reads YAML with the position of every key and value, and collects [`yaml::Problem`]s.
//! - [`document`] is what an operator writes, fully typed; its JSON is what travels between the planes.
//! - [`glob`] holds the patterns of the policy language.
//! - [`compile`] makes a [`PolicySet`] that resolves and keeps plans.
//! - [`decide`] is the decision; [`evaluate`] is whether a rule holds, in three values.
//! - [`edit`] changes one tool's action in a document's text and leaves every other byte alone.
//! - [`foresee`] is what can be said about a tool before any call; [`explain`] says why a rule held or not.
//! - [`approval`] and [`stop`] are state machines.
//! - [`lint`], [`suite`], [`diff`], [`replay`] and [`why`] are the author's tools, over the tools of a [`catalogue`].
//! - [`draft`] is a first policy over tools that nobody has judged yet.
//! - [`grant`] lifts `human_approval` for a time.

pub mod approval;
pub mod catalogue;
pub mod compile;
pub mod decide;
pub mod diff;
pub mod document;
pub mod draft;
pub mod edit;
pub mod evaluate;
pub mod explain;
pub mod foresee;
pub mod glob;
pub mod grant;
pub mod lint;
pub mod nearest;
pub mod replay;
pub mod sample;
pub mod stop;
pub mod suite;
#[cfg(test)]
mod testing;
pub mod why;
pub mod yaml;

pub use compile::{InvalidPolicy, PolicySet};
pub use decide::{Call, Decision, Floor};
pub use document::{Action, Policy};
pub use foresee::ToolQuery;

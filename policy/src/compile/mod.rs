//! Policies become a set that decides fast.
//!
//! A set resolves a plan for each (namespace, agent, governed name): the rules that cover the name, in walking
//! order. Plans are kept in a bounded cache inside the set; a changed set starts with an empty one.

mod cache;
mod index;
mod plan;
mod set;

pub use set::{InvalidPolicy, PolicySet};

#[cfg(test)]
mod tests;

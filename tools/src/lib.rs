//! What a tool is and what a call of it means: names, exact JSON, fingerprints, the tool model and its
//! classification.
//!
//! Everything here is pure: no I/O, no clock, no global state. Outside bytes enter through
//! [`json::Document`], which accepts one reading of a message or none.

pub mod arguments;
pub mod classify;
pub mod decimal;
pub mod extract;
pub mod fingerprint;
pub mod id;
pub mod json;
pub mod model;
pub mod openapi;
pub mod operation;
pub mod patch;
pub mod program;
pub mod shell;
pub mod targets;

//! The data plane: proxies every tool call of the agents beside it, decides it locally, and reports what happened.

pub mod agent;
pub mod control;
pub mod gate;
pub mod identity;
pub mod registry;
pub mod spool;
pub mod upstream;

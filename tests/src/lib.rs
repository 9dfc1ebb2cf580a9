//! What the end-to-end tests share: processes, certificates, a Postgres of their own, an MCP client and an operator's client.
//!
//! Everything here is real: the programs are those of the build, the servers listen on loopback, and a test that cannot have what it
//! needs fails and says so.

pub mod agent;
pub mod fleet;
pub mod kubernetes;
pub mod ledger;
pub mod meter;
pub mod mischief;
pub mod operator;
pub mod process;
pub mod programs;
pub mod raw;
pub mod rest;
pub mod simulated;
pub mod up;
pub mod wait;

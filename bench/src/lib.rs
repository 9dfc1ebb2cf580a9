//! The programs behind `make bench`: an MCP server that only echoes, a load generator, and the driver that compares.
//!
//! Everything goes over loopback and ends by itself. Figures mean something only beside their conditions, so every
//! run prints both.

pub mod bound;
pub mod conditions;
pub mod connection;
pub mod echo;
pub mod error;
pub mod histogram;
pub mod load;
pub mod nginx;
pub mod pace;
pub mod parts;
pub mod planes;
pub mod postgres;
pub mod process;
pub mod records;
pub mod report;
pub mod request;
pub mod rest;
pub mod rounds;
pub mod simulated;

//! MCP towards agents, both eras at once on one endpoint: revisions 2024-11-05 to 2025-11-25, which begin with
//! `initialize`, and 2026-07-28, where every request stands for itself.

pub mod answer;
pub mod envelope;
pub mod error;
pub mod modern;
pub mod session;
pub(crate) mod splice;
pub mod version;

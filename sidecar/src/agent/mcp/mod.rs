//! MCP towards agents, both eras at once on one endpoint: revisions 2024-11-05 to 2025-11-25, which begin with
//! `initialize`, and 2026-07-28, where every request stands for itself.

pub mod answer;
mod batch;
mod call;
mod call_stream;
mod client;
pub mod denial;
mod dispatch;
pub mod envelope;
mod eras;
pub mod error;
pub(crate) mod hub;
mod legacy;
mod line;
mod list;
mod logs;
pub mod mailbox;
pub mod modern;
mod offers;
mod params;
mod questions;
mod request;
mod round_client;
pub mod rounds;
mod route;
pub mod serve;
pub mod session;
pub mod sessions;
pub(crate) mod splice;
pub mod stream;
mod subscribe;
pub mod tasks;
pub mod version;

//! The sources of tools: what a sidecar connects to, and how a governed call is forwarded.
//!
//! [`Upstreams`] owns one supervised connection per configured upstream. [`Upstream::call`] forwards one call and
//! passes the answer on as the raw bytes that came back; [`Upstream::catalogue`] is what the upstream declared.

mod asks;
mod audience;
mod beside;
mod call;
mod catalogue;
mod error;
mod log_level;
mod notice;
mod openapi;
mod origin;
mod retry;
#[cfg(test)]
pub(crate) mod scripted;
mod spec;
mod state;
mod upstreams;

pub mod children;
pub mod cli;
pub mod mcp;

pub use asks::Asks;
pub use audience::Audience;
pub use call::{AnswerKind, ForwardedIdentity, UpstreamAnswer, UpstreamRequest};
pub use catalogue::{DeclaredCatalogue, DeclaredEntry, DeclaredTool, Offers};
pub use cli::{CliSpec, CliUpstream};
pub use error::UpstreamError;
pub use log_level::LogLevel;
pub use mcp::Era;
pub use mcp::progress::with_progress_token;
pub use notice::Notice;
pub use openapi::{DocumentPlace, OpenApiSpec};
pub use origin::{Client, Origin, Party, Question, Reply};
pub use retry::RetryPolicy;
pub use spec::{HttpSpec, SourceSpec, SpecError, StdioSpec, TransportSpec, UpstreamLimits, UpstreamSpec};
pub use state::{Connection, UpstreamState};
pub use upstreams::{Applied, Upstream, Upstreams};

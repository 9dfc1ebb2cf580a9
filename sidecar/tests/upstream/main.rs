//! Upstreams against a small hand-written MCP server: both eras, both transports.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "test code"
)]

mod connections;
mod fixture;
mod http;
mod limits;
mod misbehaviour;
mod sse;
mod stdio;
mod support;

//! What agents talk to: MCP over Streamable HTTP, and REST.

pub mod attended;
pub mod body;
pub mod mcp;
pub mod sse;

//! OpenAPI documents (3.0, 3.1) and Swagger 2.0 as tools: what a document declares, and the request that a call becomes.
//!
//! [`import`] makes tools of a document, each with an input schema and a [`RequestTemplate`]. [`RequestTemplate::build`]
//! makes the request of one call. Neither does input or output; both are bounded in time and memory whatever the
//! document and the arguments are.

mod body;
mod document;
mod import;
mod names;
mod operation;
mod parameter;
mod request;
mod schema;
mod security;
mod selection;
mod server;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod tool;

pub use document::Version;
pub use import::{Import, ImportError, Imported, ImportedTool, LeftOut, import};
pub use request::{BuildError, Request};
pub use selection::{Selection, SelectionError};
pub use server::Base;
pub use template::RequestTemplate;

/// The largest document, in bytes of JSON.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;
/// Tools of one document.
pub const MAX_TOOLS: usize = 10_000;

//! OpenAPI services: their documents are read and kept, and calls become requests.
//!
//! What a document means and how a request is written is pure and lives in `tools::openapi`; here is what reads, sends and
//! waits. Every request goes through the guarded client.

mod answer;
mod call;
mod claims;
mod document;
mod kept;
mod spec;
mod supervisor;
#[cfg(test)]
mod tests;
mod upstream;
mod yaml;

pub(super) use claims::Claims;
pub use spec::{DocumentPlace, OpenApiSpec};
pub(super) use upstream::OpenApiUpstream;

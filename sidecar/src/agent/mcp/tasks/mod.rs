//! Tasks: those that this sidecar runs for its agents, and those that upstreams run.
//!
//! A call that waits for a person is a task of this sidecar for clients that speak tasks (`begin`, `own`), in the words of their
//! era (`words`): 2025-11-25 (basic/utilities/tasks) or the extension `io.modelcontextprotocol/tasks` of 2026-07-28. Tasks that
//! legacy upstreams begin keep their ids (`begun`); those of modern ones, and those that began here, get an id from here.

pub(super) mod begin;
mod begun;
pub(super) mod declared;
mod handle;
pub(super) mod of_client;
mod own;
mod serve;
#[cfg(test)]
mod tests;
mod words;

use bytes::Bytes;
use tools::json::Kind;

pub use begun::Tasks;
pub(super) use begun::note;
pub use own::OwnTasks;
pub(super) use serve::{heard, is_missing, missing, passed_on, serve};

use super::serve::Exchange;
use super::version::{self, Legacy, META_CAPABILITIES, VERSION_HEADER};

/// The extension of the modern era.
pub(super) const EXTENSION: &str = words::EXTENSION;

/// Whether a method is about tasks.
pub(super) fn concerns(method: &str) -> bool {
    method.starts_with("tasks/")
}

/// Whether the client speaks tasks: those of its revision, or the extension that it declares in its request.
pub(super) fn speaks(exchange: &Exchange<'_>) -> bool {
    if !exchange.is_modern {
        return revision(exchange).is_some_and(|revision| revision >= Legacy::V20251125);
    }
    version::meta(exchange.params)
        .and_then(|meta| meta.get(META_CAPABILITIES))
        .and_then(|capabilities| capabilities.get("extensions"))
        .and_then(|extensions| extensions.get(EXTENSION))
        .is_some_and(|declared| declared.kind() == Kind::Object)
}

/// The params of a question, which says of which task it is. None are empty.
pub(super) fn of_task(params: &Bytes, id: &str) -> Bytes {
    let params: &[u8] = if params.is_empty() { b"{}" } else { params };
    Bytes::from(words::related(params, id))
}

/// The revision of a legacy client: that of its session, else the one that its header names.
fn revision(exchange: &Exchange<'_>) -> Option<Legacy> {
    let named = || Legacy::parse(exchange.headers.get(VERSION_HEADER)?.to_str().ok()?);
    exchange.session.map(|session| session.version()).or_else(named)
}

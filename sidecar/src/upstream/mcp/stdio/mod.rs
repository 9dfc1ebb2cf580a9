//! MCP over the standard streams of a child process.

mod child;
mod lines;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::duplex::DuplexLink;
use super::failure::Failure;
use super::hearing::Hearing;
use crate::upstream::children::Children;
use crate::upstream::{StdioSpec, UpstreamLimits};

/// Starts the child. It ends with `stop`, or when [`DuplexLink::close`] is called.
pub(super) fn start(
    name: Arc<str>,
    spec: &StdioSpec,
    children: &Arc<Children>,
    limits: UpstreamLimits,
    hearing: Hearing,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<Arc<DuplexLink>, Failure> {
    let running = child::start(spec, children)?;
    Ok(DuplexLink::carried(
        name,
        limits,
        hearing,
        tasks,
        stop,
        |link, lines| child::attend(running, link, lines),
    ))
}

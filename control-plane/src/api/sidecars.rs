//! Sidecars and the join tokens by which they enrol.

use std::time::Duration;

use crate::auth::StreamKind;
use crate::core::Core;
use crate::store::sidecars::Sidecar;

/// Beyond this many sidecars heartbeats are written less often (see [`crate::rollout`]).
const FEW: usize = 500;
const SOON: Duration = Duration::from_secs(6);
const LATE: Duration = Duration::from_secs(25);

/// Whether the sidecar has a stream here, or was heard of by some replica a moment ago.
pub(super) fn is_connected(core: &Core, sidecar: &Sidecar, fleet: usize) -> bool {
    if sidecar.revoked.is_some() {
        return false;
    }
    let has_stream = core.sidecars.has_stream(StreamKind::Watch, &sidecar.id);
    let silence = if fleet > FEW { LATE } else { SOON };
    let since = core.primary.database_now().saturating_sub(sidecar.last_seen);
    has_stream || since < net::clock::micros(silence)
}

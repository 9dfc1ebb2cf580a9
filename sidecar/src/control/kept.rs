//! The last view and its lease on disk, so that a sidecar restarted during an outage goes on within the bounds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use net::clock::{Clock, micros};
use prost::Message;
use proto::v1;
use serde::{Deserialize, Serialize};

use super::Revision;
use super::credentials::{TrustedKeys, write_atomically};
use super::hex;
use super::lease::Lease;
use super::stops::StopSet;
use super::view::View;

/// The lease, and the stops that held with it.
#[derive(Debug, Serialize, Deserialize)]
struct KeptLease {
    /// Boot times of another boot say nothing.
    boot_id: String,
    asked_at_us: i64,
    read_age_ms: u64,
    generation: u64,
    number: u64,
    database_time: i64,
    stops_generation: u64,
    /// The bytes of `toolgate.v1.StopSet`.
    #[serde(with = "hex::text")]
    stops: Vec<u8>,
}

/// What an earlier process left.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) view: Option<View>,
    pub(super) lease: Option<Lease>,
    pub(super) stops: Option<StopSet>,
}

fn snapshot_path(dir: &Path) -> PathBuf {
    dir.join("snapshot.bin")
}

fn lease_path(dir: &Path) -> PathBuf {
    dir.join("lease.json")
}

fn checkpoint_path(dir: &Path) -> PathBuf {
    dir.join("checkpoint.bin")
}

/// Reads what was kept. What cannot be read or proven is left out, and said so.
pub(super) fn load(dir: &Path, keys: &TrustedKeys, clock: &Clock) -> Kept {
    let mut kept = Kept {
        view: read(&snapshot_path(dir)).and_then(|bytes| load_view(&bytes, keys)),
        ..Kept::default()
    };
    let lease = read(&lease_path(dir)).and_then(|bytes| serde_json::from_slice::<KeptLease>(&bytes).ok());
    if let Some(lease) = lease {
        kept.stops = v1::StopSet::decode(lease.stops.as_slice())
            .ok()
            .map(|stops| StopSet::new(stops, lease.stops_generation));
        kept.lease = (*clock.boot_id() == *lease.boot_id).then(|| Lease {
            asked_at: Duration::from_micros(u64::try_from(lease.asked_at_us).unwrap_or(0)),
            read_age: Duration::from_millis(lease.read_age_ms),
            revision: Revision {
                generation: lease.generation,
                number: lease.number,
            },
            database_time: lease.database_time,
        });
    }
    kept
}

fn load_view(bytes: &[u8], keys: &TrustedKeys) -> Option<View> {
    let read = v1::Full::decode(bytes).map_err(|error| error.to_string());
    let view = read.and_then(|full| View::from_full(&full, keys).map_err(|error| error.to_string()));
    view.inspect_err(|reason| tracing::error!(reason, "the kept snapshot is not used"))
        .ok()
}

fn read(path: &Path) -> Option<Vec<u8>> {
    match std::fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::error!(file = %path.display(), %error, "a kept file cannot be read");
            None
        }
    }
}

/// Keeps a view.
pub(super) fn save_view(dir: &Path, view: &View) -> std::io::Result<()> {
    write_atomically(&snapshot_path(dir), &view.to_full()?.encode_to_vec())
}

/// Keeps a lease with the stops that hold.
pub(super) fn save_lease(
    dir: &Path,
    lease: Option<&Lease>,
    stops: &StopSet,
    clock: &Clock,
) -> std::io::Result<()> {
    let kept = KeptLease {
        // Without a lease only the stops are worth keeping.
        boot_id: lease.map_or_else(String::new, |_| clock.boot_id().to_string()),
        asked_at_us: lease.map_or(0, |lease| micros(lease.asked_at)),
        read_age_ms: lease.map_or(0, |lease| {
            u64::try_from(lease.read_age.as_millis()).unwrap_or(u64::MAX)
        }),
        generation: lease.map_or(0, |lease| lease.revision.generation),
        number: lease.map_or(0, |lease| lease.revision.number),
        database_time: lease.map_or(0, |lease| lease.database_time),
        stops_generation: stops.generation(),
        stops: stops.to_wire().encode_to_vec(),
    };
    write_atomically(&lease_path(dir), &serde_json::to_vec(&kept)?)
}

/// Keeps the newest checkpoint.
pub(super) fn save_checkpoint(dir: &Path, notice: &v1::CheckpointNotice) -> std::io::Result<()> {
    write_atomically(&checkpoint_path(dir), &notice.encode_to_vec())
}

/// The newest checkpoint that was kept.
pub(super) fn load_checkpoint(dir: &Path) -> Option<v1::CheckpointNotice> {
    v1::CheckpointNotice::decode(read(&checkpoint_path(dir))?.as_slice()).ok()
}

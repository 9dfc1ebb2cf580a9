//! Applying the policy directory: at the start, and whenever it has changed.

use std::sync::Arc;
use std::time::Duration;

use policy::yaml::Problem;
use serde_json::json;

use super::folder::{Folder, Reading, Stamp};
use crate::core::Core;
use crate::store::desired::{Applied, OriginKind, PolicyDraft};
use crate::store::{Act, Store, StoreResult};

/// Between two looks; a change is applied when the look after it sees no further one.
const LOOK: Duration = Duration::from_millis(200);

/// Reads a directory without blocking those that share the thread.
pub(crate) async fn read(mut folder: Folder, taken: Vec<String>) -> Option<(Folder, Reading, Stamp)> {
    let read = tokio::task::spawn_blocking(move || {
        let stamp = folder.stamp();
        let reading = folder.read(&taken);
        (folder, reading, stamp)
    });
    read.await.ok()
}

/// The documents that the store keeps of the directory.
pub(crate) async fn kept(store: &dyn Store) -> StoreResult<Vec<PolicyDraft>> {
    let rows = store.policies().await?;
    let of_directory = rows
        .into_iter()
        .filter(|row| row.document.origin.kind() == OriginKind::Directory);
    Ok(of_directory.map(|row| row.document).collect())
}

/// The names that documents of other origins hold.
pub(crate) async fn taken(store: &dyn Store) -> StoreResult<Vec<String>> {
    let rows = store.policies().await?;
    let elsewhere = rows
        .into_iter()
        .filter(|row| row.document.origin.kind() != OriginKind::Directory);
    Ok(elsewhere.map(|row| row.document.name).collect())
}

/// Makes the documents of the directory be what it holds.
pub(crate) async fn apply(store: &dyn Store, reading: Reading) -> StoreResult<Applied> {
    let names: Vec<&str> = reading.drafts.iter().map(|draft| draft.name.as_str()).collect();
    let act = Act::new("mesh.policy_edit", "policy_dir", json!({"policies": names}));
    store
        .apply_policies(OriginKind::Directory, reading.drafts, act)
        .await
}

/// Watches the directory until the shutdown. `applied` is what it looked like when it was read last.
pub(crate) async fn keep_applied(core: Arc<Core>, mut folder: Folder, mut applied: Stamp) {
    let mut seen = applied.clone();
    loop {
        tokio::select! {
            () = core.shutdown.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        let Some((looked, stamp)) = look(folder).await else {
            return;
        };
        folder = looked;
        let is_quiet = stamp == seen;
        seen = stamp;
        if !is_quiet || seen == applied {
            continue;
        }
        let taken = match taken(&*core.store).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::error!(%error, "the policy directory is not applied yet");
                continue;
            }
        };
        let Some((looked, reading, stamp)) = read(folder, taken).await else {
            return;
        };
        folder = looked;
        say(&reading.problems);
        match apply(&*core.store, reading).await {
            Ok(done) => {
                tracing::info!(revision = %done.revision, changed = ?done.changed, removed = ?done.removed, "applied the policy directory");
                applied = stamp;
            }
            Err(error) => tracing::error!(%error, "the policy directory is not applied yet"),
        }
    }
}

async fn look(folder: Folder) -> Option<(Folder, Stamp)> {
    let looked = tokio::task::spawn_blocking(move || {
        let stamp = folder.stamp();
        (folder, stamp)
    });
    looked.await.ok()
}

pub(crate) fn say(problems: &[Problem]) {
    for problem in problems {
        tracing::error!(%problem, "a policy file is invalid; its last valid version stays in force");
    }
}

//! Applying the policy directory: at the start, and whenever it has changed.

use std::sync::Arc;
use std::time::Duration;

use policy::yaml::Problem;
use serde_json::json;
use tokio::sync::mpsc;

use super::directory::{EditFailed, FileEdit};
use super::file::{self, FileRefused, Replacement};
use super::folder::{Folder, Reading, Stamp};
use crate::core::Core;
use crate::store::desired::{Applied, OriginKind, PolicyDraft};
use crate::store::{Act, Store, StoreResult};

/// Between two looks; a change is applied when the look after it sees no further one.
const LOOK: Duration = Duration::from_millis(200);

/// Reads a directory without blocking those that share the thread.
pub(crate) async fn read(folder: Folder, taken: Vec<String>) -> Option<(Folder, Reading, Stamp)> {
    let reading = with(folder, move |folder| (folder.stamp(), folder.read(&taken)));
    let (folder, (stamp, reading)) = reading.await?;
    Some((folder, reading, stamp))
}

/// Does something with the folder without blocking those that share the thread. `None`: the process is ending.
async fn with<T: Send + 'static>(
    mut folder: Folder,
    work: impl FnOnce(&mut Folder) -> T + Send + 'static,
) -> Option<(Folder, T)> {
    let done = tokio::task::spawn_blocking(move || {
        let result = work(&mut folder);
        (folder, result)
    });
    done.await.ok()
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

/// Changes one file and reads the directory; a text that is not valid there is taken back.
fn rewrite(
    folder: &mut Folder,
    taken: &[String],
    wanted: &Replacement,
) -> Result<(Reading, Stamp), FileRefused> {
    file::replace(folder.path(), wanted)?;
    let stamp = folder.stamp();
    let reading = folder.read(taken);
    let problem = reading
        .problems
        .iter()
        .find(|problem| *problem.file == *wanted.file)
        .map(ToString::to_string);
    let Some(problem) = problem else {
        return Ok((reading, stamp));
    };
    file::restore(folder.path(), wanted)?;
    folder.read(taken);
    Err(FileRefused::Invalid {
        file: wanted.file.clone(),
        problem,
    })
}

/// Changes one file and applies the directory; a text that cannot be stored is taken back.
async fn edit(
    store: &dyn Store,
    folder: Folder,
    wanted: Replacement,
    act: Act,
) -> Option<(Folder, Result<(Applied, Stamp), EditFailed>)> {
    let taken = match taken(store).await {
        Ok(taken) => taken,
        Err(error) => return Some((folder, Err(error.into()))),
    };
    let asked = wanted.clone();
    let (folder, rewritten) = with(folder, move |folder| rewrite(folder, &taken, &asked)).await?;
    let (reading, stamp) = match rewritten {
        Ok(read) => read,
        Err(refused) => return Some((folder, Err(refused.into()))),
    };
    let stored = store
        .apply_policies(OriginKind::Directory, reading.drafts, act)
        .await;
    let error = match stored {
        Ok(applied) => return Some((folder, Ok((applied, stamp)))),
        Err(error) => error,
    };
    let (folder, restored) = with(folder, move |folder| file::restore(folder.path(), &wanted)).await?;
    let failed = match restored {
        Ok(()) => error.into(),
        Err(refused) => refused.into(),
    };
    Some((folder, Err(failed)))
}

/// Watches the directory until the shutdown, and edits it for those who ask. `applied` is what it looked like when it
/// was read last.
pub(crate) async fn keep_applied(
    core: Arc<Core>,
    mut folder: Folder,
    mut applied: Stamp,
    mut edits: mpsc::Receiver<FileEdit>,
) {
    let store = &*core.store;
    let mut seen = applied.clone();
    loop {
        tokio::select! {
            () = core.shutdown.cancelled() => return,
            Some(FileEdit { wanted, act, done }) = edits.recv() => {
                let Some((back, edited)) = edit(store, folder, wanted, act).await else { return };
                folder = back;
                let edited = edited.map(|(done, stamp)| {
                    (seen, applied) = (stamp.clone(), stamp);
                    done
                });
                // Who asked may be gone; what was asked is done all the same.
                drop(done.send(edited));
                continue;
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        let Some((back, stamp)) = with(folder, |folder| folder.stamp()).await else {
            return;
        };
        folder = back;
        let is_quiet = stamp == seen;
        seen = stamp;
        if !is_quiet || seen == applied {
            continue;
        }
        let taken = match taken(store).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::error!(%error, "the policy directory is not applied yet");
                continue;
            }
        };
        let Some((back, reading, stamp)) = read(folder, taken).await else {
            return;
        };
        folder = back;
        say(&reading.problems);
        match apply(store, reading).await {
            Ok(done) => {
                tracing::info!(revision = %done.revision, changed = ?done.changed, removed = ?done.removed, "applied the policy directory");
                applied = stamp;
            }
            Err(error) => tracing::error!(%error, "the policy directory is not applied yet"),
        }
    }
}

pub(crate) fn say(problems: &[Problem]) {
    for problem in problems {
        tracing::error!(%problem, "a policy file is invalid; its last valid version stays in force");
    }
}

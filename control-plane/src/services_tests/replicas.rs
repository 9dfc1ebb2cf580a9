//! Two replicas on one Postgres.

use std::time::Duration;

use proto::v1::approval_state::Status as State;
use proto::v1::approvals_client::ApprovalsClient;
use proto::v1::{OpenApprovalRequest, WatchApprovalsRequest};
use serde_json::json;

use super::approvals::{question, yes};
use super::plane::{LONG, Plane, policy, refusal};
use super::reports::{Reporter, records};
use super::watcher::Watcher;
use crate::Storage;
use crate::keys::hex;
use crate::store::Act;
use crate::store::stops::{StopDraft, StopScope};
use crate::testing::Cluster;

async fn two() -> (Cluster, Plane, Plane) {
    let cluster = Cluster::start().unwrap();
    let url = cluster.database("replicas").unwrap();
    let master = hex::random_secret().unwrap();
    let start = || {
        let (url, master) = (url.clone(), master.clone());
        Plane::start_with(move |options| {
            options.storage = Storage::Postgres { url };
            options.master_key = Some(master);
        })
    };
    let first = start().await;
    let second = start().await;
    (cluster, first, second)
}

#[tokio::test]
async fn edits_stops_and_approvals_cross_two_replicas() {
    let (_cluster, first, second) = two().await;
    let sidecar = first.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&second, &sidecar).await;
    first.put_policy(&policy("crossing", "a", "*")).await;
    watcher.until(|watcher| watcher.has_policy("crossing")).await;

    let draft = StopDraft {
        scope: StopScope::Agent("b".to_owned()),
        in_namespace: None,
        reason: "test".to_owned(),
        by: "test".to_owned(),
    };
    let made = first
        .store()
        .create_stop(draft, Act::new("mesh.stop", "test", json!({})))
        .await
        .unwrap();
    watcher
        .until(|watcher| watcher.stop_ids.contains(&made.stop.id))
        .await;

    let mut here = ApprovalsClient::new(first.channel.clone());
    let mut there = ApprovalsClient::new(second.channel.clone());
    let asked: OpenApprovalRequest = question("call-1", "a");
    let opened = here.open(sidecar.request(asked)).await.unwrap().into_inner();
    let request = WatchApprovalsRequest {
        after: 0,
        ids: vec![opened.id.clone()],
    };
    let mut events = here.watch(sidecar.request(request)).await.unwrap().into_inner();
    second
        .store()
        .resolve_approval(&opened.id, yes(), None)
        .await
        .unwrap();
    let approved = async { while events.message().await.unwrap().unwrap().status() != State::Approved {} };
    tokio::time::timeout(LONG, approved)
        .await
        .expect("the resolution in time");
    let joined = there
        .open(sidecar.request(question("call-2", "a")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((joined.id, joined.status), (opened.id, State::Approved.into()));
    first.plane.shutdown().await;
    second.plane.shutdown().await;
}

#[tokio::test]
async fn records_settle_over_either_replica_and_an_epoch_ends_on_both() {
    let (_cluster, first, second) = two().await;
    let sidecar = first.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&first, &sidecar).await;
    let sent = records(&sidecar, 4, "a");
    let mut here = Reporter::open(&first, &sidecar).await;
    here.send(1, &sent[..2]).await;
    here.until(|mark| mark.committed == 2).await;
    let mut there = Reporter::open(&second, &sidecar).await;
    there.send(1, &sent).await;
    there.until(|mark| mark.committed == 4).await;
    there.until(|mark| mark.settled == 4).await;

    second.resume(&sidecar).await.unwrap();
    assert_eq!(refusal(&watcher.end().await), "stale_epoch");
    first.plane.shutdown().await;
    second.plane.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_restored_in_place_begins_a_generation_under_running_replicas() {
    let (cluster, first, second) = two().await;
    let sidecar = first.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&second, &sidecar).await;
    let sent = records(&sidecar, 4, "a");
    let mut reporter = Reporter::open(&first, &sidecar).await;
    reporter.send(1, &sent[..2]).await;
    reporter.until(|mark| mark.settled == 2).await;
    let mut restoring = b"DROP SCHEMA public CASCADE; CREATE SCHEMA public;\n".to_vec();
    restoring.extend(cluster.tool("pg_dump", &["replicas"]).unwrap());
    reporter.send(1, &sent).await;
    reporter.until(|mark| mark.settled == 4).await;

    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let file = folder.path().join("dump.sql");
    std::fs::write(&file, restoring).unwrap();
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), readable).unwrap();
    let file = file.display().to_string();
    let restore = ["-q", "-1", "-d", "replicas", "-v", "ON_ERROR_STOP=1", "-f", &file];
    // The replicas go on meanwhile: what they have begun must end before the restore has its locks.
    tokio::task::block_in_place(|| cluster.tool("psql", &restore)).unwrap();

    watcher.until(|watcher| watcher.revision.generation == 2).await;
    // What the dump does not hold is sent again and is there once.
    let mut again = Reporter::open(&second, &sidecar).await;
    again.send(1, &sent).await;
    again.until(|mark| mark.settled == 4).await;
    first.plane.shutdown().await;
    second.plane.shutdown().await;
}

#[tokio::test]
async fn a_lease_tells_how_long_ago_the_primary_was_read() {
    let (cluster, first, second) = two().await;
    let sidecar = first.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&first, &sidecar).await;
    cluster.stop().unwrap();
    loop {
        let lease = watcher.heartbeat(b"n").await.lease.unwrap();
        if lease.read_age_ms >= 500 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop((first, second));
}

use super::{
    act,
    sidecars::enrolled,
    sources::{Source, verified},
    *,
};
use crate::{
    store::{Revision, StoreError, desired::Expected, records::RecordFilter},
    testing::Cluster,
};

#[tokio::test]
async fn a_dump_restored_into_another_database_begins_a_generation() {
    let fixture = Fixture::postgres("before_the_restore").await;
    let draft = desired::policy("a", "{}");
    fixture
        .store
        .put_policy(draft, Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    enrolled(&fixture, "s1").await;
    fixture
        .store
        .ingest(vec![Source::new("s1", 1).batch(3)])
        .await
        .unwrap();
    let cluster = shared_cluster();
    let dump = cluster.tool("pg_dump", &["-Fc", "before_the_restore"]).unwrap();
    let folder = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let file = folder.path().join("dump");
    std::fs::write(&file, dump).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let location = cluster.database("after_the_restore").unwrap();
    cluster
        .tool("pg_restore", &["-d", "after_the_restore", file.to_str().unwrap()])
        .unwrap();
    let restored = open(&location).await.unwrap();
    assert_eq!(restored.head().await.unwrap().revision, Revision::new(2, 0));
    verified(&*restored).await;
    let again = open(&location).await.unwrap();
    assert_eq!(again.head().await.unwrap().revision, Revision::new(2, 0));
    for store in [restored, again, fixture.store] {
        store.close().await;
    }
}

#[tokio::test]
async fn a_store_goes_on_after_a_restart_of_the_server() {
    let cluster = Cluster::start().unwrap();
    let store = open(&cluster.database("restarted").unwrap()).await.unwrap();
    store.append_act(act("mesh.note")).await.unwrap();
    cluster.stop().unwrap();
    assert!(store.head().await.is_err());
    cluster.boot().unwrap();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while store.head().await.is_err() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the store did not come back"
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(store.head().await.unwrap().revision.generation, 1);
    store.append_act(act("mesh.note")).await.unwrap();
    assert_eq!(store.records(RecordFilter::default()).await.unwrap().len(), 2);
    store.close().await;
}

#[tokio::test]
async fn an_edit_wakes_the_other_replica() {
    let fixture = Fixture::postgres("an_edit_wakes").await;
    let other = fixture.replica().await;
    let mut wake = other.wake(crate::store::Topic::Changes);
    let waited = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        let mut version = 0;
        loop {
            // The listener may still be connecting, so one edit may be too early.
            version += 1;
            let draft = desired::policy("a", &version.to_string());
            fixture
                .store
                .put_policy(draft, Expected::Any, act("mesh.policy_edit"))
                .await
                .unwrap();
            let soon = tokio::time::timeout(std::time::Duration::from_millis(200), wake.changed()).await;
            if soon.is_ok() {
                break;
            }
        }
    });
    waited.await.expect("no wake-up came");
    other.close().await;
    fixture.store.close().await;
}

#[tokio::test]
async fn an_unreachable_database_is_one_clear_line() {
    let error = open("postgres://someone:hunter2@127.0.0.1:1/toolgate")
        .await
        .err()
        .expect("nothing listens there");
    let line = error.to_string();
    assert!(matches!(error, StoreError::Unreachable { .. }));
    assert!(
        line.contains("toolgate at 127.0.0.1:1") && line.contains("database_url"),
        "{line}"
    );
    assert!(!line.contains("hunter2") && !line.contains('\n'), "{line}");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let cluster = shared_cluster();
    let location = cluster.database("newer_schema").unwrap();
    crate::store::migrate(&location).await.unwrap();
    cluster
        .tool(
            "psql",
            &[
                "-d",
                "newer_schema",
                "-c",
                "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (99, 'later', true, '', 0)",
            ],
        )
        .unwrap();
    let error = open(&location).await.err().expect("refused").to_string();
    assert!(error.contains("newer Toolgate"), "{error}");
}

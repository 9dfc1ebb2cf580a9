use std::time::Duration;

use serde_json::json;

use super::{Fixture, act};
use crate::store::{
    Revision, StoreError,
    desired::{Expected, GrantDraft, OriginKind, PolicyDraft, PolicyOrigin},
};

pub(super) fn policy(name: &str, body: &str) -> PolicyDraft {
    PolicyDraft {
        name: name.to_owned(),
        text: format!("name: {name} # {body}"),
        body: body.to_owned().into(),
        agents: vec!["support-*".to_owned()],
        namespaces: vec!["*".to_owned()],
        origin: PolicyOrigin::Api,
        problem: None,
    }
}

fn grant(duration: Duration) -> GrantDraft {
    GrantDraft {
        namespace: "default".to_owned(),
        agent: "claude".to_owned(),
        tools: vec!["notes.*".to_owned()],
        duration,
        reason: None,
        granted_by: "ada".to_owned(),
    }
}

pub(super) async fn a_policy_is_versioned_and_its_change_is_in_the_feed(fixture: &Fixture) {
    let store = &fixture.store;
    let before = store.head().await.unwrap().revision;
    let row = store
        .put_policy(policy("a", "{}"), Expected::Absent, act("mesh.policy_edit"))
        .await
        .unwrap();
    assert_eq!(row.version, 1);
    assert_eq!(row.revision, Revision::new(before.generation, before.number + 1));
    assert_eq!(store.head().await.unwrap().revision, row.revision);
    let changes = store.changes_after(before, 10).await.unwrap();
    assert_eq!(changes.len(), 1);
    let changed = &changes[0].resources[0];
    assert_eq!((changed.kind.as_str(), changed.name.as_str()), ("policy", "a"));
    assert!(changed.agents_before.is_empty());
    let view = store.desired_state().await.unwrap();
    assert_eq!(view.revision, row.revision);
    assert_eq!(changed.resource.as_ref(), view.resources.first());
    assert_eq!(changes[0].by, "ada");
    assert!(store.committed_at(row.revision).await.unwrap().is_some());
}

pub(super) async fn an_equal_document_takes_no_revision(fixture: &Fixture) {
    let store = &fixture.store;
    let first = store
        .put_policy(policy("a", "{}"), Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    let again = store
        .put_policy(policy("a", "{}"), Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    assert_eq!(first, again);
    assert_eq!(store.head().await.unwrap().revision, first.revision);
}

pub(super) async fn a_lost_update_is_refused(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .put_policy(policy("a", "1"), Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    store
        .put_policy(policy("a", "2"), Expected::Version(1), act("mesh.policy_edit"))
        .await
        .unwrap();
    let late = store
        .put_policy(policy("a", "3"), Expected::Version(1), act("mesh.policy_edit"))
        .await;
    assert!(matches!(
        late,
        Err(StoreError::Precondition {
            expected: 1,
            found: 2,
            ..
        })
    ));
    let absent = store
        .put_policy(policy("a", "3"), Expected::Absent, act("mesh.policy_edit"))
        .await;
    assert!(matches!(
        absent,
        Err(StoreError::Precondition {
            expected: 0,
            found: 2,
            ..
        })
    ));
    assert_eq!(store.policy("a").await.unwrap().document.body, "2");
}

pub(super) async fn an_earlier_version_comes_back_as_the_newest(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .put_policy(policy("a", "1"), Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    store
        .put_policy(policy("a", "2"), Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    let row = store
        .rollback_policy("a", 1, Expected::Version(2), act("mesh.policy_edit"))
        .await
        .unwrap();
    assert_eq!((row.version, row.document.body.as_ref()), (3, b"1".as_slice()));
    let missing = store
        .rollback_policy("a", 9, Expected::Any, act("mesh.policy_edit"))
        .await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
}

pub(super) async fn a_deleted_policy_keeps_its_history(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .put_policy(policy("a", "1"), Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    let before = store.head().await.unwrap().revision;
    store
        .delete_policy("a", Expected::Version(1), act("mesh.policy_edit"))
        .await
        .unwrap();
    assert!(matches!(
        store.policy("a").await,
        Err(StoreError::NotFound { .. })
    ));
    let change = store.changes_after(before, 10).await.unwrap().remove(0);
    assert_eq!(change.resources[0].resource, None);
    assert_eq!(change.resources[0].agents_before, ["support-*"]);
    let versions = store.policy_versions("a", 10).await.unwrap();
    assert_eq!(
        versions.iter().map(|version| version.deleted).collect::<Vec<_>>(),
        [true, false]
    );
    let again = store
        .put_policy(policy("a", "2"), Expected::Absent, act("mesh.policy_edit"))
        .await
        .unwrap();
    assert_eq!(again.version, 3);
}

fn in_file(name: &str, body: &str, index: u32) -> PolicyDraft {
    let origin = PolicyOrigin::Directory {
        file: "all.yaml".to_owned(),
        index,
    };
    PolicyDraft {
        origin,
        ..policy(name, body)
    }
}

pub(super) async fn a_directory_is_applied_as_one_revision(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .put_policy(policy("by-hand", "{}"), Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    let before = store.head().await.unwrap().revision;
    let set = vec![in_file("a", "1", 0), in_file("b", "1", 1), in_file("c", "1", 2)];
    let applied = store
        .apply_policies(OriginKind::Directory, set.clone(), act("mesh.policy_edit"))
        .await
        .unwrap();
    assert_eq!(applied.revision.number, before.number + 1);
    assert_eq!(applied.changed, ["a", "b", "c"]);
    let same = store
        .apply_policies(OriginKind::Directory, set, act("mesh.policy_edit"))
        .await
        .unwrap();
    assert_eq!((same.revision, same.changed.len()), (applied.revision, 0));
    let next = vec![in_file("a", "1", 0), in_file("b", "2", 1)];
    let next = store
        .apply_policies(OriginKind::Directory, next, act("mesh.policy_edit"))
        .await
        .unwrap();
    assert_eq!(
        (next.changed, next.removed),
        (vec!["b".to_owned()], vec!["c".to_owned()])
    );
    let changes = store.changes_after(before, 10).await.unwrap();
    assert_eq!(
        changes
            .iter()
            .map(|change| change.resources.len())
            .collect::<Vec<_>>(),
        [3, 2]
    );
    let names: Vec<String> = store
        .policies()
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.document.name)
        .collect();
    assert_eq!(names, ["a", "b", "by-hand"]);
    let only_first = store.changes_after(before, 1).await.unwrap();
    assert_eq!(only_first.len(), 1);
}

pub(super) async fn a_name_belongs_to_one_origin(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .put_policy(policy("a", "{}"), Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    let before = store.head().await.unwrap().revision;
    let set = vec![in_file("b", "1", 0), in_file("a", "1", 1)];
    let refused = store
        .apply_policies(OriginKind::Directory, set, act("mesh.policy_edit"))
        .await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })));
    assert_eq!(store.head().await.unwrap().revision, before);
}

pub(super) async fn concurrent_edits_commit_in_their_order(fixture: &Fixture) {
    let store = &fixture.store;
    let other = fixture.replica().await;
    let before = store.head().await.unwrap().revision;
    let edits = (0..20).map(|index| {
        let store = if index % 2 == 0 {
            store.clone()
        } else {
            other.clone()
        };
        async move {
            let draft = policy(&format!("p{index}"), "{}");
            store
                .put_policy(draft, Expected::Absent, act("mesh.policy_edit"))
                .await
                .unwrap()
                .revision
                .number
        }
    });
    let mut numbers = futures_util::future::join_all(edits).await;
    numbers.sort_unstable();
    let expected: Vec<u64> = (before.number + 1..=before.number + 20).collect();
    assert_eq!(numbers, expected);
    let changes = store.changes_after(before, 100).await.unwrap();
    assert_eq!(
        changes
            .iter()
            .map(|change| change.revision.number)
            .collect::<Vec<_>>(),
        expected
    );
    other.close().await;
}

pub(super) async fn a_grant_ends_by_the_clock_of_the_database(fixture: &Fixture) {
    let store = &fixture.store;
    let short = store
        .create_grant(grant(Duration::ZERO), act("mesh.grant"))
        .await
        .unwrap();
    let long = store
        .create_grant(grant(Duration::from_secs(600)), act("mesh.grant"))
        .await
        .unwrap();
    assert_eq!(long.grant.expires_at - long.created_at, 600_000_000);
    let live = store.grants(Some("default")).await.unwrap();
    assert_eq!(
        live.iter().map(|row| &row.grant.id).collect::<Vec<_>>(),
        [&long.grant.id]
    );
    let before = store.head().await.unwrap().revision;
    assert_eq!(store.sweep_grants().await.unwrap(), 1);
    assert_eq!(store.sweep_grants().await.unwrap(), 0);
    let changes = store.changes_after(before, 10).await.unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].resources[0].name, short.grant.id);
    assert!(store.grants(Some("elsewhere")).await.unwrap().is_empty());
}

pub(super) async fn a_grant_is_revoked_by_a_prefix(fixture: &Fixture) {
    let store = &fixture.store;
    let made = store
        .create_grant(grant(Duration::from_secs(600)), act("mesh.grant"))
        .await
        .unwrap();
    let prefix = made.grant.id.get(..6).unwrap();
    assert_eq!(
        store
            .revoke_grant(prefix, act("mesh.grant_revoke"))
            .await
            .unwrap()
            .grant,
        made.grant
    );
    assert!(matches!(
        store.revoke_grant(prefix, act("mesh.grant_revoke")).await,
        Err(StoreError::NotFound { .. })
    ));
    assert!(matches!(
        store.revoke_grant("", act("mesh.grant_revoke")).await,
        Err(StoreError::NotFound { .. })
    ));
}

pub(super) async fn a_setting_has_versions(fixture: &Fixture) {
    let store = &fixture.store;
    assert_eq!(store.setting("fleet").await.unwrap(), None);
    let first = store
        .put_setting("fleet", json!({"a": 1}), Expected::Absent, act("mesh.settings"))
        .await
        .unwrap();
    let same = store
        .put_setting("fleet", json!({"a": 1}), Expected::Any, act("mesh.settings"))
        .await
        .unwrap();
    assert_eq!(first, same);
    let next = store
        .put_setting(
            "fleet",
            json!({"a": 2}),
            Expected::Version(1),
            act("mesh.settings"),
        )
        .await
        .unwrap();
    assert_eq!(next.version, 2);
    assert_eq!(store.setting("fleet").await.unwrap(), Some(next));
    let view = store.desired_state().await.unwrap();
    assert_eq!(view.resources[0].body, r#"{"a":2}"#);
}

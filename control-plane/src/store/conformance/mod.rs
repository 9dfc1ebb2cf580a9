//! What every store does: one suite, run on SQLite and on Postgres.

mod approvals;
mod catalogue;
mod corrections;
mod desired;
mod generation;
mod keys_and_quotas;
mod records;
mod sidecars;
mod sources;
mod stops;

use std::sync::{Arc, Mutex, Weak};

use super::{Act, SharedStore, open};
use crate::testing::Cluster;

/// A store of its own for one test.
struct Fixture {
    store: SharedStore,
    location: String,
    _cluster: Option<Arc<Cluster>>,
    _folder: Option<tempfile::TempDir>,
}

impl Fixture {
    async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("toolgate.db").display().to_string();
        Self {
            store: open(&location).await.unwrap(),
            location,
            _cluster: None,
            _folder: Some(folder),
        }
    }

    async fn postgres(name: &str) -> Self {
        let cluster = shared_cluster();
        let location = cluster.database(name).unwrap();
        Self {
            store: open(&location).await.unwrap(),
            location,
            _cluster: Some(cluster),
            _folder: None,
        }
    }

    /// Another process on the same data.
    async fn replica(&self) -> SharedStore {
        open(&self.location).await.unwrap()
    }
}

/// One cluster for the tests that run at the same time; the last one stops it.
fn shared_cluster() -> Arc<Cluster> {
    static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let cluster = Arc::new(Cluster::start().unwrap());
        *shared = Arc::downgrade(&cluster);
        cluster
    })
}

fn act(name: &str) -> Act {
    Act::new(name, "ada", serde_json::json!({ "why": "a test" }))
}

macro_rules! conformance {
    ($($module:ident: $($name:ident),* $(,)?;)*) => {
        mod on_sqlite {
            $($(
                #[tokio::test]
                async fn $name() {
                    let fixture = super::Fixture::sqlite().await;
                    super::$module::$name(&fixture).await;
                    fixture.store.close().await;
                }
            )*)*
        }
        mod on_postgres {
            $($(
                #[tokio::test]
                async fn $name() {
                    let fixture = super::Fixture::postgres(stringify!($name)).await;
                    super::$module::$name(&fixture).await;
                    fixture.store.close().await;
                }
            )*)*
        }
    };
}

conformance! {
    desired:
        a_policy_is_versioned_and_its_change_is_in_the_feed,
        an_equal_document_takes_no_revision,
        a_lost_update_is_refused,
        an_earlier_version_comes_back_as_the_newest,
        a_deleted_policy_keeps_its_history,
        a_directory_is_applied_as_one_revision,
        a_name_belongs_to_one_origin,
        concurrent_edits_commit_in_their_order,
        a_grant_ends_by_the_clock_of_the_database,
        a_grant_is_revoked_by_a_prefix,
        a_setting_has_versions;
    catalogue:
        the_first_use_pins_an_upstream_whole,
        a_tool_without_a_prefix_is_one_upstreams,
        a_later_tool_is_new_and_a_different_one_changed,
        exactly_what_was_shown_is_accepted,
        each_sidecar_is_seen_with_its_version;
    corrections:
        a_correction_is_desired_state_under_a_revision,
        a_lost_update_of_a_correction_is_refused,
        a_correction_that_says_nothing_is_taken_away;
    approvals:
        the_same_question_joins_while_it_is_open,
        an_agent_has_only_so_many_questions_open,
        a_persons_no_answers_the_same_call_for_a_while,
        an_answer_is_given_once,
        two_racing_claims_have_one_winner,
        a_claim_is_refused_for_another_binding,
        deadlines_end_what_is_overdue,
        a_cancelled_call_cancels_its_question,
        the_feed_has_every_event_in_order,
        approvals_are_filtered_and_paged;
    stops:
        a_stop_ends_what_it_concerns,
        a_stopped_call_is_neither_opened_nor_claimed,
        a_suspended_grant_comes_back_with_the_time_it_had_left,
        a_stop_of_a_service_suspends_grants_for_its_tools_without_a_prefix,
        stops_have_an_order_of_their_own;
    sidecars:
        a_join_token_is_used_as_often_as_it_may_be,
        a_restarted_process_is_the_same_sidecar_with_a_new_epoch,
        a_revoked_sidecar_stays_a_tombstone,
        an_id_that_was_never_heard_of_enrols_anew_and_no_other,
        a_rollout_shows_who_applied_what;
    records:
        records_are_in_the_chain_exactly_once,
        a_hole_is_refused_and_changes_nothing,
        what_is_not_accepted_has_a_record_in_its_place_and_holds_up_nothing,
        a_governance_act_commits_with_its_change,
        two_writers_make_one_chain,
        a_checkpoint_settles_what_it_covers,
        a_checkpoint_that_contradicts_the_chain_is_refused,
        records_are_found_by_what_they_say,
        any_text_survives_storage,
        an_epoch_that_never_closed_is_a_gap;
    generation:
        a_new_generation_restarts_the_chain_and_loses_nothing,
        records_that_a_restore_lost_are_a_gap,
        a_generation_begins_once;
    keys_and_quotas:
        replicas_agree_on_one_key,
        a_lease_takes_nothing_twice,
        lots_given_out_elsewhere_count_once_and_for_what_is_left_of_their_minute,
        a_total_never_comes_back_by_itself;
}

/// What only Postgres can show.
mod only_on_postgres;

//! Limits of calls: across a fleet, with Redis, without it, and with Redis killed in the middle; and what an agent and an operator see of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use control_plane::testing::{RedisOptions, RedisServer};
use serde_json::json;
use tests::agent::Agent;
use tests::fleet::{Fleet, Sidecar, SidecarOptions};
use tests::up::Up;
use tests::wait;
use tokio::task::JoinSet;

const SIDECARS: usize = 10;
const PER_MINUTE: usize = 600;
const MINUTE: Duration = Duration::from_secs(60);
/// Beyond the minute, until the first calls have left the window.
const AND_SOME: Duration = Duration::from_secs(8);
/// Between the calls of one agent: what ten of them do in a second is a tenth of the time that the limit lasts.
const PACE: Duration = Duration::from_millis(50);
/// A second's worth of one agent's calls.
const LOT: usize = 20;
const POLICY: &str = "name: fleet\nagent: worker\nrate_limit: {max_per_minute: 600}\nrules:\n  - tools: ['*']\n    action: allow\n";

/// Two control planes on one database, ten sidecars, five at each.
async fn fleet(redis: Option<&RedisServer>) -> (Fleet, Vec<Sidecar>) {
    let mut extra = "loop:\n  max: 10000\n".to_owned();
    if let Some(redis) = redis {
        extra.push_str(&format!("redis_url: {}\n", redis.url()));
    }
    let fleet = Fleet::on_postgres(2, &extra).await;
    let mut sidecars = Vec::new();
    for number in 0..SIDECARS {
        let mut options = SidecarOptions::named(&format!("sidecar-{number}"));
        options.plane = number % 2;
        sidecars.push(fleet.sidecar(&options).await);
    }
    let revision = fleet.operator().put_policy("fleet", POLICY).await;
    fleet.operator().applied(&revision, 10).await;
    (fleet, sidecars)
}

/// When calls ran, since the first was made.
struct Ran {
    times: Vec<Duration>,
}

impl Ran {
    fn within(&self, from: Duration, until: Duration) -> usize {
        self.times
            .iter()
            .filter(|time| **time >= from && **time < until)
            .count()
    }
}

/// One agent, at all sidecars at once, calls as long as it takes to see a whole minute and what comes after it.
async fn call_for_a_minute(sidecars: &[Sidecar], so_far: &Arc<AtomicUsize>) -> Ran {
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for sidecar in sidecars {
        let agent = sidecar.stateless_agent("worker");
        callers.spawn(call_until(agent, begun, Arc::clone(so_far)));
    }
    let times = callers.join_all().await.concat();
    Ran { times }
}

async fn call_until(agent: Agent, begun: Instant, so_far: Arc<AtomicUsize>) -> Vec<Duration> {
    let (mut times, mut number) = (Vec::new(), 0);
    while begun.elapsed() < MINUTE + AND_SOME {
        number += 1;
        let (status, body) = agent.rest("fixture.get_item", json!({"id": number})).await;
        match status {
            200 => {
                times.push(begun.elapsed());
                so_far.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(PACE).await;
            }
            429 => {
                assert_eq!(body["reason"], "rate_limited", "{body}");
                let wait = body["retry_after_ms"].as_u64().unwrap();
                assert!(wait <= 60_000, "{body}");
                tokio::time::sleep(Duration::from_millis(wait.clamp(50, 500))).await;
            }
            other => panic!("{other}: {body}"),
        }
    }
    times
}

/// The first minute holds no lot from before: what ran in it is what was leased in it.
fn assert_held(ran: &Ran, most: usize) {
    let first = ran.within(Duration::ZERO, MINUTE);
    eprintln!("{first} calls of {PER_MINUTE} ran in the first minute");
    assert!(first <= most, "{first} calls ran in a minute of {PER_MINUTE}");
    assert!(
        first >= PER_MINUTE * 9 / 10,
        "only {first} calls ran in a minute of {PER_MINUTE}"
    );
    assert!(
        ran.within(MINUTE - Duration::from_millis(500), MINUTE + AND_SOME) > 0,
        "what ran a minute ago makes room"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_redis_a_fleet_keeps_a_limit_together() {
    let redis = RedisServer::start(&RedisOptions::default()).unwrap();
    let (fleet, sidecars) = fleet(Some(&redis)).await;
    let ran = call_for_a_minute(&sidecars, &Arc::default()).await;
    assert_held(&ran, PER_MINUTE);
    let limits = fleet.operator_of(1).get("/limits?agent=worker").await;
    assert_eq!(limits[0]["counted_in"], "redis", "{limits}");
    assert_eq!(
        (&limits[0]["limit"], &limits[0]["kind"]),
        (&json!(600), &json!("per_minute"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_a_fleet_keeps_a_limit_through_its_database() {
    let (fleet, sidecars) = fleet(None).await;
    let ran = call_for_a_minute(&sidecars, &Arc::default()).await;
    assert_held(&ran, PER_MINUTE);
    let limits = fleet.operator().get("/limits").await;
    assert_eq!(limits[0]["counted_in"], "postgres", "{limits}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_keeps_a_limit_when_redis_is_killed_in_the_middle() {
    let mut redis = RedisServer::start(&RedisOptions::default()).unwrap();
    let (fleet, sidecars) = fleet(Some(&redis)).await;
    let so_far = Arc::new(AtomicUsize::new(0));
    let kill = async {
        wait::until("half of the limit is used", || async {
            (so_far.load(Ordering::SeqCst) >= PER_MINUTE / 2).then_some(())
        })
        .await;
        redis.kill();
        wait::until("both control planes count elsewhere", || async {
            let counted = async |index: usize| {
                let limits = fleet.operator_of(index).get("/limits").await;
                limits[0]["counted_in"] == "postgres"
            };
            (counted(0).await && counted(1).await).then_some(())
        })
        .await;
    };
    let (ran, ()) = tokio::join!(call_for_a_minute(&sidecars, &so_far), kill);
    // One lot for each sidecar: what one control plane gave out last is not yet known to the other.
    assert_held(&ran, PER_MINUTE + SIDECARS * LOT);
}

const ONE: &str = r#"
policies:
  - name: small
    agent: worker
    rate_limit: {max_per_minute: 4}
    rules:
      - tools: ["fixture.get_item"]
        action: allow
      - tools: ["*"]
        action: deny
  - name: budget
    agent: saver
    rate_limit: {max_total: 2}
    rules:
      - tools: ["fixture.get_item"]
        action: allow
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_told_when_it_may_go_on_and_an_operator_sets_it_back() {
    let up = Up::start(ONE).await;
    let agent = up.agent("worker").await;
    let call = async |number: u64| agent.rest("fixture.get_item", json!({"id": number})).await.0;
    assert_eq!((call(1).await, call(2).await), (200, 200));
    assert_eq!(agent.rest("fixture.write_item", json!({})).await.0, 403);
    assert_eq!(
        call(3).await,
        200,
        "the fourth attempt: one that is denied counts"
    );

    let response = agent
        .request(reqwest::Method::POST, "/tool/fixture.get_item")
        .json(&json!({"params": {"id": 4}}));
    let response = response.send().await.unwrap();
    assert_eq!(response.status(), 429);
    let seconds = response.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse::<u64>()
        .unwrap();
    let body: serde_json::Value = response.json().await.unwrap();
    let millis = body["retry_after_ms"].as_u64().unwrap();
    assert_eq!(
        (body["reason"].as_str(), millis.div_ceil(1000)),
        (Some("rate_limited"), seconds)
    );
    assert!(millis > 1_000 && millis <= 60_000, "{body}");

    let called = agent.call("fixture.get_item", json!({"id": 5})).await;
    assert_eq!(called.decision()["reason"], "rate_limited", "{}", called.answer);
    assert!(called.decision()["retry_after_ms"].as_u64().unwrap() <= 60_000);
    assert!(
        called.text().contains("Wait before the next call"),
        "{}",
        called.text()
    );

    let shown = up.json(&["limits", "list", "--agent", "worker"]).await;
    assert_eq!(
        (
            &shown[0]["policy"],
            &shown[0]["used"],
            &shown[0]["remaining"],
            &shown[0]["counted_in"]
        ),
        (&json!("small"), &json!(4), &json!(0), &json!("memory"))
    );
    assert_eq!(
        up.toolgate(&["limits", "reset"]).await.code,
        2,
        "whose is to be said"
    );
    let reset = up.toolgate(&["limits", "reset", "--agent", "worker"]).await;
    assert_eq!((reset.code, reset.stdout.trim()), (0, "one limit was set back"));
    wait::until("the agent may call again", || async {
        (call(6).await == 200).then_some(())
    })
    .await;
    let records = up.operator().get("/traces?kind=act&limit=100").await;
    let acts: Vec<_> = records
        .as_array()
        .unwrap()
        .iter()
        .map(|act| act["tool"].as_str())
        .collect();
    assert!(acts.contains(&Some("mesh.limits_reset")), "{acts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_total_ends_calls_until_it_is_reset() {
    let up = Up::start(ONE).await;
    let agent = up.agent("saver").await;
    let call = async |number: u64| agent.rest("fixture.get_item", json!({"id": number})).await;
    assert_eq!((call(1).await.0, call(2).await.0), (200, 200));
    let (status, body) = call(3).await;
    assert_eq!((status, &body["reason"]), (429, &json!("rate_limited")));
    assert!(
        body.get("retry_after_ms").is_none(),
        "waiting does not help: {body}"
    );
    let shown = up.json(&["limits", "list", "--policy", "budget"]).await;
    assert_eq!(
        (&shown[0]["kind"], &shown[0]["used"]),
        (&json!("total"), &json!(2))
    );
    up.json(&["limits", "reset", "--policy", "budget"]).await;
    assert_eq!(call(4).await.0, 200);
}

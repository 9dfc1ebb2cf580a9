//! How long a sidecar goes on without its control plane.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::agent::Agent;
use tests::fleet::{Fleet, Sidecar, SidecarOptions};
use tests::wait;

const EVERYBODY: &str = "name: everybody\nagent: '*'\nrules:\n  - tools: ['*']\n    action: allow\n";
const READ: &str = "fixture.get_item";
const WRITE: &str = "fixture.write_item";

struct Outage {
    fleet: Fleet,
    sidecar: Sidecar,
    agent: Agent,
    /// Number of the revision with the policy.
    revision: u64,
    /// Calls that ran.
    ran: usize,
}

impl Outage {
    async fn new(write: Duration, read: Duration) -> Self {
        let extra = format!(
            "loop:\n  max: 10000\nstaleness:\n  write: {}s\n  read: {}s\n",
            write.as_secs(),
            read.as_secs()
        );
        let fleet = Fleet::on_sqlite(&extra).await;
        let sidecar = fleet.sidecar(&SidecarOptions::named("cut-off")).await;
        let revision = fleet.operator().put_policy("everybody", EVERYBODY).await;
        fleet.operator().applied(&revision, 1).await;
        let agent = sidecar.stateless_agent("agent");
        Self {
            fleet,
            sidecar,
            agent,
            revision: revision.split_once('.').unwrap().1.parse().unwrap(),
            ran: 0,
        }
    }

    /// When the lease that is kept on disk was asked for, where it is of the revision with the policy.
    fn kept(&self) -> Option<i64> {
        let lease = std::fs::read_to_string(self.sidecar.folder.join("spool/lease.json")).ok()?;
        let lease: Value = serde_json::from_str(&lease).ok()?;
        (lease["number"].as_u64() >= Some(self.revision))
            .then(|| lease["asked_at_us"].as_i64())
            .flatten()
    }

    fn signal(&self, signal: Signal) {
        self.fleet.planes[0].process.signal(signal);
    }

    async fn call(&mut self, tool: &str) -> (u16, Value) {
        let answer = self.agent.rest(tool, json!({})).await;
        self.ran += usize::from(answer.0 == 200);
        answer
    }

    async fn assert_runs(&mut self, tool: &str) {
        let (status, body) = self.call(tool).await;
        assert_eq!(status, 200, "{tool}: {body}");
    }

    async fn assert_stale(&mut self, tool: &str) {
        let (status, body) = self.call(tool).await;
        assert_eq!(
            (status, &body["reason"]),
            (503, &json!("stale")),
            "{tool}: {body}"
        );
    }

    async fn until_runs(&mut self, tool: &str) {
        let agent = self.agent.clone();
        wait::until(&format!("{tool} runs"), || async {
            (agent.rest(tool, json!({})).await.0 == 200).then_some(())
        })
        .await;
        self.ran += 1;
    }

    /// Calls a tool until it is refused as stale. No call that begins `bound` after the outage's begin may run.
    async fn until_stale(&mut self, tool: &str, since: Instant, bound: Duration) {
        let agent = self.agent.clone();
        let ran = wait::until(&format!("{tool} is refused as stale"), {
            let ran = std::cell::Cell::new(0);
            move || {
                let (agent, begun) = (agent.clone(), since.elapsed());
                let so_far = ran.get();
                ran.set(so_far + 1);
                async move {
                    let (status, body) = agent.rest(tool, json!({})).await;
                    if status == 200 {
                        assert!(begun < bound, "{tool} ran {begun:?} after the last word");
                        return None;
                    }
                    assert_eq!(
                        (status, &body["reason"]),
                        (503, &json!("stale")),
                        "{tool}: {body}"
                    );
                    Some(so_far)
                }
            }
        })
        .await;
        self.ran += ran;
    }

    /// Every call that ran is in the chain once, and the chain verifies.
    async fn assert_recorded(&self) {
        let ran = self.sidecar.ran();
        let ran = ran.iter().filter(|line| line.starts_with("ran ")).count();
        assert_eq!(ran, self.ran, "the upstream ran what was answered");
        let operator = self.fleet.operator();
        let records = wait::until("what ran is in the chain", || async {
            let records = operator.all_records("agent=agent&outcome=ok").await;
            (records.len() >= ran).then_some(records)
        })
        .await;
        assert_eq!(records.len(), ran);
        let verified = operator.get("/traces/verify").await;
        assert_eq!(verified["valid"], true, "{verified}");
    }
}

#[tokio::test]
async fn without_its_control_plane_writes_stop_first_then_reads_and_all_come_back() {
    let (write, read) = (Duration::from_secs(6), Duration::from_secs(14));
    let mut outage = Outage::new(write, read).await;
    outage.until_runs(WRITE).await;
    outage.until_runs(READ).await;

    let since = Instant::now();
    outage.signal(Signal::SIGSTOP);
    outage.assert_runs(WRITE).await;
    outage.until_stale(WRITE, since, write).await;
    outage.assert_runs(READ).await;
    outage.until_stale(READ, since, read).await;
    outage.assert_stale(WRITE).await;

    outage.signal(Signal::SIGCONT);
    outage.until_runs(WRITE).await;
    outage.until_runs(READ).await;
    outage.assert_recorded().await;
}

#[tokio::test]
async fn a_sidecar_restarted_during_an_outage_goes_on_within_the_bounds() {
    let (write, read) = (Duration::from_secs(20), Duration::from_secs(28));
    let mut outage = Outage::new(write, read).await;
    // What it keeps on disk is a few seconds older than what it holds.
    let first = wait::until("a lease is kept on disk", || async { outage.kept() }).await;
    // The view is written before its lease, so it is there with the next one at the latest.
    wait::until("another lease is kept on disk", || async {
        outage.kept().filter(|kept| *kept != first)
    })
    .await;

    let since = Instant::now();
    outage.signal(Signal::SIGSTOP);
    outage.sidecar.restart();
    outage.until_runs(WRITE).await;
    outage.until_stale(WRITE, since, write).await;
    outage.assert_runs(READ).await;
    outage.until_stale(READ, since, read).await;

    outage.sidecar.restart();
    let agent = outage.agent.clone();
    wait::until("the sidecar answers again", || async {
        (agent.rest(READ, json!({})).await.0 > 0).then_some(())
    })
    .await;
    outage.assert_stale(READ).await;

    outage.signal(Signal::SIGCONT);
    outage.until_runs(WRITE).await;
    outage.until_runs(READ).await;
    outage.assert_recorded().await;
}

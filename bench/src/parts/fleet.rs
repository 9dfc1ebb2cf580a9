//! How fast an edit is in force on a fleet.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Extent;
use crate::error::{Result, unexpected};
use crate::histogram::Histogram;
use crate::planes::ControlPlane;
use crate::postgres::Cluster;
use crate::report::{Report, say, short};
use crate::simulated::{Applied, Simulated};

const SIDECARS: u32 = 100;
const PATIENCE: Duration = Duration::from_secs(30);
/// Between an edit and the next.
const PAUSE: Duration = Duration::from_millis(150);

/// Edits a policy again and again while simulated sidecars watch.
///
/// # Errors
/// When a part does not start, or an edit does not reach all.
pub async fn run(folder: &Path, extent: Extent, report: &mut Report) -> Result<()> {
    let cluster = Cluster::start()?;
    let plane = ControlPlane::start(folder, "control-plane-fleet", Some(&cluster.url())).await?;
    let token = plane.rest.join_token(SIDECARS).await?;
    let (sender, mut applied) = mpsc::channel(8_192);
    let mut watches = JoinSet::new();
    for number in 0..SIDECARS {
        let sidecar = Simulated::enrol(plane.grpc, &token, &format!("watcher-{number}")).await?;
        watches.spawn(sidecar.watch(sender.clone()));
    }
    drop(sender);
    for _ in 0..SIDECARS {
        next(&mut applied, &mut watches).await?;
    }
    say(&format!("  {SIDECARS} simulated sidecars hold a snapshot"));
    let (mut each, mut last, mut acknowledged) =
        (Histogram::default(), Histogram::default(), Histogram::default());
    for edit in 0..extent.edits {
        tokio::time::sleep(PAUSE).await;
        let begun = Instant::now();
        let revision = put(&plane, edit).await?;
        let mut latest = begun;
        for _ in 0..SIDECARS {
            let applied = next(&mut applied, &mut watches).await?;
            each.record(applied.at.saturating_duration_since(begun));
            latest = latest.max(applied.at);
        }
        last.record(latest.saturating_duration_since(begun));
        for latency in rollout(&plane, &revision).await? {
            acknowledged.record(latency);
        }
    }
    drop(applied);
    watches.shutdown().await;
    let conditions = format!(
        "{} edits of a 1 KB policy among 1,000; {SIDECARS} simulated sidecars in one process, one HTTP/2 connection each, which do not \
         compile what they get; {}; no TLS; everything on the same cores",
        extent.edits,
        cluster.describe()
    );
    tell(
        report,
        "PUT sent -> acknowledgement sent, per sidecar",
        "-",
        &each,
        &conditions,
    );
    tell(
        report,
        "PUT sent -> all 100 have sent it, per edit",
        "-",
        &last,
        &conditions,
    );
    let what = "committed -> acknowledged, as the control plane saw it, per sidecar";
    tell(report, what, "p99 <= 100 ms at 1,000", &acknowledged, &conditions);
    plane.process.end().await;
    Ok(())
}

fn tell(report: &mut Report, what: &str, target: &str, latencies: &Histogram, conditions: &str) {
    let of = |share| short(latencies.micros(share) / 1e3);
    let text = format!("p50 {} ms, p99 {} ms, worst {} ms", of(0.5), of(0.99), of(1.0));
    report.add(&format!("edit, {what}"), target, text, conditions);
}

async fn next(applied: &mut mpsc::Receiver<Applied>, watches: &mut JoinSet<Result<()>>) -> Result<Applied> {
    tokio::select! {
        biased;
        Some(applied) = applied.recv() => Ok(applied),
        Some(ended) = watches.join_next() => match ended.map_err(unexpected)? {
            Ok(()) => Err(unexpected("a watch ended")),
            Err(error) => Err(error),
        },
        () = tokio::time::sleep(PATIENCE) => Err(unexpected("an edit did not reach every simulated sidecar")),
    }
}

/// Edits the policy; the revision of the edit.
async fn put(plane: &ControlPlane, edit: usize) -> Result<String> {
    let mut text =
        format!("name: edited\nagent: \"*\"\nrules:\n  - {{tools: [\"edit{edit}.*\"], action: allow}}\n");
    for number in 0..16 {
        text.push_str(&format!(
            "  - {{tools: [\"some{number}.thing_{edit}_*\"], action: human_approval}}\n"
        ));
    }
    let answer = plane.rest.send("PUT", "/policies/edited", &text).await?;
    let revision = answer.get("revision").and_then(Value::as_str);
    revision
        .map(str::to_owned)
        .ok_or_else(|| unexpected("an edit has no revision"))
}

/// From the commit to each acknowledgement, once all are there.
async fn rollout(plane: &ControlPlane, revision: &str) -> Result<Vec<Duration>> {
    let begun = Instant::now();
    loop {
        let rollout = plane
            .rest
            .send("GET", &format!("/rollouts/{revision}"), "")
            .await?;
        if rollout.get("complete").and_then(Value::as_bool) == Some(true) {
            let sidecars = rollout.get("sidecars").and_then(Value::as_array);
            let latencies = sidecars.into_iter().flatten().filter_map(|sidecar| {
                let millis = sidecar.get("latency_ms")?.as_f64()?;
                Some(Duration::from_secs_f64(millis.max(0.0) / 1e3))
            });
            return Ok(latencies.collect());
        }
        if begun.elapsed() > PATIENCE {
            return Err(unexpected(format!(
                "rollout {revision} is not complete: {rollout}"
            )));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

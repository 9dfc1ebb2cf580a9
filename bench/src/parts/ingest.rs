//! How fast records get into the chain on Postgres, end to end.

use std::path::Path;
use std::time::Instant;

use tokio::task::JoinSet;

use super::Extent;
use crate::error::{Result, unexpected};
use crate::planes::ControlPlane;
use crate::postgres::Cluster;
use crate::records::Source;
use crate::report::{Report, say, short, spread};
use crate::simulated::Simulated;

const SIDECARS: u32 = 4;
const BATCH: usize = 1_000;

/// Reports records from simulated sidecars, several times.
///
/// # Errors
/// When a part does not start or a stream ends.
pub async fn run(folder: &Path, extent: Extent, report: &mut Report) -> Result<()> {
    let cluster = Cluster::start()?;
    let plane = ControlPlane::start(folder, "control-plane-postgres", Some(&cluster.url())).await?;
    let (mut rates, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..extent.rounds {
        let before = plane.process.cpu();
        let rate = once(&plane, extent.records).await?;
        cpu.push((plane.process.cpu() - before).as_secs_f64() * 1e6 / extent.records as f64);
        say(&format!("  {rate:.0} records/s"));
        rates.push(rate);
    }
    let conditions = format!(
        "{} records per round, {} rounds; {SIDECARS} simulated sidecars over Reports.Stream, batches of {BATCH}, a payload of 200 \
         bytes each; first batch sent to last committed watermark; one replica; {}; clients, control plane and Postgres on the same cores",
        extent.records,
        extent.rounds,
        cluster.describe()
    );
    report.add(
        "records into the chain, Postgres",
        ">= 50,000/s",
        spread(&rates, "records/s"),
        &conditions,
    );
    let cpu = format!("{} us", short(crate::report::median(cpu)));
    report.add("control plane CPU per record", "-", cpu, &conditions);
    plane.process.end().await;
    Ok(())
}

/// Records per second of one round, by fresh sidecars.
async fn once(plane: &ControlPlane, records: usize) -> Result<f64> {
    let token = plane.rest.join_token(SIDECARS).await?;
    let mut ready = Vec::new();
    for number in 0..SIDECARS {
        let sidecar = Simulated::enrol(plane.grpc, &token, &format!("reporter-{number}")).await?;
        let mut source = Source::new(&sidecar.id, sidecar.epoch)?;
        let batches = source.batches(records / SIDECARS as usize, BATCH)?;
        ready.push((sidecar, batches));
    }
    let begun = Instant::now();
    let mut streams = JoinSet::new();
    for (sidecar, batches) in ready {
        streams.spawn(sidecar.report(batches));
    }
    while let Some(done) = streams.join_next().await {
        done.map_err(unexpected)??;
    }
    Ok(records as f64 / begun.elapsed().as_secs_f64())
}

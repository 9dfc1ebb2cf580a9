//! What a rate limit costs: leases for each thousand calls, and the time that they take.

use std::path::Path;
use std::time::Duration;

use super::Extent;
use super::calls::echo;
use crate::bound::Bound;
use crate::error::{Result, unexpected};
use crate::load::open_loop;
use crate::planes::{ControlPlane, Home, Serves, opened};
use crate::report::{Report, short};
use crate::request::Era;

/// Limits far above the rates, so that no call is refused: lots are about a second's worth.
const POLICY: &str = "name: limited\nagent: bench\nrate_limit: {max_per_minute: 10000000}\nrules:\n  - {tools: [\"*.echo\"], action: allow}\n";
const CONNECTIONS: usize = 16;
const RATES: [u32; 3] = [10, 100, 2_000];
/// Rates that are slow need time to show how often is leased.
const LEAST: Duration = Duration::from_secs(5);

/// Calls at several rates under a limit.
///
/// # Errors
/// When a part does not start, or a call fails.
pub async fn run(folder: &Path, extent: Extent, report: &mut Report) -> Result<()> {
    let plane = ControlPlane::start(folder, "control-plane-limits", None).await?;
    let (_echo, upstream) = echo(folder, "echo-limits", 1).await?;
    let serves = Serves {
        agents: "*",
        url: format!("http://{upstream}/mcp"),
        others: false,
        program: false,
    };
    let home = Home::make(folder, "sidecar-limits", &plane, &serves).await?;
    let sidecar = home.start().await?;
    let call = opened(sidecar.address, Era::Modern, "echo.echo", None).await?;
    plane.rest.send("PUT", "/policies/limited", POLICY).await?;
    leased(&plane, &call, sidecar.address).await?;
    let mut first = 1_000_000;
    for rate in RATES {
        let time = Duration::from_secs_f64(extent.seconds).max(LEAST);
        let before = leases(&plane).await?;
        let outcome = open_loop(
            sidecar.address,
            &call.request(),
            first,
            rate,
            CONNECTIONS,
            Bound::time(time),
        )
        .await?;
        first += 1_000_000;
        let calls = outcome.latencies.total();
        if outcome.failed > 0 || calls == 0 {
            return Err(unexpected(format!(
                "{} calls under a limit failed",
                outcome.failed
            )));
        }
        let made = leases(&plane).await?.saturating_sub(before);
        let each_thousand = made as f64 * 1_000.0 / calls as f64;
        report.add(
            &format!("leases per 1,000 calls at {rate}/s"),
            "-",
            format!("{} ({made} for {calls} calls)", short(each_thousand)),
            "one agent at one sidecar, a limit that is never reached; windows in memory; loopback, no TLS",
        );
    }
    sidecar.process.end().await;
    plane.process.end().await;
    Ok(())
}

/// Calls until the limit is in force at the sidecar.
async fn leased(
    plane: &ControlPlane,
    call: &crate::request::Call,
    address: std::net::SocketAddr,
) -> Result<()> {
    for attempt in 0..200 {
        let bound = Bound::time(Duration::from_millis(50));
        open_loop(address, &call.request(), attempt * 1_000, 100, 1, bound).await?;
        if leases(plane).await? > 0 {
            return Ok(());
        }
    }
    Err(unexpected("no lot was leased under a limit"))
}

async fn leases(plane: &ControlPlane) -> Result<u64> {
    let text = plane.rest.text("/metrics").await?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("toolgate_quota_leases_total "));
    line.and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| unexpected("the control plane counts no leases"))
}

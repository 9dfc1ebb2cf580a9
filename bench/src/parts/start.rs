//! How fast a sidecar is ready, and what it costs when nothing happens.

use std::path::Path;
use std::time::Duration;

use super::Extent;
use super::calls::echo;
use crate::error::Result;
use crate::planes::{ControlPlane, Home, Serves, opened};
use crate::report::{Report, mebibytes, spread};
use crate::request::Era;

/// Starts and restarts small sidecars.
///
/// # Errors
/// When one does not start.
pub async fn run(folder: &Path, plane: &ControlPlane, extent: Extent, report: &mut Report) -> Result<()> {
    let (_echo, upstream) = echo(folder, "echo-small", 1).await?;
    let serves = Serves {
        agents: "bench",
        url: format!("http://{upstream}/mcp"),
        others: false,
        program: false,
    };
    let (mut first, mut kept, mut resident) = (Vec::new(), Vec::new(), 0);
    for round in 0..extent.rounds {
        let home = Home::make(folder, &format!("small-{round}"), plane, &serves).await?;
        let sidecar = home.start().await?;
        first.push(millis(sidecar.ready));
        opened(sidecar.address, Era::Modern, "echo.echo", None).await?;
        sidecar.process.end().await;
        let sidecar = home.start().await?;
        kept.push(millis(sidecar.ready));
        opened(sidecar.address, Era::Modern, "echo.echo", None).await?;
        if round + 1 == extent.rounds {
            tokio::time::sleep(Duration::from_secs(2)).await;
            resident = sidecar.process.resident();
        }
        sidecar.process.end().await;
    }
    let conditions = format!(
        "{} starts; 1 upstream, 1 tool, 2 policies in its snapshot; from fork to the first 200 of /readyz, looked at each 0.5 ms",
        extent.rounds
    );
    report.add(
        "sidecar ready, first fetch",
        "<= 100 ms",
        spread(&first, "ms"),
        &conditions,
    );
    report.add(
        "sidecar ready, kept snapshot",
        "<= 25 ms",
        spread(&kept, "ms"),
        &conditions,
    );
    report.add(
        "memory of a sidecar, idle",
        "<= 12 MiB",
        mebibytes(resident),
        "VmRSS 2 s after its first call; 1 upstream, 1 tool, 2 policies in its snapshot",
    );
    Ok(())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

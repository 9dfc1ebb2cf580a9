//! Keeps a sidecar busy and prints its process id, so that a profiler can be attached: `hold --seconds 10 --rate 2000`.

use std::time::Duration;

use bench::bound::Bound;
use bench::error::{During as _, Result};
use bench::load::{closed_loop, open_loop};
use bench::parts::calls::echo;
use bench::planes::{ControlPlane, Home, Serves, opened};
use bench::report::say;
use bench::request::Era;
use clap::{Parser, ValueEnum};

/// Time between the first call and the load, to attach.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Parser)]
struct Arguments {
    /// Seconds of load.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Connections of the agent.
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Calls per second; as many as the connections can take by default.
    #[arg(long)]
    rate: Option<u32>,
    /// What is called, and how.
    #[arg(value_enum, default_value_t = Kind::Modern)]
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// An upstream over HTTP, by a client of 2026-07-28.
    Modern,
    /// The same by a client of 2025-11-25.
    Legacy,
    /// An upstream over stdio.
    Stdio,
    /// An OpenAPI service.
    Openapi,
}

impl Kind {
    fn call(self) -> (Era, &'static str) {
        match self {
            Self::Modern => (Era::Modern, "echo.echo"),
            Self::Legacy => (Era::Legacy, "echo.echo"),
            Self::Stdio => (Era::Modern, "pipe.echo"),
            Self::Openapi => (Era::Modern, "rest.echo"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir().during("make a folder")?;
    let folder = folder.path();
    let plane = ControlPlane::start(folder, "control-plane", None).await?;
    let (_echo, upstream) = echo(folder, "echo", 500).await?;
    let serves = Serves {
        agents: "*",
        url: format!("http://{upstream}/mcp"),
        others: true,
        program: false,
    };
    let sidecar = Home::make(folder, "sidecar", &plane, &serves)
        .await?
        .start()
        .await?;
    let (era, tool) = arguments.kind.call();
    let call = opened(sidecar.address, era, tool, None).await?;
    say(&format!("sidecar: process {}", sidecar.process.id()));
    tokio::time::sleep(PAUSE).await;
    let bound = Bound::time(Duration::from_secs_f64(arguments.seconds.clamp(0.1, 600.0)));
    let (request, address, connections) =
        (call.request(), call.address, arguments.connections.clamp(1, 1024));
    let before = sidecar.process.cpu();
    let outcome = match arguments.rate {
        Some(rate) => open_loop(address, &request, 1_000, rate, connections, bound).await?,
        None => closed_loop(address, &request, 1_000, connections, bound).await?,
    };
    let calls = outcome.latencies.total();
    let cpu = sidecar.process.cpu().saturating_sub(before).as_secs_f64() * 1e6;
    say(&format!(
        "{calls} calls, {} failed, {:.0}/s, p50 {:.0} us, p99 {:.0} us, {:.1} us of CPU per call",
        outcome.failed,
        outcome.throughput(),
        outcome.latencies.micros(0.5),
        outcome.latencies.micros(0.99),
        cpu / calls.max(1) as f64
    ));
    sidecar.process.end().await;
    Ok(())
}

//! What a sidecar costs a call, against direct calls and nginx.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::Extent;
use crate::bound::Bound;
use crate::error::{During as _, Result, unexpected};
use crate::load::closed_loop;
use crate::nginx;
use crate::planes::{ControlPlane, Home, Serves, Sidecar, opened, program};
use crate::process::Process;
use crate::report::{Report, mebibytes, say, short, spread};
use crate::request::{Call, Era};
use crate::rounds::{Figure, RATE, Series, Way, rest};

/// REST requests to the echo server itself, and the same by way of a sidecar's tool.
const REST: &str = "REST";
const OPENAPI: &str = "sidecar, OpenAPI";
const LARGE: u64 = 1 << 20;
const MANY: usize = 256;
const TOOLS: usize = 500;
const SETTING: &str = "1,000 policies, the agent's with 20 rules and conditions; 500 tools; records on, `spool.sync: auto`; \
                       control plane on SQLite; everything on the same cores; loopback, no TLS";

/// Starts an echo server; its process and address.
///
/// # Errors
/// When it does not start.
pub async fn echo(folder: &Path, name: &str, tools: usize) -> Result<(Process, SocketAddr)> {
    let mut command = Command::new(program("echo-mcp")?);
    let address = crate::process::free_address()?;
    command
        .args(["http", "--tools", &tools.to_string()])
        .args(["--port", &address.port().to_string()]);
    let process = Process::start(name, command, folder)?;
    let begun = Instant::now();
    while tokio::net::TcpStream::connect(address).await.is_err() {
        if begun.elapsed() > Duration::from_secs(10) {
            return Err(unexpected("the echo server does not listen"));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok((process, address))
}

/// Runs the rounds and reports their medians.
///
/// # Errors
/// When something does not start, or calls fail.
pub async fn run(folder: &Path, plane: &ControlPlane, extent: Extent, report: &mut Report) -> Result<()> {
    let (_echo, upstream) = echo(folder, "echo", TOOLS).await?;
    let (nginx, proxied) = nginx::start(folder, upstream).await?;
    let serves = Serves {
        agents: "*",
        url: format!("http://{upstream}/mcp"),
        others: true,
        program: false,
    };
    let sidecar = Home::make(folder, "sidecar", plane, &serves)
        .await?
        .start()
        .await?;
    let calls = Calls::open(upstream, proxied, sidecar.address).await?;
    let ways = [
        Way::new("direct", &calls.direct, None),
        Way::new("nginx", &calls.nginx, Some(&nginx)),
        Way::new("sidecar", &calls.sidecar, Some(&sidecar.process)),
    ];
    let more = [
        Way::new("sidecar, legacy", &calls.legacy, Some(&sidecar.process)),
        Way::new("sidecar, stdio", &calls.stdio, Some(&sidecar.process)),
        Way::rest(REST, upstream, "/echo"),
        Way::new(OPENAPI, &calls.openapi, Some(&sidecar.process)),
    ];
    let large = [
        Way::new("direct, 1 MiB", &sized(&calls.direct), None),
        Way::new("nginx, 1 MiB", &sized(&calls.nginx), Some(&nginx)),
        Way::new("sidecar, 1 MiB", &sized(&calls.sidecar), Some(&sidecar.process)),
    ];
    let paused = Way::new("sidecar alone", &calls.sidecar, Some(&sidecar.process));
    let time = Duration::from_secs_f64(extent.seconds);
    let mut series = Series::default();
    let processes = [&plane.process, &sidecar.process];
    for round in 0..extent.rounds {
        say(&format!("round {} of {}", round + 1, extent.rounds));
        for way in turned(&ways, round).chain(&more) {
            rest(&processes).await;
            series.open(way, time).await?;
        }
        for connections in [1, 32] {
            for way in turned(&ways, round) {
                rest(&processes).await;
                series.closed(way, connections, time).await?;
            }
        }
        for way in turned(&large, round) {
            rest(&processes).await;
            series.closed(way, 1, time / 2).await?;
        }
        rest(&processes).await;
        plane.process.signal(Signal::SIGSTOP);
        let alone = series.closed(&paused, 32, time).await;
        plane.process.signal(Signal::SIGCONT);
        alone?;
    }
    rest(&processes).await;
    tell(&series, extent, report);
    memory(&sidecar, &calls.sidecar, report).await?;
    sidecar.process.end().await;
    nginx.end().await;
    Ok(())
}

/// The ways, each round beginning with another one.
fn turned<T>(ways: &[T], round: usize) -> impl Iterator<Item = &T> {
    ways.iter()
        .cycle()
        .skip(round % ways.len().max(1))
        .take(ways.len())
}

struct Calls {
    direct: Call,
    nginx: Call,
    sidecar: Call,
    legacy: Call,
    stdio: Call,
    openapi: Call,
}

impl Calls {
    async fn open(upstream: SocketAddr, proxied: SocketAddr, governed: SocketAddr) -> Result<Self> {
        Ok(Self {
            direct: opened(upstream, Era::Modern, "echo", None).await?,
            nginx: opened(proxied, Era::Modern, "echo", None).await?,
            sidecar: opened(governed, Era::Modern, "echo.echo", None).await?,
            legacy: opened(governed, Era::Legacy, "echo.echo", None).await?,
            stdio: opened(governed, Era::Modern, "pipe.echo", None).await?,
            openapi: opened(governed, Era::Modern, "rest.echo", None).await?,
        })
    }
}

fn sized(call: &Call) -> Call {
    Call {
        result_bytes: Some(LARGE),
        ..call.clone()
    }
}

fn tell(series: &Series, extent: Extent, report: &mut Report) {
    let conditions = format!(
        "median of {} interleaved rounds of {} s (lowest to highest); {SETTING}",
        extent.rounds, extent.seconds
    );
    // A call of a REST service is compared with a request to that service.
    let base = |way| if way == OPENAPI { REST } else { "direct" };
    let added = |way, figure| spread(&series.added(way, base(way), figure), "us");
    for (way, p50, p99) in [
        ("sidecar", "<= 100 us", "<= 300 us"),
        ("nginx", "-", "-"),
        ("sidecar, legacy", "<= 100 us", "<= 300 us"),
        ("sidecar, stdio", "<= 60 us", "-"),
        (OPENAPI, "-", "-"),
    ] {
        let what = format!("added at {RATE} calls/s: {way}");
        report.add(&format!("{what}, p50"), p50, added(way, Figure::P50), &conditions);
        report.add(&format!("{what}, p99"), p99, added(way, Figure::P99), &conditions);
    }
    let more = spread(&series.added("sidecar", "nginx", Figure::P50), "us");
    report.add("sidecar over nginx at p50", "<= 50 us", more, &conditions);
    for (what, way) in [("direct calls", "direct"), ("direct REST requests", REST)] {
        let direct = format!(
            "{} / {} us",
            short(series.median(way, Figure::P50)),
            short(series.median(way, Figure::P99))
        );
        report.add(&format!("{what}, p50 / p99"), "-", direct, &conditions);
    }
    for (way, at_32) in [
        ("direct", "-"),
        ("nginx", "-"),
        ("sidecar", ">= 25,000/s"),
        ("sidecar alone", ">= 25,000/s"),
    ] {
        for (connections, target) in [(1, "-"), (32, at_32)] {
            let values = series.of(way, Figure::Throughput(connections));
            if values.is_empty() {
                continue;
            }
            let what = format!("throughput, {connections} connections: {way}");
            report.add(&what, target, spread(values, "/s"), &conditions);
        }
    }
    for (way, target) in [
        ("nginx", "-"),
        ("sidecar", "<= 35 us"),
        ("sidecar alone", "<= 35 us"),
    ] {
        let values = series.of(way, Figure::Cpu(32));
        let what = format!("proxy CPU per call, 32 connections: {way}");
        report.add(&what, target, spread(values, "us"), &conditions);
    }
    for way in ["direct, 1 MiB", "nginx, 1 MiB", "sidecar, 1 MiB"] {
        let values: Vec<f64> = series
            .of(way, Figure::BusyP50(1))
            .iter()
            .map(|micros| micros / 1e3)
            .collect();
        report.add(
            &format!("p50 of a call: {way} result"),
            "-",
            spread(&values, "ms"),
            &conditions,
        );
    }
}

async fn memory(sidecar: &Sidecar, call: &Call, report: &mut Report) -> Result<()> {
    let request = call.request();
    let load = closed_loop(
        call.address,
        &request,
        90_000_000_000,
        MANY,
        Bound::time(Duration::from_secs(2)),
    );
    let middle = async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        sidecar.process.resident()
    };
    let (outcome, resident) = tokio::join!(load, middle);
    if outcome?.failed > 0 {
        return Err(unexpected("calls failed over 256 connections"));
    }
    report.add(
        "memory of a sidecar at 256 busy connections",
        "<= 40 MiB",
        mebibytes(resident),
        &format!("VmRSS after all rounds; {SETTING}"),
    );
    let size = std::fs::metadata(program("toolgate-sidecar")?)
        .during("read a size")?
        .len();
    report.add(
        "binary: sidecar",
        "<= 25 MB",
        mebibytes(size),
        "as built by this run's profile",
    );
    let size = std::fs::metadata(program("toolgate-control-plane")?)
        .during("read a size")?
        .len();
    report.add(
        "binary: control plane",
        "-",
        mebibytes(size),
        "as built by this run's profile",
    );
    Ok(())
}

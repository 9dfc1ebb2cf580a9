//! The same calls by several ways in turn, so that what the machine does meanwhile hits all of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::bound::Bound;
use crate::error::{Result, unexpected};
use crate::load::{Outcome, closed_loop, open_loop};
use crate::process::Process;
use crate::report::{median, say};
use crate::request::{Call, Request};

/// Calls per second of the open loop.
pub const RATE: u32 = 2_000;
const OPEN_CONNECTIONS: usize = 16;
const WARM_UP: Duration = Duration::from_millis(300);
/// The longest wait for processes to come to rest.
const REST: Duration = Duration::from_secs(60);

/// One way from the load generator to the echo server.
#[derive(Debug)]
pub struct Way<'a> {
    /// Its name in reports.
    pub name: &'static str,
    /// The proxy's process, where there is one.
    pub proxy: Option<&'a Process>,
    address: SocketAddr,
    request: Request,
}

impl<'a> Way<'a> {
    /// The way of a call.
    #[must_use]
    pub fn new(name: &'static str, call: &Call, proxy: Option<&'a Process>) -> Self {
        Self {
            name,
            proxy,
            address: call.address,
            request: call.request(),
        }
    }

    /// The way of a REST request to the server itself.
    #[must_use]
    pub fn rest(name: &'static str, address: SocketAddr, path: &str) -> Self {
        Self {
            name,
            proxy: None,
            address,
            request: Request::rest(address, path),
        }
    }
}

/// What is measured of one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Latency at [`RATE`], median, in microseconds.
    P50,
    /// Latency at [`RATE`], 99th percentile, in microseconds.
    P99,
    /// Results per second over this many busy connections.
    Throughput(usize),
    /// CPU time of the proxy per call in that load, in microseconds.
    Cpu(usize),
    /// Median latency over that many busy connections, in microseconds.
    BusyP50(usize),
}

/// The figures of all rounds, by way.
#[derive(Debug, Default)]
pub struct Series {
    values: BTreeMap<(&'static str, Figure), Vec<f64>>,
    calls: u64,
}

impl Series {
    /// A figure's values, one per round.
    #[must_use]
    pub fn of(&self, way: &'static str, figure: Figure) -> &[f64] {
        self.values.get(&(way, figure)).map_or(&[], Vec::as_slice)
    }

    /// A figure's median over the rounds.
    #[must_use]
    pub fn median(&self, way: &'static str, figure: Figure) -> f64 {
        median(self.of(way, figure).to_vec())
    }

    /// What one way adds to another, round by round.
    #[must_use]
    pub fn added(&self, way: &'static str, to: &'static str, figure: Figure) -> Vec<f64> {
        let pairs = self.of(way, figure).iter().zip(self.of(to, figure));
        pairs.map(|(with, without)| with - without).collect()
    }

    /// Calls at [`RATE`] by one way.
    ///
    /// # Errors
    /// When calls fail.
    pub async fn open(&mut self, way: &Way<'_>, time: Duration) -> Result<()> {
        let first = self.first();
        let (address, request) = (way.address, &way.request);
        for (first, time, is_warm) in [(first, WARM_UP, false), (first + u64::from(RATE), time, true)] {
            let bound = Bound::time(time);
            let outcome = open_loop(address, request, first, RATE, OPEN_CONNECTIONS, bound).await?;
            checked(way, &outcome)?;
            if is_warm {
                let (p50, p99) = (outcome.latencies.micros(0.5), outcome.latencies.micros(0.99));
                say(&format!(
                    "  {}: p50 {p50:.1} us, p99 {p99:.1} us at {RATE}/s",
                    way.name
                ));
                self.push(way, Figure::P50, p50);
                self.push(way, Figure::P99, p99);
            }
        }
        Ok(())
    }

    /// As many calls as `connections` take, by one way.
    ///
    /// # Errors
    /// When calls fail.
    pub async fn closed(&mut self, way: &Way<'_>, connections: usize, time: Duration) -> Result<()> {
        let first = self.first();
        let before = way.proxy.map(Process::cpu);
        let outcome = closed_loop(way.address, &way.request, first, connections, Bound::time(time)).await?;
        checked(way, &outcome)?;
        let throughput = outcome.throughput();
        let mut line = format!("  {}: {throughput:.0}/s over {connections} connections", way.name);
        self.push(way, Figure::Throughput(connections), throughput);
        self.push(way, Figure::BusyP50(connections), outcome.latencies.micros(0.5));
        if let (Some(proxy), Some(before)) = (way.proxy, before) {
            let calls = outcome.latencies.total().max(1) as f64;
            let cpu = (proxy.cpu() - before).as_secs_f64() * 1e6 / calls;
            line.push_str(&format!(", {cpu:.1} us of CPU per call"));
            self.push(way, Figure::Cpu(connections), cpu);
        }
        say(&line);
        Ok(())
    }

    fn push(&mut self, way: &Way<'_>, figure: Figure, value: f64) {
        self.values.entry((way.name, figure)).or_default().push(value);
    }

    /// Where a load begins to number its calls, so that no two loads send the same one.
    fn first(&mut self) -> u64 {
        self.calls += 100_000_000;
        self.calls
    }
}

fn checked(way: &Way<'_>, outcome: &Outcome) -> Result<()> {
    if outcome.failed > 0 || outcome.latencies.total() == 0 {
        return Err(unexpected(format!(
            "{}: {} of {} calls were not answered with a result",
            way.name,
            outcome.failed,
            outcome.failed + outcome.latencies.total()
        )));
    }
    Ok(())
}

/// Waits until processes use less than a twentieth of a core: what they still had to deliver is delivered.
pub async fn rest(processes: &[&Process]) {
    let begun = Instant::now();
    let used = || processes.iter().map(|process| process.cpu()).sum::<Duration>();
    while begun.elapsed() < REST {
        let before = used();
        tokio::time::sleep(Duration::from_millis(400)).await;
        if used() - before <= Duration::from_millis(20) {
            return;
        }
    }
    say("  (processes did not come to rest within a minute)");
}

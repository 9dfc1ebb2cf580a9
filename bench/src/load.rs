//! The two loads: calls at a given rate, and as many as some connections can take.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::bound::Bound;
use crate::connection::Connection;
use crate::error::{During as _, Result, unexpected};
use crate::histogram::Histogram;
use crate::pace::Pace;
use crate::request::Request;

/// How long answers may take after the last call was due.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a load saw.
#[derive(Debug, Default, Clone)]
pub struct Outcome {
    /// Latencies of calls that were answered with a result.
    pub latencies: Histogram,
    /// Calls that were answered with something else.
    pub failed: u64,
    /// From the first call to the last answer.
    pub elapsed: Duration,
}

impl Outcome {
    /// Results per second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.latencies.total() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn count(&mut self, is_result: bool, latency: Duration) {
        if is_result {
            self.latencies.record(latency);
        } else {
            self.failed += 1;
        }
    }
}

/// A kept connection with a request of its own to write numbers into.
struct Caller {
    connection: Connection,
    request: Request,
}

impl Caller {
    async fn open(address: SocketAddr, request: &Request) -> Result<Self> {
        let connection = Connection::open(address).await;
        Ok(Self {
            connection: connection.during(&format!("connect to {address}"))?,
            request: request.clone(),
        })
    }

    /// One call; whether a result came.
    async fn call(&mut self, number: u64) -> Result<bool> {
        let answer = self.connection.exchange(self.request.numbered(number)).await;
        Ok(self.request.is_answered_by(&answer.during("call")?))
    }

    /// One call whose latency counts from when it was due.
    async fn call_due(mut self, number: u64, due: Instant) -> Result<(Self, bool, Duration)> {
        let is_result = self.call(number).await?;
        Ok((self, is_result, due.elapsed()))
    }
}

/// Sends `rate` calls per second whether or not answers come, over at most `connections` connections. A call that has to
/// wait for a connection has been waiting since it was due, so nothing that a slow server holds back is left out.
///
/// # Errors
/// When a connection breaks, or answers do not come in time.
pub async fn open_loop(
    address: SocketAddr,
    request: &Request,
    first: u64,
    rate: u32,
    connections: usize,
    bound: Bound,
) -> Result<Outcome> {
    let limit = bound.time + PATIENCE;
    let load = paced(address, request, first, rate, connections, bound);
    tokio::time::timeout(limit, load)
        .await
        .map_err(|_| unexpected(format!("{address} did not answer within {limit:?}")))?
}

async fn paced(
    address: SocketAddr,
    request: &Request,
    first: u64,
    rate: u32,
    connections: usize,
    bound: Bound,
) -> Result<Outcome> {
    let interval = Duration::from_secs(1) / rate.max(1);
    let total = bound
        .calls
        .min((bound.time.as_secs_f64() * f64::from(rate)) as u64);
    let mut idle = Vec::with_capacity(connections);
    for _ in 0..connections {
        idle.push(Caller::open(address, request).await?);
    }
    let pace = Pace::start(interval).during("start a timer")?;
    let mut outcome = Outcome::default();
    let mut under_way = FuturesUnordered::new();
    let begun = Instant::now();
    let mut next = 0_u64;
    loop {
        while next < total {
            let due = begun + Duration::from_nanos(interval.as_nanos() as u64 * next);
            if due > Instant::now() {
                break;
            }
            let Some(caller) = idle.pop() else { break };
            under_way.push(caller.call_due(first + next, due));
            next += 1;
        }
        if next == total && under_way.is_empty() {
            break;
        }
        tokio::select! {
            biased;
            Some(done) = under_way.next(), if !under_way.is_empty() => {
                let (caller, is_result, latency) = done?;
                outcome.count(is_result, latency);
                idle.push(caller);
            }
            ticked = pace.tick(), if next < total && !idle.is_empty() => ticked.during("wait for a tick")?,
        }
    }
    outcome.elapsed = begun.elapsed();
    Ok(outcome)
}

/// Keeps each of `connections` connections busy: the next call goes out when the answer is there.
///
/// # Errors
/// When a connection breaks, or answers do not come in time.
pub async fn closed_loop(
    address: SocketAddr,
    request: &Request,
    first: u64,
    connections: usize,
    bound: Bound,
) -> Result<Outcome> {
    let limit = bound.time + PATIENCE;
    let load = busy(address, request, first, connections, bound);
    tokio::time::timeout(limit, load)
        .await
        .map_err(|_| unexpected(format!("{address} did not answer within {limit:?}")))?
}

async fn busy(
    address: SocketAddr,
    request: &Request,
    first: u64,
    connections: usize,
    bound: Bound,
) -> Result<Outcome> {
    let mut callers = Vec::with_capacity(connections);
    for _ in 0..connections {
        callers.push(Caller::open(address, request).await?);
    }
    let begun = Instant::now();
    let count = connections.max(1) as u64;
    let share = bound.calls / count;
    let mut loops: FuturesUnordered<_> = (0..count)
        .zip(callers)
        .map(|(position, caller)| one_busy(caller, first + position, count, share, begun + bound.time))
        .collect();
    let mut outcome = Outcome::default();
    while let Some(one) = loops.next().await {
        let one = one?;
        outcome.latencies.merge(&one.latencies);
        outcome.failed += one.failed;
    }
    outcome.elapsed = begun.elapsed();
    Ok(outcome)
}

async fn one_busy(mut caller: Caller, first: u64, step: u64, share: u64, end: Instant) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for turn in 0..share {
        let sent = Instant::now();
        if sent >= end {
            break;
        }
        let is_result = caller.call(first + turn * step).await?;
        outcome.count(is_result, sent.elapsed());
    }
    Ok(outcome)
}

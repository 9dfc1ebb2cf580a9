//! `load` calls one tool of an MCP server on loopback, at a rate or over busy connections, and prints what it saw.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use bench::bound::Bound;
use bench::error::{BenchError, During as _, Result};
use bench::load::{closed_loop, open_loop};
use bench::request::{Call, Era};
use clap::Parser;

/// A load generator for MCP over Streamable HTTP.
#[derive(Parser)]
struct Arguments {
    /// The server: a loopback address and port.
    address: SocketAddr,
    /// The tool to call.
    #[arg(long, default_value = "echo")]
    tool: String,
    /// Calls per second; 0: as many as the connections take.
    #[arg(long, default_value_t = 0)]
    rate: u32,
    /// Connections.
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// The longest it may take, in seconds.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// The most calls it may send.
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
    /// Bytes of the result's text.
    #[arg(long)]
    result_bytes: Option<u64>,
    /// Speak revision 2025-11-25 instead of 2026-07-28.
    #[arg(long)]
    legacy: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.address.ip().is_loopback() {
        return Err(BenchError::Unexpected(format!(
            "{} is not a loopback address; loads stay on this machine",
            arguments.address
        )));
    }
    let call = Call {
        address: arguments.address,
        era: if arguments.legacy {
            Era::Legacy
        } else {
            Era::Modern
        },
        tool: arguments.tool,
        result_bytes: arguments.result_bytes,
        session: None,
    };
    let request = call.request();
    let bound = Bound {
        calls: arguments.calls,
        time: Duration::from_secs_f64(arguments.seconds.clamp(0.0, 3600.0)),
    };
    let (address, connections) = (call.address, arguments.connections);
    let outcome = match arguments.rate {
        0 => closed_loop(address, &request, 0, connections, bound).await?,
        rate => open_loop(address, &request, 0, rate, connections, bound).await?,
    };
    let latencies = &outcome.latencies;
    writeln!(
        std::io::stdout(),
        "{} results, {} failed, {:.0}/s, p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us",
        latencies.total(),
        outcome.failed,
        outcome.throughput(),
        latencies.micros(0.5),
        latencies.micros(0.99),
        latencies.micros(0.999),
    )
    .during("print")
}

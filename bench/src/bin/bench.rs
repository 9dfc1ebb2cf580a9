//! `bench` measures what docs/performance.md says: it starts everything itself, on loopback, and ends by itself.

use std::path::PathBuf;

use bench::conditions::Conditions;
use bench::error::{During as _, Result};
use bench::parts::{self, Extent};
use bench::planes::ControlPlane;
use bench::report::{Report, say};
use clap::{Parser, ValueEnum};

/// The driver of `make bench`.
#[derive(Parser)]
struct Arguments {
    /// Parts to run; all by default.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// A short run that only shows that everything works; its figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Rounds of what is compared.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each load.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Where criterion left its results.
    #[arg(long, default_value = "target/criterion")]
    criterion: PathBuf,
    /// File for the table.
    #[arg(long)]
    table: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Start and idle memory of a sidecar.
    Start,
    /// Calls through a sidecar, through nginx, and direct.
    Calls,
    /// Calls of a program, and plain runs of it.
    Programs,
    /// Verification of a chain.
    Verification,
    /// Records into Postgres.
    Ingest,
    /// An edit and a fleet of simulated sidecars.
    Fleet,
    /// Leases of a rate limit.
    Limits,
    /// Results of the criterion benchmarks.
    Criterion,
}

impl Arguments {
    fn extent(&self) -> Extent {
        if self.quick {
            Extent {
                rounds: 2,
                seconds: 0.5,
                records: 20_000,
                edits: 5,
            }
        } else {
            Extent {
                rounds: self.rounds.max(1),
                seconds: self.seconds.clamp(0.1, 60.0),
                records: 200_000,
                edits: 50,
            }
        }
    }

    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let conditions = Conditions::read();
    say(&format!("conditions: {conditions}"));
    let folder = tempfile::Builder::new()
        .prefix("toolgate-bench-")
        .tempdir()
        .during("make a folder")?;
    let mut report = Report::default();
    let done = Box::pin(measure(&arguments, folder.path(), &mut report)).await;
    if done.is_err() {
        // The logs of what was started are in there.
        say(&format!("logs: {}", folder.keep().display()));
    }
    let table = format!("Conditions: {conditions}\n\n{}", report.table());
    say(&format!("\n{table}"));
    if let Some(file) = &arguments.table {
        std::fs::write(file, table).during("write the table")?;
    }
    done
}

async fn measure(arguments: &Arguments, folder: &std::path::Path, report: &mut Report) -> Result<()> {
    let extent = arguments.extent();
    if arguments.wants(Part::Criterion) {
        parts::criterion::run(&arguments.criterion, report);
    }
    if arguments.wants(Part::Verification) {
        parts::verification::run(folder, extent, report)?;
    }
    if [Part::Start, Part::Calls, Part::Programs]
        .into_iter()
        .any(|part| arguments.wants(part))
    {
        let plane = ControlPlane::start(folder, "control-plane", None).await?;
        if arguments.wants(Part::Start) {
            parts::start::run(folder, &plane, extent, report).await?;
        }
        if arguments.wants(Part::Calls) {
            parts::calls::run(folder, &plane, extent, report).await?;
        }
        if arguments.wants(Part::Programs) {
            parts::programs::run(folder, &plane, extent, report).await?;
        }
        plane.process.end().await;
    }
    if arguments.wants(Part::Ingest) {
        parts::ingest::run(folder, extent, report).await?;
    }
    if arguments.wants(Part::Fleet) {
        parts::fleet::run(folder, extent, report).await?;
    }
    if arguments.wants(Part::Limits) {
        parts::limits::run(folder, extent, report).await?;
    }
    Ok(())
}

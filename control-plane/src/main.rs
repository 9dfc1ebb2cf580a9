//! `toolgate-control-plane`: the central service as a process of its own.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use config::{Config, Environment};
use tracing_subscriber::EnvFilter;

/// Configuration or usage is wrong: nothing was started or changed.
const BAD_INPUT: u8 = 2;

/// Toolgate's control plane: policies, approvals, stops and the trace chain of a fleet.
#[derive(Parser)]
#[command(name = "toolgate-control-plane", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves operators and sidecars until SIGTERM.
    Run(File),
    /// Brings the database's schema to this version and ends.
    Migrate(File),
}

#[derive(Args)]
struct File {
    /// The configuration file. Without one: defaults and environment variables.
    #[arg(long, short, env = "TOOLGATE_CONFIG")]
    config: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_env("TOOLGATE_LOG")
        .unwrap_or_else(|_| EnvFilter::new("info,sqlx::postgres::notice=warn"));
    tracing_subscriber::fmt()
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let (Command::Run(file) | Command::Migrate(file)) = &arguments.command;
    let config = match load(file) {
        Ok(config) => config,
        Err(problems) => {
            say(&problems);
            return ExitCode::from(BAD_INPUT);
        }
    };
    let done = match arguments.command {
        Command::Run(_) => Box::pin(control_plane::run(&config, file.config.as_deref()))
            .await
            .map_err(|error| Failure::of_run(&error)),
        Command::Migrate(_) => Box::pin(control_plane::migrate(&config))
            .await
            .map_err(|error| Failure::of_start(&error)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure.message);
            ExitCode::from(failure.code)
        }
    }
}

struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    fn of_run(error: &control_plane::RunError) -> Self {
        match error {
            control_plane::RunError::Start(error) => Self::of_start(error),
            other => Self {
                message: other.to_string(),
                code: 1,
            },
        }
    }

    fn of_start(error: &control_plane::StartError) -> Self {
        let code = if matches!(error, control_plane::StartError::Policies(_)) {
            BAD_INPUT
        } else {
            1
        };
        Self {
            message: error.to_string(),
            code,
        }
    }
}

fn load(file: &File) -> Result<Config, String> {
    let environment = Environment::of_process();
    let config = match &file.config {
        Some(path) => Config::load_without_upstreams(path, &environment),
        None => Config::parse("(no file)", "", &environment),
    };
    config.map_err(|problems| {
        problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    })
}

fn say(message: &str) {
    // Nobody may be reading.
    let _ = writeln!(std::io::stderr(), "{message}");
}

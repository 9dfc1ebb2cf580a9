//! `toolgate-sidecar`: the data plane as a process of its own.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use config::{Config, Environment};
use tracing_subscriber::EnvFilter;

/// Configuration or usage is wrong: nothing was started or changed.
const BAD_INPUT: u8 = 2;

/// Toolgate's sidecar: decides and forwards the tool calls of the agents beside it.
#[derive(Parser)]
#[command(name = "toolgate-sidecar", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves agents until SIGTERM.
    Run(File),
}

#[derive(Args)]
struct File {
    /// The configuration file. Without one: defaults and environment variables.
    #[arg(long, short, env = "TOOLGATE_CONFIG")]
    config: Option<PathBuf>,
}

fn main() -> ExitCode {
    if sidecar::keep_if_asked() {
        return ExitCode::SUCCESS;
    }
    serve()
}

// One reactor for all calls; see `sidecar::run`.
#[tokio::main(flavor = "current_thread")]
async fn serve() -> ExitCode {
    let Command::Run(file) = Arguments::parse().command;
    let filter = EnvFilter::try_from_env("TOOLGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let config = match load(&file) {
        Ok(config) => config,
        Err(problems) => {
            say(&problems);
            return ExitCode::from(BAD_INPUT);
        }
    };
    match Box::pin(sidecar::run(&config, file.config.as_deref())).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            match error {
                sidecar::RunError::Start(sidecar::StartError::NoControlPlane) => ExitCode::from(BAD_INPUT),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn load(file: &File) -> Result<Config, String> {
    let environment = Environment::of_process();
    let config = match &file.config {
        Some(path) => Config::load(path, &environment),
        None => Config::parse("(no file)", "", &environment),
    };
    config.map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

fn say(message: &str) {
    // Nobody may be reading.
    let _ = writeln!(std::io::stderr(), "{message}");
}

//! The `toolgate` program.

mod args;
mod client;
mod commands;
mod connection;
mod demo;
mod error;
mod mcp;
mod output;
mod up;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use commands::{
    Context, approvals, classify, decide, discover, grants, limits, pins, policies, rollouts, settings,
    sidecars, stops, tokens, tools, traces,
};
use error::CliError;
use output::Printer;

fn main() -> ExitCode {
    if sidecar::keep_if_asked() {
        return ExitCode::SUCCESS;
    }
    // The demo's MCP server is a child of the demo: no option of ours concerns it.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "demo-notes")
        && let Some(folder) = arguments.next()
    {
        return finish(demo::notes::serve(folder.as_ref()));
    }
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return finish(Err(error.into())),
    };
    let outcome = runtime.block_on(run(cli));
    // A read of standard input cannot be interrupted and must not hold the exit.
    runtime.shutdown_background();
    finish(outcome)
}

fn finish(outcome: Result<(), CliError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&error.to_string());
            error.exit_code()
        }
    }
}

async fn run(cli: Cli) -> Result<(), CliError> {
    let global = cli.global;
    let context = || Context::new(&global);
    match cli.command {
        Command::Up(args) => up::run(&global, args).await,
        Command::Mcp(args) => mcp::run(&global, args).await,
        Command::Demo(args) => demo::run(args, global.output).await,
        Command::Classify(args) => classify::run(Printer::new(global.output), &args),
        Command::Discover(args) => Box::pin(discover::run(Printer::new(global.output), &args)).await,
        Command::Pending(args) => approvals::pending(&context()?, args).await,
        Command::Approve(args) => approvals::resolve(&context()?, args, "approve").await,
        Command::Deny(args) => approvals::resolve(&context()?, args, "deny").await,
        Command::Watch(args) => approvals::watch(&context()?, args).await,
        Command::Grant(command) => grants::run(&context()?, command).await,
        Command::Limits(command) => limits::run(&context()?, command).await,
        Command::Stop(args) => stops::stop(&context()?, args).await,
        Command::Resume(args) => stops::resume(&context()?, args).await,
        Command::Trace(command) => traces::run(&global, command).await,
        Command::Policy(command) => policies::run(&context()?, command).await,
        Command::Pins(command) => pins::run(&context()?, command).await,
        Command::Tools(command) => tools::run(&context()?, command).await,
        Command::Sidecars(command) => sidecars::run(&context()?, command).await,
        Command::Token(command) => tokens::run(&context()?, command).await,
        Command::Rollout(command) => rollouts::run(&context()?, command).await,
        Command::Decide(args) => decide::run(&context()?, &global, args).await,
        Command::Config(command) => settings::run(Printer::new(global.output), command),
    }
}

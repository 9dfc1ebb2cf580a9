//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::{
    approvals, classify, decide, discover, grants, limits, pins, policies, rollouts, settings, sidecars,
    stops, tokens, tools, traces,
};

/// Governs what AI agents may do with tools, for a whole fleet, from one place.
///
/// Exit codes: 0 done; 1 the answer is no (denied, chain damaged, rollout incomplete); 2 wrong usage, configuration or policy;
/// 3 the control plane cannot be reached; 4 it refused the credential; 5 any other error.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, propagate_version = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Keeps a command's own options apart from these in its help.
const EVERYWHERE: &str = "Options of every command";

/// Options that every command takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Global {
    /// Where the control plane's API is [default: a running `toolgate up` on this machine].
    #[arg(
        long,
        global = true,
        env = "TOOLGATE_CONTROL_URL",
        value_name = "URL",
        help_heading = EVERYWHERE
    )]
    pub(crate) url: Option<String>,
    /// Operator token [default: the one that `toolgate up` keeps on this machine].
    #[arg(
        long,
        global = true,
        env = "TOOLGATE_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true,
        help_heading = EVERYWHERE
    )]
    pub(crate) token: Option<String>,
    /// CA certificate (PEM) that the control plane's certificate is checked against.
    #[arg(
        long,
        global = true,
        env = "TOOLGATE_CA_CERT",
        value_name = "FILE",
        help_heading = EVERYWHERE
    )]
    pub(crate) ca_cert: Option<PathBuf>,
    /// Where `toolgate up` keeps its state [default: the XDG state directory].
    #[arg(
        long,
        global = true,
        env = "TOOLGATE_DATA_DIR",
        value_name = "DIR",
        help_heading = EVERYWHERE
    )]
    pub(crate) data_dir: Option<PathBuf>,
    /// How answers are printed.
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        default_value_t = OutputFormat::Text,
        help_heading = EVERYWHERE
    )]
    pub(crate) output: OutputFormat,
}

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Tables and sentences for people.
    Text,
    /// JSON, as the API answered: one document, or one a line where there are several.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run both planes on this machine, in one process, on one port.
    Up(UpArgs),
    /// Be an MCP server on stdio for a desktop agent, in front of a running `up`.
    Mcp(McpArgs),
    /// See one call allowed, one denied, one waiting for you, and the chain that recorded them.
    Demo(DemoArgs),
    /// List the calls that wait for a person.
    Pending(approvals::PendingArgs),
    /// Let a waiting call run, once.
    Approve(approvals::ResolveArgs),
    /// Refuse a waiting call.
    Deny(approvals::ResolveArgs),
    /// Show waiting calls as they come, and answer them.
    Watch(approvals::WatchArgs),
    /// Lift `human_approval` for an agent and tools for a time.
    #[command(subcommand)]
    Grant(grants::GrantCommand),
    /// See what agents have used of their rate limits, and set it back.
    #[command(subcommand)]
    Limits(limits::LimitsCommand),
    /// Stop everything, an agent, a session, an upstream or a namespace, now.
    Stop(stops::StopArgs),
    /// Lift a stop.
    Resume(stops::ResumeArgs),
    /// Read, follow, export and verify the trace chain.
    #[command(subcommand)]
    Trace(traces::TraceCommand),
    /// Read and change policies.
    #[command(subcommand)]
    Policy(policies::PolicyCommand),
    /// Review tools that appeared or changed since they were accepted.
    #[command(subcommand)]
    Pins(pins::PinsCommand),
    /// Read the catalogue, correct what is known of a tool, say how its targets are read.
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// See sidecars, make join tokens, revoke.
    #[command(subcommand)]
    Sidecars(sidecars::SidecarsCommand),
    /// Make, list and revoke the tokens of operators.
    #[command(subcommand)]
    Token(tokens::TokenCommand),
    /// See which sidecars applied a revision.
    #[command(subcommand)]
    Rollout(rollouts::RolloutCommand),
    /// See what a tool, or one call of it, is judged to do, and why. Asks nobody.
    Classify(classify::ClassifyArgs),
    /// Ask the configured upstreams for their tools: what each is judged to do, or a first policy over them.
    Discover(discover::DiscoverArgs),
    /// Ask what a call would be answered, without making it.
    Decide(decide::DecideArgs),
    /// Check a configuration file, print its schema.
    #[command(subcommand)]
    Config(settings::ConfigCommand),
}

#[derive(Args, Debug)]
pub(crate) struct UpArgs {
    /// The configuration file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct McpArgs {
    /// The agent that this process speaks for.
    #[arg(long, default_value = "desktop", value_name = "NAME")]
    pub(crate) agent: String,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Answer the question with yes, without waiting.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn every_command_can_be_parsed() {
        super::Cli::command().debug_assert();
    }
}

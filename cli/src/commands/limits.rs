//! `toolgate limits list | reset`.

use clap::{Args, Subcommand};

use super::{Context, with_query};
use crate::error::CliError;
use crate::output::{Column, field};

#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    /// What agents have used of their rate limits.
    List(Which),
    /// Set counters back to nothing: totals, and the minutes under way.
    Reset(ResetArgs),
}

#[derive(Args, Debug)]
pub(crate) struct Which {
    /// Only the limits of this policy.
    #[arg(long)]
    policy: Option<String>,
    /// Only agents in this namespace.
    #[arg(long)]
    namespace: Option<String>,
    /// Only this agent.
    #[arg(long)]
    agent: Option<String>,
}

#[derive(Args, Debug)]
#[group(id = "whose", required = true, multiple = true, args = ["policy", "namespace", "agent", "all"])]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    which: Which,
    /// Every limit of every agent.
    #[arg(long, conflicts_with_all = ["policy", "namespace", "agent"])]
    all: bool,
}

const COLUMNS: [Column; 7] = [
    Column::new("POLICY", |row| field(row, "policy")),
    Column::new("NAMESPACE", |row| field(row, "namespace")),
    Column::new("AGENT", |row| field(row, "agent")),
    Column::new("KIND", |row| field(row, "kind")),
    Column::new("USED", |row| field(row, "used")),
    Column::new("LIMIT", |row| field(row, "limit")),
    Column::new("COUNTED IN", |row| field(row, "counted_in")),
];

pub(crate) async fn run(context: &Context, command: LimitsCommand) -> Result<(), CliError> {
    match command {
        LimitsCommand::List(which) => {
            let answer = context.client.get(&path(which, false)).await?;
            context
                .printer
                .list(&answer, &COLUMNS, "nothing is used of any limit")
        }
        LimitsCommand::Reset(args) => {
            let answer = context.client.delete(&path(args.which, args.all)).await?;
            context
                .printer
                .answer(&answer, |limits| match limits.as_array().map(Vec::len) {
                    None | Some(0) => "nothing was used of these limits".to_owned(),
                    Some(1) => "one limit was set back".to_owned(),
                    Some(count) => format!("{count} limits were set back"),
                })
        }
    }
}

fn path(which: Which, all: bool) -> String {
    with_query(
        "/limits",
        &[
            ("policy", which.policy),
            ("namespace", which.namespace),
            ("agent", which.agent),
            ("all", all.then(|| "true".to_owned())),
        ],
    )
}

//! `toolgate discover`: connects to the configured upstreams, without serving anybody, and shows their tools or a draft of a
//! policy over them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use config::{Config, Environment};
use policy::draft::{Drafted, draft};
use sidecar::upstream::children::Children;
use sidecar::upstream::{Connection, DeclaredCatalogue, OpenApiSpec, SourceSpec, Upstream, Upstreams};
use tools::id::{AgentId, UpstreamName};
use tools::model::Tool;

use super::classify;
use crate::error::CliError;
use crate::output::{Printer, line, note};

/// How long each upstream has to declare its tools.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at whether it has failed.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[derive(Args, Debug)]
pub(crate) struct DiscoverArgs {
    /// The configuration that names the upstreams.
    #[arg(
        long,
        short,
        env = "TOOLGATE_CONFIG",
        value_name = "FILE",
        required_unless_present = "openapi"
    )]
    config: Option<PathBuf>,
    /// An OpenAPI document whose operations are shown too.
    #[arg(long, value_name = "URL|FILE")]
    openapi: Option<String>,
    /// Print a policy document instead: plain reads are allowed, everything else asks a person.
    #[arg(long)]
    generate_policy: bool,
    /// The agent that the policy is for.
    #[arg(
        long,
        default_value = "my-agent",
        value_name = "NAME",
        requires = "generate_policy"
    )]
    agent: String,
}

/// What an upstream turned out to have.
struct Found {
    upstream: String,
    tools: Vec<Tool>,
}

pub(crate) async fn run(printer: Printer, args: &DiscoverArgs) -> Result<(), CliError> {
    let agent: AgentId = args
        .agent
        .parse()
        .map_err(|error| CliError::Usage(format!("--agent {:?}: {error}", args.agent)))?;
    let specs = specs(args)?;
    let count = specs.len();
    let children = Children::of_process(None).map_err(|error| CliError::Failed(error.to_string()))?;
    let upstreams = Upstreams::with(children, specs);
    let read = futures_util::future::join_all(upstreams.all().iter().map(read)).await;
    upstreams.shutdown().await;
    let (found, missing) = sorted(read);
    for problem in &missing {
        note(problem);
    }
    if args.generate_policy {
        let drafted: Vec<Drafted<'_>> = found
            .iter()
            .map(|found| Drafted {
                upstream: &found.upstream,
                tools: found.tools.iter().collect(),
            })
            .collect();
        line(draft(agent.as_str(), &drafted).trim_end())?;
    } else {
        let tools: Vec<Tool> = found.into_iter().flat_map(|found| found.tools).collect();
        classify::all(printer, &tools)?;
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(CliError::Negative(format!(
            "{} of {} upstreams did not declare their tools",
            missing.len(),
            count
        )))
    }
}

/// What the configuration names, and the document that is given.
fn specs(args: &DiscoverArgs) -> Result<Vec<SourceSpec>, CliError> {
    let mut specs = Vec::new();
    if let Some(path) = &args.config {
        let config = Config::load(path, &Environment::of_process()).map_err(CliError::Problems)?;
        specs = SourceSpec::all_of(&config);
        if specs.is_empty() && args.openapi.is_none() {
            return Err(CliError::Usage(format!(
                "{} names no upstream; add one under mcp_servers or openapi",
                path.display()
            )));
        }
    }
    let document = args.openapi.as_deref().map(OpenApiSpec::to_look_at);
    specs.extend(document.map(SourceSpec::from));
    Ok(specs)
}

/// The upstream's catalogue once it has been read, or why it was not.
async fn read(upstream: &Upstream) -> Result<Arc<DeclaredCatalogue>, String> {
    let mut catalogue = upstream.catalogue();
    let reading = async {
        let read = catalogue.wait_for(|catalogue| catalogue.is_read).await;
        read.ok().map(|read| Arc::clone(&read))
    };
    let waited = tokio::select! {
        biased;
        read = tokio::time::timeout(PATIENCE, reading) => read.ok().flatten(),
        why = unreadable(upstream) => return Err(format!("{}: {why}", upstream.name())),
    };
    if let Some(read) = waited {
        return Ok(read);
    }
    let why = upstream.state().last_error;
    Err(format!(
        "{} did not declare its tools within {} s: {}",
        upstream.name(),
        PATIENCE.as_secs(),
        why.as_deref().unwrap_or("it does not answer")
    ))
}

/// Why there is nothing to wait for: the upstream cannot be used before its configuration changes, or its document could not be read.
/// Who looks at it now does not wait for a second try.
async fn unreadable(upstream: &Upstream) -> String {
    loop {
        let state = upstream.state();
        let is_document = state.transport == "openapi";
        match state.last_error {
            Some(why) if state.connection == Connection::Failed || is_document => return why,
            Some(_) | None => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

fn sorted(read: Vec<Result<Arc<DeclaredCatalogue>, String>>) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for one in read {
        match one.and_then(|catalogue| judged(&catalogue)) {
            Ok(judged) => found.push(judged),
            Err(problem) => missing.push(problem),
        }
    }
    (found, missing)
}

/// The usable tools of a catalogue; the others are named on standard error, as a sidecar would leave them out.
fn judged(catalogue: &DeclaredCatalogue) -> Result<Found, String> {
    let name: UpstreamName = catalogue
        .upstream
        .parse()
        .map_err(|error| format!("{:?} cannot be an upstream's name: {error}", catalogue.upstream))?;
    let mut tools = Vec::new();
    for declared in &catalogue.tools {
        let declaration = Arc::clone(&declared.declared);
        match Tool::declared_by(&name, catalogue.kind, catalogue.is_prefixed, declaration) {
            Ok(tool) => tools.push(tool),
            Err(error) => note(&format!("{name}: a declared tool is left out: {error}")),
        }
    }
    tools.sort_by(|one, other| one.name.as_str().cmp(other.name.as_str()));
    Ok(Found {
        upstream: name.to_string(),
        tools,
    })
}

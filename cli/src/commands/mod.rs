//! Operator commands: thin clients of the control plane's REST API.

pub(crate) mod approvals;
pub(crate) mod author;
pub(crate) mod classify;
pub(crate) mod decide;
pub(crate) mod discover;
pub(crate) mod grants;
pub(crate) mod limits;
pub(crate) mod pins;
pub(crate) mod policies;
pub(crate) mod rollouts;
pub(crate) mod settings;
pub(crate) mod sidecars;
pub(crate) mod stops;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod traces;
pub(crate) mod verify;

use crate::args::Global;
use crate::client::Client;
use crate::connection::Target;
use crate::error::CliError;
use crate::output::Printer;

/// What a command works with: the API and how answers are printed.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) printer: Printer,
}

impl Context {
    pub(crate) fn new(global: &Global) -> Result<Self, CliError> {
        Ok(Self {
            client: Client::new(Target::resolve(global)?)?,
            printer: Printer::new(global.output),
        })
    }
}

/// Goes on until Ctrl-C, which ends it well at any moment, in the middle of a request too.
pub(crate) async fn until_interrupted(
    work: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    tokio::select! {
        biased;
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(CliError::from),
        ended = work => ended,
    }
}

/// Appends `name=value` pairs that are present as a query.
pub(crate) fn with_query(path: &str, pairs: &[(&str, Option<String>)]) -> String {
    let mut query = String::new();
    for (name, value) in pairs {
        if let Some(value) = value {
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(name);
            query.push('=');
            query.push_str(&crate::client::segment(value));
        }
    }
    format!("{path}{query}")
}

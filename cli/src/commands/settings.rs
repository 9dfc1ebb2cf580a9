//! `toolgate config check | schema`.

use std::path::PathBuf;

use clap::Subcommand;
use config::{Config, Environment};

use crate::error::CliError;
use crate::output::{Printer, line};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Read a configuration as the programs do; every problem at once.
    Check {
        /// The configuration file.
        file: PathBuf,
    },
    /// Print the JSON Schema of the configuration, for editors.
    Schema,
}

pub(crate) fn run(printer: Printer, command: ConfigCommand) -> Result<(), CliError> {
    match command {
        ConfigCommand::Check { file } => {
            Config::load(&file, &Environment::of_process()).map_err(CliError::Problems)?;
            printer.answer(&serde_json::json!({"valid": true}), |_| {
                format!("{} is valid", file.display())
            })
        }
        ConfigCommand::Schema => {
            let schema = serde_json::to_string_pretty(&config::json_schema())
                .map_err(|error| CliError::Failed(error.to_string()))?;
            line(&schema)
        }
    }
}

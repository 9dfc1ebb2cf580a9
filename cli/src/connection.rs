//! Which installation a command speaks to: command line, environment, a named context, or the `up` of this machine.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::args::Global;
use crate::error::CliError;

/// Where `up` writes how it can be reached, inside its data directory.
pub(crate) const RUNNING_FILE: &str = "up.json";
/// The operator token that `up` makes at its first start, inside its data directory.
pub(crate) const TOKEN_FILE: &str = "admin-token";

/// Address and credential of a control plane.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) ca_cert: Option<PathBuf>,
}

/// What a running `up` says of itself.
#[derive(Debug, Deserialize)]
pub(crate) struct Running {
    pub(crate) url: String,
}

/// The data directory: given, or the XDG state directory.
pub(crate) fn data_dir(given: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")));
    state.map(|path| path.join("toolgate")).ok_or_else(|| {
        CliError::Usage("neither XDG_STATE_HOME nor HOME is set; name a folder by --data-dir".to_owned())
    })
}

/// How the running `up` of a data directory can be reached, if it wrote so.
pub(crate) fn running(data_dir: &Path) -> Option<Running> {
    let text = std::fs::read_to_string(data_dir.join(RUNNING_FILE)).ok()?;
    serde_json::from_str(&text).ok()
}

impl Target {
    /// Resolves in this order: options and environment, the `up` of the data directory, the default port.
    pub(crate) fn resolve(global: &Global) -> Result<Self, CliError> {
        let data_dir = data_dir(global.data_dir.as_deref());
        let local = data_dir.as_deref().ok().and_then(running);
        let url = match (&global.url, local) {
            (Some(url), _) => url.clone(),
            (None, Some(running)) => running.url,
            (None, None) => "http://127.0.0.1:9090".to_owned(),
        };
        let token = match &global.token {
            Some(token) => Some(token.clone()),
            None => data_dir
                .ok()
                .and_then(|dir| std::fs::read_to_string(dir.join(TOKEN_FILE)).ok()),
        };
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            token: token.map(|token| token.trim().to_owned()),
            ca_cert: global.ca_cert.clone(),
        })
    }
}

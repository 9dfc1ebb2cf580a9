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
    /// Its process.
    pid: u32,
}

impl Running {
    /// Whether its process is there; one that was killed leaves its file behind.
    fn is_alive(&self) -> bool {
        !Path::new("/proc/self").exists() || Path::new("/proc").join(self.pid.to_string()).exists()
    }
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

/// How the running `up` of a data directory can be reached, if it wrote so and is still there.
pub(crate) fn running(data_dir: &Path) -> Option<Running> {
    let text = std::fs::read_to_string(data_dir.join(RUNNING_FILE)).ok()?;
    serde_json::from_str(&text).ok().filter(Running::is_alive)
}

impl Target {
    /// Resolves in this order: options and environment, the `up` of the data directory, the default port.
    pub(crate) fn resolve(global: &Global) -> Result<Self, CliError> {
        let data_dir = data_dir(global.data_dir.as_deref());
        let local = data_dir.as_deref().ok().and_then(running);
        let (url, is_local) = match (&global.url, local) {
            (Some(url), Some(running)) if *url == running.url => (url.clone(), true),
            (Some(url), _) => (url.clone(), is_loopback(url)),
            (None, Some(running)) => (running.url, true),
            (None, None) => ("http://127.0.0.1:9090".to_owned(), true),
        };
        if !url
            .parse::<reqwest::Url>()
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        {
            return Err(CliError::Usage(format!(
                "\"{url}\" is not the URL of a control plane; write it as http://127.0.0.1:9095"
            )));
        }
        let token = match &global.token {
            Some(token) => Some(token.clone()),
            // The token that `up` made here is no business of another machine's server.
            None if is_local => data_dir
                .ok()
                .and_then(|dir| std::fs::read_to_string(dir.join(TOKEN_FILE)).ok()),
            None => None,
        };
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            token: token.map(|token| token.trim().to_owned()),
            ca_cert: global.ca_cert.clone(),
        })
    }
}

/// Whether a URL leads to a loopback address.
fn is_loopback(url: &str) -> bool {
    let Ok(url) = url.parse::<reqwest::Url>() else {
        return false;
    };
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{RUNNING_FILE, is_loopback, running};

    #[test]
    fn what_a_killed_process_left_is_not_running() {
        let dir = tempfile::tempdir().unwrap();
        let left = |pid: u32| {
            let text = serde_json::json!({"url": "http://127.0.0.1:1", "pid": pid}).to_string();
            std::fs::write(dir.path().join(RUNNING_FILE), text).unwrap();
            running(dir.path()).is_some()
        };
        assert!(left(std::process::id()));
        assert!(!left(u32::MAX));
    }

    #[test]
    fn the_token_of_this_machine_goes_to_this_machine_only() {
        for here in [
            "http://127.0.0.1:9090",
            "https://localhost:1/x",
            "http://[::1]:9090",
        ] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in [
            "https://gate.example.com",
            "http://10.0.0.7:9090",
            "http://localhost.evil.example",
            "http://127.0.0.1@evil.example",
            "nonsense",
        ] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }
}

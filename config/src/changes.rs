//! What of a changed configuration takes effect while a program runs.

use crate::Config;
use crate::model::Prefix;

/// What is applied by a sidecar that runs.
const SIDECAR: [&str; 5] = [
    "mcp_servers",
    "openapi",
    "cli_tools",
    "limits.argument_bytes",
    "limits.depth",
];
/// What is applied by a control plane that runs.
const CONTROL_PLANE: [&str; 9] = [
    "policies",
    "pin_tools",
    "hide_denied_tools",
    "approval",
    "staleness.write",
    "staleness.read",
    "loop.max",
    "traces.redact",
    "traces.params",
];

/// A change of the configuration of a program that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Keys of what is applied now.
    pub applied: Vec<String>,
    /// Keys of what takes effect at the next start.
    pub at_next_start: Vec<String>,
}

/// Which programs share the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A sidecar; what the fleet decides reaches it from its control plane.
    Sidecar,
    /// A control plane.
    ControlPlane,
    /// Both, as in `toolgate up`.
    Both,
}

impl Program {
    fn applies(self, key: &str) -> bool {
        let of_sidecar = SIDECAR.contains(&key);
        let of_control_plane = CONTROL_PLANE.contains(&key);
        match self {
            Self::Sidecar => of_sidecar,
            Self::ControlPlane => of_control_plane,
            Self::Both => of_sidecar || of_control_plane,
        }
    }

    /// Whether the program has no use for a key that another one applies.
    fn ignores(self, key: &str) -> bool {
        match self {
            Self::Sidecar => key == "policies",
            Self::ControlPlane => SIDECAR.contains(&key),
            Self::Both => false,
        }
    }
}

impl Change {
    /// What changes from one configuration to the next, for these programs.
    pub fn between(before: &Config, after: &Config, program: Program) -> Self {
        let (applied, at_next_start) = keys(before, after)
            .into_iter()
            .filter(|key| !program.ignores(key))
            .partition(|key| program.applies(key));
        Self {
            applied,
            at_next_start,
        }
    }
}

/// The keys that differ; of sections that are applied in part, those within.
fn keys(before: &Config, after: &Config) -> Vec<String> {
    let mut keys = Vec::new();
    for key in before.differences(after) {
        let key = key.trim_start_matches("r#");
        let within = match key {
            "staleness" => before.staleness.differences(&after.staleness),
            "limits" => before.limits.differences(&after.limits),
            "loop" => before.r#loop.differences(&after.r#loop),
            "traces" => before.traces.differences(&after.traces),
            _ => {
                keys.push(key.to_owned());
                continue;
            }
        };
        keys.extend(within.into_iter().map(|inner| format!("{key}.{inner}")));
    }
    let names = |config: &Config| config.mcp_servers.first().map(|server| server.name.clone());
    if after.expose.prefix == Prefix::Never && names(before) != names(after) {
        // Names without a prefix are those of the server of the start.
        keys.push("expose.prefix".to_owned());
    }
    keys
}

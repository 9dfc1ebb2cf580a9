//! What a control plane is started with.

use std::path::{Path, PathBuf};

use net::clock::Clock;
use proto::body::FleetSettings;

use crate::core::{Lifetimes, StreamLimits};
use crate::store::catalogue::Pinning;

/// Where the truth is kept.
#[derive(Clone)]
pub enum Storage {
    /// An embedded database, for one process.
    Sqlite {
        /// Its file.
        path: PathBuf,
    },
    /// A Postgres database, for any number of replicas.
    Postgres {
        /// Its URL, with the password where there is one.
        url: String,
    },
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "Sqlite({})", path.display()),
            Self::Postgres { .. } => f.write_str("Postgres(..)"),
        }
    }
}

/// What a control plane is started with. Secrets in it are never shown.
#[derive(Clone)]
pub struct Options {
    /// Where the truth is kept.
    pub storage: Storage,
    /// Where a master key and an operator token are kept when none are configured; `None`: both have to be.
    pub data_dir: Option<PathBuf>,
    /// The master key, or the path of its file.
    pub master_key: Option<String>,
    /// The operator's token.
    pub admin_token: Option<String>,
    /// Key of the chain's HMAC.
    pub trace_key: Option<String>,
    /// Any caller from this machine is an operator.
    pub loopback_operators: bool,
    /// What the fleet decides for every sidecar.
    pub settings: FleetSettings,
    /// What happens at the first use of an upstream, where pins are kept.
    pub first_use: Pinning,
    /// How long things last.
    pub lifetimes: Lifetimes,
    /// Bounds of streams.
    pub limits: StreamLimits,
    /// The machine's clock, or a test's.
    pub clock: Clock,
}

impl Options {
    /// Everything in one directory, all else by default: what tests and a first try need.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            storage: Storage::Sqlite {
                path: directory.join("toolgate.db"),
            },
            data_dir: Some(directory.to_owned()),
            master_key: None,
            admin_token: None,
            trace_key: None,
            loopback_operators: false,
            settings: FleetSettings::default(),
            first_use: Pinning::Trust,
            lifetimes: Lifetimes::default(),
            limits: StreamLimits::default(),
            clock: Clock::machine(),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("storage", &self.storage)
            .field("data_dir", &self.data_dir)
            .field("loopback_operators", &self.loopback_operators)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

//! The credential of a process that this user launched: who it speaks for was fixed at launch.

use std::path::Path;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::error::CliError;

/// The key that `up` keeps for this, inside its data directory (0600).
pub(crate) const LAUNCH_KEY_FILE: &str = "launch-key";

/// Names an agent and proves that the key's reader named it.
pub(crate) struct Launch {
    agent: String,
    key: Vec<u8>,
}

impl Launch {
    pub(crate) fn read(data_dir: &Path, agent: &str) -> Result<Self, CliError> {
        let path = data_dir.join(LAUNCH_KEY_FILE);
        let key = net::files::read_secret(&path).map_err(|error| {
            CliError::NotUp(format!("{error}; `toolgate up` writes this file when it runs, with the same --data-dir and as the same user"))
        })?;
        Ok(Self {
            agent: agent.to_owned(),
            key: key.into_bytes(),
        })
    }

    /// The value of the `X-Toolgate-Launch` header: `<agent>.<unix seconds>.<hex HMAC-SHA256>`.
    pub(crate) fn header(&self) -> String {
        let seconds = net::clock::Clock::machine().wall_micros() / 1_000_000;
        let signed = format!("{}.{seconds}", self.agent);
        // INVARIANT: HMAC takes keys of any length, so an error cannot come; an empty proof would be refused by the server.
        let proof = Hmac::<Sha256>::new_from_slice(&self.key).map(|mut mac| {
            mac.update(signed.as_bytes());
            mac.finalize().into_bytes()
        });
        let hex: String = proof.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
        format!("{signed}.{hex}")
    }
}

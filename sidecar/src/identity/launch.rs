//! Callers whose agent was fixed when a user of this machine launched them (`toolgate mcp --agent NAME`).
//!
//! The launcher proves that it can read a key that only this user can read, and names the agent under that proof.

use std::fmt;
use std::time::Duration;

use hmac::{Hmac, Mac};
use http::HeaderMap;
use net::clock::Clock;
use sha2::Sha256;
use tools::id::AgentId;

use super::IdentityError;

/// The header that carries the proof: `<agent>.<unix seconds>.<hex HMAC-SHA256 over "<agent>.<unix seconds>">`.
pub const LAUNCH_HEADER: &str = "x-toolgate-launch";
/// How old a proof may be, and how far in the future.
const VALID_FOR: Duration = Duration::from_secs(60);

/// The key that launched processes prove their agent by.
#[derive(Clone)]
pub struct LaunchKey {
    key: Vec<u8>,
    clock: Clock,
}

impl fmt::Debug for LaunchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaunchKey(…)")
    }
}

impl LaunchKey {
    /// A key; proofs are dated by `clock`'s wall time.
    pub fn new(key: impl Into<Vec<u8>>, clock: Clock) -> Self {
        Self {
            key: key.into(),
            clock,
        }
    }

    /// The agent that the request proves to have been launched for; `None`: it claims nothing of the kind.
    ///
    /// # Errors
    /// When it claims so and does not prove it.
    pub(super) fn agent(&self, headers: &HeaderMap) -> Result<Option<AgentId>, IdentityError> {
        let Some(value) = headers.get(LAUNCH_HEADER) else {
            return Ok(None);
        };
        let text = value.to_str().map_err(|_| IdentityError::Launch)?;
        let (signed, proof) = text.rsplit_once('.').ok_or(IdentityError::Launch)?;
        let (agent, seconds) = signed.rsplit_once('.').ok_or(IdentityError::Launch)?;
        let seconds: i64 = seconds.parse().map_err(|_| IdentityError::Launch)?;
        let now = self.clock.wall_micros() / 1_000_000;
        let is_fresh = now.abs_diff(seconds) <= VALID_FOR.as_secs();
        if !is_fresh || !self.proves(signed, proof) {
            return Err(IdentityError::Launch);
        }
        Ok(Some(AgentId::try_from(agent)?))
    }

    fn proves(&self, signed: &str, proof: &str) -> bool {
        let (Ok(mut mac), Some(proof)) = (Hmac::<Sha256>::new_from_slice(&self.key), unhex(proof)) else {
            return false;
        };
        mac.update(signed.as_bytes());
        mac.verify_slice(&proof).is_ok()
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits?;
    digits
        .chunks(2)
        .map(|pair| u8::try_from(pair.iter().fold(0, |byte, digit| byte * 16 + digit)).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(key: &[u8], agent: &str, seconds: i64) -> HeaderMap {
        let signed = format!("{agent}.{seconds}");
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(signed.as_bytes());
        let hex: String = mac
            .finalize()
            .into_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut headers = HeaderMap::new();
        headers.insert(LAUNCH_HEADER, format!("{signed}.{hex}").parse().unwrap());
        headers
    }

    fn key() -> LaunchKey {
        let clock = Clock::manual();
        clock.set_wall_micros(1_000_000_000);
        LaunchKey::new(*b"secret", clock)
    }

    #[test]
    fn a_launched_process_speaks_for_the_agent_it_was_launched_for() {
        assert_eq!(
            key()
                .agent(&proof(b"secret", "my.agent", 1_000))
                .unwrap()
                .unwrap()
                .as_str(),
            "my.agent"
        );
        assert_eq!(key().agent(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn a_proof_of_another_key_another_agent_or_another_time_is_refused() {
        let mut renamed = proof(b"secret", "a", 1_000);
        let other = renamed[LAUNCH_HEADER].to_str().unwrap().replacen('a', "b", 1);
        renamed.insert(LAUNCH_HEADER, other.parse().unwrap());
        for headers in [
            proof(b"other", "a", 1_000),
            proof(b"secret", "a", 900),
            proof(b"secret", "a", 1_100),
            renamed,
        ] {
            assert_eq!(key().agent(&headers), Err(IdentityError::Launch));
        }
    }
}

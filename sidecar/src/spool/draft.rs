//! A record before it has its number.

use bytes::Bytes;
use chain::hash::Hash;
use chain::payload::{Payload, SealedPayload};
use chain::record::SourceRecord;
use chain::source::{Sealed, SourceChain};
use chain::vocabulary::{Outcome, Reason};

use policy::glob::Glob;

use super::SpoolError;
use super::entry::Statement;

/// What a call's record says, except for what the spool adds: sidecar, namespace (once enrolled), epoch, number, source link and
/// payload digest.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The header.
    pub source: SourceRecord,
    /// The erasable part, already redacted; none for a call that ends with the payload of its intent.
    pub payload: Option<Payload>,
}

/// The payload of an intent, sealed once: most calls end with it.
#[derive(Clone, Debug)]
pub(super) struct Stated {
    text: Bytes,
    digest: Option<Hash>,
}

/// A draft whose payload is sealed: ready for its number.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    source: SourceRecord,
    payload: Bytes,
}

impl Prepared {
    pub(super) fn new(draft: Draft) -> Result<Self, SpoolError> {
        let Draft { mut source, payload } = draft;
        let payload = payload.as_ref().map(seal).transpose()?;
        Ok(Self {
            payload: sealed_into(&mut source, payload),
            source,
        })
    }

    /// A draft that ends a call with an intent: without a payload of its own it has the intent's.
    pub(super) fn after(stated: &Stated, draft: Draft) -> Result<Self, SpoolError> {
        if draft.payload.is_some() {
            return Self::new(draft);
        }
        let mut source = draft.source;
        source.payload_digest = stated.digest;
        Ok(Self {
            source,
            payload: stated.text.clone(),
        })
    }

    pub(super) fn from_statement(statement: &Statement) -> Result<Self, SpoolError> {
        // These bytes are this process' own: no canonical form is asked for, which would refuse numbers that print shorter.
        let source: SourceRecord =
            serde_json::from_slice(&statement.source).map_err(|error| SpoolError::Invalid {
                reason: error.to_string(),
            })?;
        Ok(Self {
            source,
            payload: statement.payload.clone(),
        })
    }

    /// What is kept while there is no number.
    pub(super) fn statement(&self) -> Result<Statement, SpoolError> {
        Ok(Statement {
            source: self.source.encode().map_err(|error| invalid(&error))?.into(),
            payload: self.payload.clone(),
        })
    }

    /// The record with the next number of an epoch, and the link for the one after it. May be called again with another
    /// place when this one was not used.
    pub(super) fn numbered(
        &mut self,
        place: SourceChain,
        namespace: &str,
        agents: &[Glob],
    ) -> Result<(Statement, Sealed), SpoolError> {
        let mut place = place;
        let source = &mut self.source;
        if !namespace.is_empty() {
            namespace.clone_into(&mut source.namespace);
        }
        // A record of an agent outside the scope would be refused with its whole batch, and hold up all that follow.
        let is_foreign =
            |agent: &String| !agents.is_empty() && !agents.iter().any(|glob| glob.matches(agent));
        if source.agent.as_ref().is_some_and(is_foreign) {
            source.agent = None;
        }
        let mut sealed = place.seal(source).map_err(|error| invalid(&error))?;
        let statement = Statement {
            source: std::mem::take(&mut sealed.text).into(),
            payload: self.payload.clone(),
        };
        Ok((statement, sealed))
    }

    /// The header so far.
    pub(super) fn source(&self) -> &SourceRecord {
        &self.source
    }

    /// About how many bytes it takes.
    pub(super) fn size_hint(&self) -> u64 {
        2048 + self.payload.len() as u64
    }
}

/// What is to be recorded of a call when nothing more becomes known of it. `source` and `payload` are left as they were, but for
/// the payload's digest.
pub(super) fn interrupted(
    source: &mut SourceRecord,
    payload: &Payload,
) -> Result<(Statement, Stated), SpoolError> {
    let payload = sealed_into(source, Some(seal(payload)?));
    let stated = Stated {
        text: payload.clone(),
        digest: source.payload_digest,
    };
    let (outcome, reason) = (source.outcome, source.reason);
    source.outcome = Outcome::Interrupted;
    source.reason = Some(Reason::Crash);
    let encoded = source.encode();
    source.outcome = outcome;
    source.reason = reason;
    let statement = Statement {
        source: encoded.map_err(|error| invalid(&error))?.into(),
        payload,
    };
    Ok((statement, stated))
}

fn seal(payload: &Payload) -> Result<SealedPayload, SpoolError> {
    payload.seal().map_err(|error| invalid(&error))
}

fn sealed_into(source: &mut SourceRecord, payload: Option<SealedPayload>) -> Bytes {
    source.payload_digest = payload.as_ref().map(|sealed| sealed.digest);
    payload.map_or_else(Bytes::new, |sealed| sealed.text.into())
}

/// The link of the first record of an epoch.
pub(super) const FIRST_LINK: Hash = Hash::ZERO;

fn invalid(error: &chain::record::RecordError) -> SpoolError {
    SpoolError::Invalid {
        reason: error.to_string(),
    }
}

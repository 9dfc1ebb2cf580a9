//! The control plane's own acts, as a source of records: one epoch per generation, shared by the replicas under its lock.

use std::borrow::Cow;

use chain::{
    hash::Hash,
    payload::Payload,
    record::SourceRecord,
    source::SourceChain,
    timestamp::Timestamp,
    vocabulary::{Outcome, RecordKind},
};

use super::{
    ingest::{self, Fresh},
    tx::Tx,
    value::args,
};
use crate::store::{
    error::{StoreError, StoreResult},
    records::{ChainPosition, IncomingRecord, OWN_SOURCE, RefusedRecord},
    types::{Act, Micros},
};

fn unwritable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Invalid {
        what: "act",
        reason: error.to_string(),
    }
}

/// Appends an act, in the transaction of what it describes.
pub(super) async fn append(tx: &mut Tx, act: &Act) -> StoreResult<ChainPosition> {
    append_all(tx, std::slice::from_ref(act)).await
}

/// Appends several; answers the position of the last.
pub(super) async fn append_all(tx: &mut Tx, acts: &[Act]) -> StoreResult<ChainPosition> {
    let generation = tx
        .one("SELECT generation FROM chain_head", &[])
        .await?
        .count("generation")?;
    let now = tx.now().await?;
    tx.run(
        "INSERT INTO epochs (sidecar, epoch, started_at, generation, committed, settled, source_hash, closed) \
         VALUES ($1, $2, $3, $2, 0, 0, $4, $5) ON CONFLICT (sidecar, epoch) DO NOTHING",
        &args![OWN_SOURCE, generation, now, &[0_u8; 32], false],
    )
    .await?;
    let row = tx
        .one(
            "SELECT committed, source_hash FROM epochs WHERE sidecar = $1 AND epoch = $2 FOR UPDATE",
            &args![OWN_SOURCE, generation],
        )
        .await?;
    let mut source = SourceChain::resume(
        OWN_SOURCE,
        generation,
        row.count("committed")?,
        row.hash("source_hash")?.into(),
    );
    let records = acts
        .iter()
        .map(|act| sealed(&mut source, act, now))
        .collect::<StoreResult<Vec<_>>>()?;
    let fresh = records
        .iter()
        .map(|record| Fresh {
            sidecar: OWN_SOURCE,
            epoch: generation,
            link: Hash::of(&[record.source.as_bytes()]),
            record: Cow::Borrowed(record),
        })
        .collect::<Vec<_>>();
    ingest::append(tx, &fresh).await
}

fn sealed(source: &mut SourceChain, act: &Act, now: Micros) -> StoreResult<IncomingRecord> {
    let (mut record, payload) = described(act, now)?;
    let sealed = source.seal(&mut record).map_err(unwritable)?;
    Ok(IncomingRecord {
        n: sealed.n,
        source: sealed.text,
        record,
        payload: Some(payload),
    })
}

/// The record in the place of what a source sent and what is not accepted.
pub(super) async fn standing_for(
    tx: &mut Tx,
    refused: &RefusedRecord,
    (sidecar, epoch): (&str, u64),
    prev: Hash,
) -> StoreResult<IncomingRecord> {
    let mut act = Act::new(
        "mesh.record_refused",
        "system",
        serde_json::json!({ "reason": refused.reason }),
    );
    act.namespace = refused.namespace.clone();
    let (mut record, payload) = described(&act, tx.now().await?)?;
    record.sidecar = Some(sidecar.to_owned().into());
    record.epoch = Some(epoch);
    record.n = Some(refused.n);
    record.source_prev = Some(prev);
    record.stands_for = Some(refused.link);
    Ok(IncomingRecord {
        n: refused.n,
        source: record.encode().map_err(unwritable)?,
        record,
        payload: Some(payload),
    })
}

/// An act's record, with no place in a source's chain yet, and its payload.
fn described(act: &Act, now: Micros) -> StoreResult<(SourceRecord, String)> {
    let mut salt = [0_u8; 16];
    getrandom::fill(&mut salt).map_err(unwritable)?;
    let mut payload = Payload::new(salt);
    payload.params = Some(serde_json::value::to_raw_value(&act.details).map_err(unwritable)?);
    let payload = payload.seal().map_err(unwritable)?;
    let mut record = SourceRecord::new(
        record_id(now),
        Timestamp::from_micros(now),
        RecordKind::Act,
        act.namespace.clone(),
        Outcome::Ok,
    );
    record.user = Some(act.by.clone());
    record.agent = Some(act.agent.clone()).filter(|agent| !agent.is_empty());
    record.tool = Some(act.name.clone().into());
    record.payload_digest = Some(payload.digest);
    Ok((record, payload.text))
}

/// A UUIDv7 of this moment.
fn record_id(now: Micros) -> String {
    let seconds = u64::try_from(now.div_euclid(1_000_000)).unwrap_or_default();
    let nanos = u32::try_from(now.rem_euclid(1_000_000) * 1000).unwrap_or_default();
    let time = uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos);
    uuid::Uuid::new_v7(time).to_string()
}

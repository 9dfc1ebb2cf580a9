//! What sidecars say between enrolments: heartbeats and acknowledgements, written in batches.

use std::collections::BTreeMap;

use super::{
    tx::Tx,
    value::{Arg, args, to_json},
};
use crate::store::{
    error::StoreResult,
    sidecars::{SidecarAck, SidecarHeartbeat, SidecarReport},
    types::Micros,
};

pub(super) async fn write(tx: &mut Tx, reports: &[SidecarReport]) -> StoreResult<()> {
    let now = tx.now().await?;
    // One row per sidecar, in the order of ids, so that two replicas do not lock crosswise.
    let mut heartbeats = BTreeMap::new();
    let mut acks = BTreeMap::new();
    for report in reports {
        if let Some(heartbeat) = &report.heartbeat {
            heartbeats.insert(
                (&report.sidecar, report.epoch),
                heartbeat_row(report, heartbeat, now),
            );
        }
        if let Some(ack) = &report.ack {
            acks.insert(&report.sidecar, ack_row(report, ack, now)?);
        }
    }
    tx.insert_many(
        "INSERT INTO heartbeats (sidecar, epoch, seen_at, lease_age_ms, high_water, open_intents, stop_sequence)",
        &heartbeats.into_values().collect::<Vec<_>>(),
        "ON CONFLICT (sidecar, epoch) DO UPDATE SET seen_at = excluded.seen_at, lease_age_ms = excluded.lease_age_ms, \
         high_water = excluded.high_water, open_intents = excluded.open_intents, stop_sequence = excluded.stop_sequence",
    )
    .await?;
    tx.insert_many(
        "INSERT INTO acks (sidecar, epoch, generation, number, apply_us, rejected, at)",
        &acks.into_values().collect::<Vec<_>>(),
        "ON CONFLICT (sidecar) DO UPDATE SET epoch = excluded.epoch, generation = excluded.generation, \
         number = excluded.number, apply_us = excluded.apply_us, rejected = excluded.rejected, at = excluded.at \
         WHERE excluded.epoch >= acks.epoch",
    )
    .await?;
    Ok(())
}

fn heartbeat_row(report: &SidecarReport, heartbeat: &SidecarHeartbeat, now: Micros) -> Vec<Arg> {
    args![
        &report.sidecar,
        report.epoch,
        now,
        heartbeat.lease_age_ms,
        heartbeat.high_water,
        heartbeat.open_intents,
        heartbeat.stop_sequence,
    ]
    .to_vec()
}

fn ack_row(report: &SidecarReport, ack: &SidecarAck, now: Micros) -> StoreResult<Vec<Arg>> {
    Ok(args![
        &report.sidecar,
        report.epoch,
        ack.revision.generation,
        ack.revision.number,
        ack.apply_us,
        to_json("rejected resources", &ack.rejected)?,
        now,
    ]
    .to_vec())
}

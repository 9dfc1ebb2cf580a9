//! The claim: an approved approval is taken by one call, once.

use super::{
    approvals::{Ending, end, event, locked, subject, upstream},
    deadlines::overdue,
    stops,
    tx::Tx,
    value::args,
};
use crate::store::{
    approvals::{ApprovalStatus, Claim, ClaimOutcome, ClaimRefusal},
    error::StoreResult,
    types::Revision,
};

pub(super) async fn claim(tx: &mut Tx, claim: &Claim) -> StoreResult<ClaimOutcome> {
    // Shared with other claims, not with a stop under way: none slips between.
    let holding = stops::lock_and_read(tx).await?;
    let refused = |refusal| Ok(ClaimOutcome::Refused(refusal));
    let found = locked(tx, &claim.id).await?.filter(|(approval, _)| {
        approval.asked.namespace == claim.namespace && approval.asked.binding == claim.binding
    });
    let Some((mut approval, row)) = found else {
        return refused(ClaimRefusal::NotFound);
    };
    let now = tx.now().await?;
    if approval.consumed_at.is_some() {
        if approval.consumed_by != claim.call_id {
            return refused(ClaimRefusal::AlreadyClaimed);
        }
        return Ok(ClaimOutcome::Claimed {
            approval: Box::new(approval),
            revision: Revision::new(row.count("claim_generation")?, row.count("claim_number")?),
            stop_sequence: row.count("claim_stops")?,
            database_time: now,
        });
    }
    if let Some(status) = overdue(&approval, now) {
        end(
            tx,
            &approval,
            &Ending::by_system(&approval, status, "system", ""),
            now,
        )
        .await?;
        return refused(ClaimRefusal::NotApproved(status));
    }
    if approval.status != ApprovalStatus::Approved {
        return refused(ClaimRefusal::NotApproved(approval.status));
    }
    let upstream = upstream(tx, &approval.asked).await?;
    let call = subject(&approval.asked, &upstream);
    if let Some(stop) = holding.stops.iter().find(|stop| stop.concerns(&call)) {
        return refused(ClaimRefusal::Stopped {
            stop: stop.id.clone(),
            reason: stop.reason.clone(),
        });
    }
    let revision = tx
        .one("SELECT generation, number FROM revision", &[])
        .await?
        .revision()?;
    tx.run(
        "UPDATE approvals SET consumed_at = $2, consumed_by = $3, claim_generation = $4, claim_number = $5, \
         claim_stops = $6 WHERE id = $1",
        &args![
            &approval.id,
            now,
            &claim.call_id,
            revision.generation,
            revision.number,
            holding.sequence,
        ],
    )
    .await?;
    approval.cursor = event(tx, &approval.id, ApprovalStatus::Approved, true, now).await?;
    approval.consumed_at = Some(now);
    approval.consumed_by = claim.call_id.clone();
    Ok(ClaimOutcome::Claimed {
        approval: Box::new(approval),
        revision,
        stop_sequence: holding.sequence,
        database_time: now,
    })
}

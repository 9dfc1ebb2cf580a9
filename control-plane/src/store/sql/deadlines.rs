//! Open approvals as a whole: their deadlines by the database's clock, and what ends many of them at once.

use super::{
    approval_rows::{COLUMNS, approval},
    approvals::{Ending, end},
    tx::Tx,
    value::{Arg, args},
};
use crate::store::{
    approvals::{Approval, ApprovalStatus},
    error::StoreResult,
    types::Micros,
};

/// Pending, or approved and unconsumed.
pub(super) const OPEN: &str = "(status = 'pending' OR (status = 'approved' AND consumed_at IS NULL))";

/// What an open approval has become by its deadline, if that has passed.
pub(super) fn overdue(approval: &Approval, now: Micros) -> Option<ApprovalStatus> {
    if approval.expires_at > now || approval.consumed_at.is_some() {
        return None;
    }
    match approval.status {
        ApprovalStatus::Pending => Some(ApprovalStatus::Timeout),
        ApprovalStatus::Approved => Some(ApprovalStatus::Expired),
        ApprovalStatus::Denied
        | ApprovalStatus::Timeout
        | ApprovalStatus::Cancelled
        | ApprovalStatus::Expired => None,
    }
}

/// Locks every open approval that a condition on the row selects, by id.
pub(super) async fn lock_open(tx: &mut Tx, condition: &str, values: &[Arg]) -> StoreResult<Vec<Approval>> {
    let sql = format!("SELECT {COLUMNS} FROM approvals WHERE {OPEN} AND {condition} ORDER BY id FOR UPDATE");
    tx.rows(&sql, values).await?.iter().map(approval).collect()
}

/// A generation begins: what was approved and not used is taken back.
pub(super) async fn cancel_unconsumed(tx: &mut Tx, why: &str) -> StoreResult<u64> {
    let approved = lock_open(tx, "status = 'approved'", &[]).await?;
    let now = tx.now().await?;
    for before in &approved {
        end(
            tx,
            before,
            &Ending::by_system(before, ApprovalStatus::Cancelled, "system", why),
            now,
        )
        .await?;
    }
    Ok(approved.len() as u64)
}

pub(super) async fn any_overdue(tx: &mut Tx) -> StoreResult<bool> {
    let now = tx.now().await?;
    let sql = format!("SELECT id FROM approvals WHERE {OPEN} AND expires_at <= $1 LIMIT 1");
    Ok(tx.row(&sql, &args![now]).await?.is_some())
}

pub(super) async fn sweep(tx: &mut Tx) -> StoreResult<u64> {
    let now = tx.now().await?;
    let mut count = 0;
    for before in lock_open(tx, "expires_at <= $1", &args![now]).await? {
        if let Some(status) = overdue(&before, now) {
            end(
                tx,
                &before,
                &Ending::by_system(&before, status, "system", ""),
                now,
            )
            .await?;
            count += 1;
        }
    }
    Ok(count)
}

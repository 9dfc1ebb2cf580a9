//! Questions and answers: opening, resolving, listing, the feed of events, deadlines.

use std::time::Duration;

use async_trait::async_trait;
use chain::hash::Hash;

use super::{
    SqlStore, acts,
    approval_rows::{self, COLUMNS, approval},
    by_prefix, claims,
    deadlines::{self, OPEN, overdue},
    random_id, stops, transact,
    tx::Tx,
    value::{Row, args, to_json},
};
use crate::store::{
    approvals::{
        Approval, ApprovalDraft, ApprovalEvent, ApprovalFilter, ApprovalStatus, Approvals, Binding, Claim,
        ClaimOutcome, Opened, Resolution,
    },
    error::{StoreError, StoreResult},
    stops::StopSubject,
    types::{Act, Micros, Topic},
};

#[async_trait]
impl Approvals for SqlStore {
    async fn open_approval(&self, draft: ApprovalDraft, max_pending: u32) -> StoreResult<Opened> {
        transact!(write self, "opening an approval", tx => open(tx, &draft, max_pending))
    }

    async fn approval(&self, id: &str, namespace: Option<&str>) -> StoreResult<Approval> {
        transact!(read self, "reading an approval", tx => one(tx, id, namespace))
    }

    async fn approvals(&self, filter: ApprovalFilter) -> StoreResult<Vec<Approval>> {
        transact!(read self, "listing approvals", tx => approval_rows::list(tx, &filter))
    }

    async fn resolve_approval(
        &self,
        id: &str,
        resolution: Resolution,
        act: Option<Act>,
    ) -> StoreResult<Approval> {
        transact!(write self, "resolving an approval", tx => resolve(tx, id, &resolution, act.as_ref()))?
    }

    async fn claim_approval(&self, claim: Claim) -> StoreResult<ClaimOutcome> {
        transact!(write self, "claiming an approval", tx => claims::claim(tx, &claim))
    }

    async fn cancel_approval(&self, namespace: &str, id: &str) -> StoreResult<Approval> {
        transact!(write self, "cancelling an approval", tx => cancel(tx, namespace, id))
    }

    async fn sweep_approvals(&self) -> StoreResult<u64> {
        if !transact!(read self, "looking for overdue approvals", tx => deadlines::any_overdue(tx))? {
            return Ok(0);
        }
        transact!(write self, "ending overdue approvals", tx => deadlines::sweep(tx))
    }

    async fn approval_events_after(&self, cursor: u64, limit: u32) -> StoreResult<Vec<ApprovalEvent>> {
        transact!(read self, "reading approval events", tx => approval_rows::events_after(tx, cursor, limit))
    }
}

/// How an approval ends, or what it becomes.
pub(super) struct Ending<'e> {
    pub(super) status: ApprovalStatus,
    pub(super) by: &'e str,
    pub(super) via: &'e str,
    pub(super) reasoning: &'e str,
    pub(super) confidence: Option<f64>,
    /// The new deadline.
    pub(super) expires_at: Micros,
}

impl<'e> Ending<'e> {
    /// One that no person brought about.
    pub(super) fn by_system(approval: &Approval, status: ApprovalStatus, via: &'e str, why: &'e str) -> Self {
        Self {
            status,
            by: "system",
            via,
            reasoning: why,
            confidence: None,
            expires_at: approval.expires_at,
        }
    }
}

/// SHA-256 over namespace and binding, each part with its length.
fn binding_hash(namespace: &str, binding: &Binding) -> Hash {
    let parts: [&[u8]; 8] = [
        namespace.as_bytes(),
        binding.agent.as_bytes(),
        binding.user.as_bytes(),
        binding.tool.as_bytes(),
        &binding.fingerprint,
        &binding.arguments_digest,
        binding.digest_key_id.as_bytes(),
        binding.session.as_bytes(),
    ];
    let mut text = Vec::new();
    for part in parts {
        text.extend_from_slice(&(part.len() as u64).to_be_bytes());
        text.extend_from_slice(part);
    }
    Hash::of(&[&text])
}

/// The upstream of what is asked for: what stands before the first dot; of a tool without a prefix, the one that declared it.
pub(super) async fn upstream(tx: &mut Tx, asked: &ApprovalDraft) -> StoreResult<String> {
    let tool = &asked.binding.tool;
    if let Some((upstream, _)) = tool.split_once('.') {
        return Ok(upstream.to_owned());
    }
    let sql = "SELECT upstream FROM tools WHERE namespace = $1 AND name = $2 LIMIT 1";
    let row = tx.row(sql, &args![&asked.namespace, tool]).await?;
    row.map_or(Ok(String::new()), |row| row.text("upstream"))
}

/// What stops look at.
pub(super) fn subject<'a>(asked: &'a ApprovalDraft, upstream: &'a str) -> StopSubject<'a> {
    StopSubject {
        namespace: &asked.namespace,
        agent: &asked.binding.agent,
        user: &asked.binding.user,
        session: &asked.binding.session,
        upstream,
    }
}

fn micros(duration: Duration) -> Micros {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

async fn open(tx: &mut Tx, draft: &ApprovalDraft, max_pending: u32) -> StoreResult<Opened> {
    let holding = stops::lock_and_read(tx).await?;
    let upstream = upstream(tx, draft).await?;
    let call = subject(draft, &upstream);
    if let Some(stop) = holding.stops.iter().find(|stop| stop.concerns(&call)) {
        return Ok(Opened::Stopped {
            stop: stop.id.clone(),
            reason: stop.reason.clone(),
        });
    }
    let binding = binding_hash(&draft.namespace, &draft.binding);
    let sql = format!("SELECT {COLUMNS} FROM approvals WHERE binding = $1 AND {OPEN} FOR UPDATE");
    let same = tx
        .row(&sql, &args![binding.as_bytes()])
        .await?
        .as_ref()
        .map(approval)
        .transpose()?;
    let now = tx.now().await?;
    if let Some(same) = same {
        match overdue(&same, now) {
            None => return Ok(Opened::Joined(same)),
            Some(status) => end(tx, &same, &Ending::by_system(&same, status, "system", ""), now).await?,
        };
    }
    if let Some(denied) = denied_lately(tx, &binding, now).await? {
        return Ok(Opened::Joined(denied));
    }
    if !has_room(tx, draft, max_pending, now).await? {
        return Ok(Opened::TooMany { pending: max_pending });
    }
    let approval = Approval {
        id: random_id()?,
        asked: draft.clone(),
        status: ApprovalStatus::Pending,
        created_at: now,
        expires_at: now.saturating_add(micros(draft.timeout)),
        resolved_at: None,
        resolved_by: String::new(),
        resolved_via: String::new(),
        reasoning: String::new(),
        confidence: None,
        consumed_at: None,
        consumed_by: String::new(),
        cursor: 0,
    };
    insert(tx, &approval, &binding).await?;
    let cursor = event(tx, &approval.id, ApprovalStatus::Pending, false, now).await?;
    Ok(Opened::New(Approval { cursor, ..approval }))
}

/// A person's no to exactly this call, for as long as a yes would have held: it is the answer, and nobody is asked again.
async fn denied_lately(tx: &mut Tx, binding: &Hash, now: Micros) -> StoreResult<Option<Approval>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM approvals WHERE binding = $1 AND status = 'denied' AND resolved_by <> 'system' \
         AND expires_at > $2 ORDER BY resolved_at DESC LIMIT 1"
    );
    tx.row(&sql, &args![binding.as_bytes(), now])
        .await?
        .as_ref()
        .map(approval)
        .transpose()
}

/// Whether one more question of the agent may be pending. Until this transaction ends nobody else opens one.
async fn has_room(tx: &mut Tx, draft: &ApprovalDraft, max_pending: u32, now: Micros) -> StoreResult<bool> {
    tx.one(
        "SELECT value FROM sequences WHERE name = 'approvals' FOR UPDATE",
        &[],
    )
    .await?;
    let pending = tx
        .one(
            "SELECT count(*) AS pending FROM approvals \
             WHERE namespace = $1 AND agent = $2 AND status = 'pending' AND expires_at > $3",
            &args![&draft.namespace, &draft.binding.agent, now],
        )
        .await?
        .count("pending")?;
    Ok(pending < u64::from(max_pending))
}

async fn insert(tx: &mut Tx, approval: &Approval, binding: &Hash) -> StoreResult<()> {
    let asked = &approval.asked;
    let values = args![
        &approval.id,
        &asked.namespace,
        &asked.sidecar,
        &asked.call_id,
        &asked.binding.agent,
        &asked.binding.user,
        &asked.binding.tool,
        &asked.binding.fingerprint,
        &asked.binding.arguments_digest,
        &asked.binding.digest_key_id,
        &asked.binding.session,
        binding.as_bytes(),
        &asked.params,
        &asked.classification,
        &asked.policy_rule,
        asked.rule_index,
        asked.revision.generation,
        asked.revision.number,
        &asked.message,
        asked.injection_risk,
        to_json("resources", &asked.resources)?,
        &asked.identity,
        to_json("floors", &asked.floors)?,
        micros(asked.timeout),
        approval.status.as_str(),
        approval.created_at,
        approval.expires_at,
        None::<i64>,
        "",
        "",
        "",
        None::<f64>,
        None::<i64>,
        "",
        0_i64,
        0_i64,
        0_i64,
        0_i64,
    ];
    tx.insert_many(
        &format!("INSERT INTO approvals ({COLUMNS})"),
        &[values.to_vec()],
        "",
    )
    .await?;
    Ok(())
}

/// Writes what an approval becomes, with its event. Its row is locked.
pub(super) async fn end(
    tx: &mut Tx,
    before: &Approval,
    ending: &Ending<'_>,
    now: Micros,
) -> StoreResult<Approval> {
    // The end of an approved one does not take its answer's author away.
    let answered = before.status == ApprovalStatus::Approved;
    let mut after = before.clone();
    after.status = ending.status;
    after.expires_at = ending.expires_at;
    if !answered {
        after.resolved_at = Some(now);
        after.resolved_by = ending.by.to_owned();
        after.resolved_via = ending.via.to_owned();
        after.confidence = ending.confidence;
    }
    if !answered || !ending.reasoning.is_empty() {
        after.reasoning = ending.reasoning.to_owned();
    }
    tx.run(
        "UPDATE approvals SET status = $2, expires_at = $3, resolved_at = $4, resolved_by = $5, resolved_via = $6, \
         reasoning = $7, confidence = $8 WHERE id = $1",
        &args![
            &after.id,
            after.status.as_str(),
            after.expires_at,
            after.resolved_at,
            &after.resolved_by,
            &after.resolved_via,
            &after.reasoning,
            after.confidence,
        ],
    )
    .await?;
    after.cursor = event(tx, &after.id, after.status, false, now).await?;
    Ok(after)
}

/// Appends to the feed; answers the event's place.
pub(super) async fn event(
    tx: &mut Tx,
    id: &str,
    status: ApprovalStatus,
    consumed: bool,
    now: Micros,
) -> StoreResult<u64> {
    let cursor = tx.take("approvals", 1).await?;
    tx.run(
        "INSERT INTO approval_events (cursor, approval, status, consumed, at) VALUES ($1, $2, $3, $4, $5)",
        &args![cursor, id, status.as_str(), consumed, now],
    )
    .await?;
    tx.run(
        "UPDATE approvals SET cursor = $2 WHERE id = $1",
        &args![id, cursor],
    )
    .await?;
    tx.wake(Topic::Approvals);
    Ok(cursor)
}

fn absent(id: &str) -> StoreError {
    StoreError::NotFound {
        what: "approval",
        id: id.to_owned(),
    }
}

async fn one(tx: &mut Tx, id: &str, namespace: Option<&str>) -> StoreResult<Approval> {
    let found = approval(
        &by_prefix(
            tx,
            "approval",
            &format!("SELECT {COLUMNS} FROM approvals WHERE"),
            id,
        )
        .await?,
    )?;
    if namespace.is_some_and(|namespace| namespace != found.asked.namespace) {
        return Err(absent(id));
    }
    Ok(found)
}

/// The approval with exactly this id, locked.
pub(super) async fn locked(tx: &mut Tx, id: &str) -> StoreResult<Option<(Approval, Row)>> {
    let sql = format!("SELECT {COLUMNS} FROM approvals WHERE id = $1 FOR UPDATE");
    tx.row(&sql, &args![id])
        .await?
        .map(|row| Ok((approval(&row)?, row)))
        .transpose()
}

/// The inner result is the answer; the outer one says whether the transaction holds (a timeout that was found is kept).
async fn resolve(
    tx: &mut Tx,
    id: &str,
    resolution: &Resolution,
    act: Option<&Act>,
) -> StoreResult<StoreResult<Approval>> {
    let id = one(tx, id, None).await?.id;
    let Some((before, _)) = locked(tx, &id).await? else {
        return Err(absent(&id));
    };
    let now = tx.now().await?;
    if before.status != ApprovalStatus::Pending {
        return Err(StoreError::AlreadyResolved {
            id,
            status: before.status,
        });
    }
    if let Some(status) = overdue(&before, now) {
        end(
            tx,
            &before,
            &Ending::by_system(&before, status, "system", ""),
            now,
        )
        .await?;
        return Ok(Err(StoreError::AlreadyResolved { id, status }));
    }
    let ending = Ending {
        status: if resolution.approve {
            ApprovalStatus::Approved
        } else {
            ApprovalStatus::Denied
        },
        by: &resolution.by,
        via: &resolution.via,
        reasoning: &resolution.reasoning,
        confidence: resolution.confidence,
        expires_at: now.saturating_add(micros(resolution.ttl)),
    };
    let after = end(tx, &before, &ending, now).await?;
    if let Some(act) = act {
        acts::append(tx, act).await?;
    }
    Ok(Ok(after))
}

async fn cancel(tx: &mut Tx, namespace: &str, id: &str) -> StoreResult<Approval> {
    let found = locked(tx, id)
        .await?
        .filter(|(approval, _)| approval.asked.namespace == namespace);
    let Some((before, _)) = found else {
        return Err(absent(id));
    };
    let open = before.status == ApprovalStatus::Pending
        || (before.status == ApprovalStatus::Approved && before.consumed_at.is_none());
    if !open {
        return Ok(before);
    }
    let now = tx.now().await?;
    let ending = Ending::by_system(&before, ApprovalStatus::Cancelled, "client", "");
    end(tx, &before, &ending, now).await
}

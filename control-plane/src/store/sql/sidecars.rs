//! Sidecars: identities and epochs.

use async_trait::async_trait;
use subtle::ConstantTimeEq as _;

use super::{
    SqlStore, acts, desired, epochs, join_tokens, random_id, sidecar_reports, transact,
    tx::Tx,
    value::{Row, args, from_json, to_json},
};
use crate::store::{
    error::{EnrolRefusal, StoreError, StoreResult},
    sidecars::{
        Enrolled, EpochMark, JoinToken, JoinTokenDraft, Redemption, RejectedResource, Resumption, Rollout,
        Sidecar, SidecarAck, SidecarEvent, SidecarFacts, SidecarHeartbeat, SidecarReport, SidecarScope,
        Sidecars,
    },
    types::{Act, Micros, Revision, Topic},
};

/// Epochs of a generation begin above all that an earlier one can have used, also where a restore forgot them.
const EPOCHS_PER_GENERATION: u64 = 1_000_000;

#[async_trait]
impl Sidecars for SqlStore {
    async fn create_join_token(&self, draft: JoinTokenDraft, act: Act) -> StoreResult<JoinToken> {
        transact!(write self, "making a join token", tx => join_tokens::create(tx, &draft, &act))
    }

    async fn join_tokens(&self) -> StoreResult<Vec<JoinToken>> {
        transact!(read self, "reading join tokens", tx => join_tokens::usable(tx))
    }

    async fn join_token(&self, hash: [u8; 32]) -> StoreResult<JoinToken> {
        transact!(read self, "reading a join token", tx => join_tokens::find(tx, &hash))
    }

    async fn revoke_join_token(&self, id: &str, act: Act) -> StoreResult<()> {
        transact!(write self, "revoking a join token", tx => join_tokens::revoke(tx, id, &act))
    }

    async fn redeem(&self, redemption: Redemption) -> StoreResult<Enrolled> {
        transact!(write self, "enrolling a sidecar", tx => redeem(tx, &redemption))
    }

    async fn resume(&self, resumption: Resumption) -> StoreResult<Enrolled> {
        transact!(write self, "resuming a sidecar", tx => resume(tx, &resumption))
    }

    async fn check_renewal(
        &self,
        sidecar_id: &str,
        epoch: u64,
        renewal_hash: [u8; 32],
    ) -> StoreResult<Sidecar> {
        transact!(read self, "checking a renewal", tx => check_renewal(tx, sidecar_id, epoch, &renewal_hash))
    }

    async fn sidecar(&self, id: &str) -> StoreResult<Sidecar> {
        transact!(read self, "reading a sidecar", tx => one(tx, id))
    }

    async fn sidecars(&self, namespace: Option<&str>) -> StoreResult<Vec<Sidecar>> {
        transact!(read self, "reading sidecars", tx => all(tx, namespace))
    }

    async fn revoke_sidecar(&self, id: &str, act: Act) -> StoreResult<Sidecar> {
        transact!(write self, "revoking a sidecar", tx => revoke(tx, id, &act))
    }

    async fn sidecar_events_after(&self, sequence: u64, limit: u32) -> StoreResult<Vec<SidecarEvent>> {
        transact!(read self, "reading sidecar events", tx => events_after(tx, sequence, limit))
    }

    async fn report_sidecars(&self, reports: Vec<SidecarReport>) -> StoreResult<()> {
        transact!(write self, "writing sidecar reports", tx => sidecar_reports::write(tx, &reports))
    }

    async fn rollout(&self, revision: Revision) -> StoreResult<Rollout> {
        transact!(read self, "reading a rollout", tx => rollout(tx, revision))
    }

    async fn epoch_marks(&self, sidecar: &str, epochs: Vec<u64>) -> StoreResult<Vec<EpochMark>> {
        transact!(read self, "reading watermarks", tx => epochs::of_sidecar(tx, sidecar, &epochs))
    }

    async fn open_marks(&self, sidecars: Vec<String>) -> StoreResult<Vec<EpochMark>> {
        transact!(read self, "reading watermarks", tx => epochs::open(tx, &sidecars))
    }

    async fn close_epoch(&self, sidecar: &str, epoch: u64, last: u64) -> StoreResult<EpochMark> {
        transact!(write self, "closing an epoch", tx => epochs::close(tx, sidecar, epoch, last))
    }
}

async fn first_epoch(tx: &mut Tx) -> StoreResult<u64> {
    let generation = tx
        .one("SELECT generation FROM revision", &[])
        .await?
        .count("generation")?;
    Ok(generation.saturating_sub(1) * EPOCHS_PER_GENERATION + 1)
}

async fn redeem(tx: &mut Tx, redemption: &Redemption) -> StoreResult<Enrolled> {
    let token = join_tokens::spend(tx, &redemption.token_hash).await?;
    let id = match &redemption.sidecar_id {
        Some(id) => id.clone(),
        None => random_id()?,
    };
    let now = tx.now().await?;
    let epoch = first_epoch(tx).await?;
    let facts = &redemption.facts;
    let inserted = tx
        .run(
            "INSERT INTO sidecars (id, namespace, name, labels, version, contract, agents, upstreams, epoch, \
             renewal_hash, enrolled_at, allowed_agents, allowed_upstreams) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
             ON CONFLICT (id) DO UPDATE SET name = excluded.name, labels = excluded.labels, version = excluded.version, \
             contract = excluded.contract, agents = excluded.agents, upstreams = excluded.upstreams, \
             epoch = sidecars.epoch + 1, renewal_hash = excluded.renewal_hash, \
             allowed_agents = excluded.allowed_agents, allowed_upstreams = excluded.allowed_upstreams \
             WHERE sidecars.namespace = excluded.namespace AND sidecars.revoked_at IS NULL \
             AND NOT EXISTS (SELECT 1 FROM heartbeats h WHERE h.sidecar = excluded.id)",
            &args![
                &id,
                &token.namespace,
                &facts.name,
                to_json("labels", &facts.labels)?,
                &facts.version,
                facts.contract,
                to_json("agents", &redemption.agents)?,
                to_json("upstreams", &redemption.upstreams)?,
                epoch,
                &redemption.renewal_hash,
                now,
                to_json("agents", &token.agents)?,
                to_json("upstreams", &token.upstreams)?,
            ],
        )
        .await?;
    if inserted == 0 {
        return Err(StoreError::Conflict {
            reason: format!("sidecar {id} has enrolled before"),
        });
    }
    let epoch = tx
        .one("SELECT epoch FROM sidecars WHERE id = $1", &args![&id])
        .await?
        .count("epoch")?;
    let details = serde_json::json!({ "sidecar": id, "name": facts.name, "join_token": token.id });
    let act = Act::new("mesh.sidecar_enrol", &format!("join token {}", token.id), details)
        .in_namespace(&token.namespace);
    let enrolled = begin_epoch(tx, &id, epoch, now).await?;
    acts::append(tx, &act).await?;
    Ok(enrolled)
}

async fn resume(tx: &mut Tx, resumption: &Resumption) -> StoreResult<Enrolled> {
    let id = &resumption.sidecar_id;
    let sql = "SELECT epoch, renewal_hash, revoked_at FROM sidecars WHERE id = $1 FOR UPDATE";
    let row = tx.row(sql, &args![id]).await?;
    let before = known(row, id, &resumption.renewal_hash)?;
    let epoch = (before + 1).max(first_epoch(tx).await?);
    let now = tx.now().await?;
    let facts = &resumption.facts;
    tx.run(
        "UPDATE sidecars SET epoch = $2, name = $3, labels = $4, version = $5, contract = $6, agents = $7, \
         upstreams = $8 WHERE id = $1",
        &args![
            id,
            epoch,
            &facts.name,
            to_json("labels", &facts.labels)?,
            &facts.version,
            facts.contract,
            to_json("agents", &resumption.agents)?,
            to_json("upstreams", &resumption.upstreams)?,
        ],
    )
    .await?;
    if let Some(token_hash) = &resumption.token_hash {
        rescope(tx, id, token_hash).await?;
    }
    begin_epoch(tx, id, epoch, now).await
}

/// Another join token says from now on what the sidecar may ask for.
async fn rescope(tx: &mut Tx, id: &str, token_hash: &[u8; 32]) -> StoreResult<()> {
    let token = join_tokens::spend(tx, token_hash).await?;
    let rescoped = tx
        .run(
            "UPDATE sidecars SET allowed_agents = $2, allowed_upstreams = $3 WHERE id = $1 AND namespace = $4",
            &args![
                id,
                to_json("agents", &token.agents)?,
                to_json("upstreams", &token.upstreams)?,
                &token.namespace,
            ],
        )
        .await?;
    if rescoped == 0 {
        return Err(StoreError::Conflict {
            reason: format!(
                "sidecar {id} is of another namespace than the join token, {}",
                token.namespace
            ),
        });
    }
    let details = serde_json::json!({ "sidecar": id, "join_token": token.id });
    let act = Act::new("mesh.sidecar_enrol", &format!("join token {}", token.id), details)
        .in_namespace(&token.namespace);
    acts::append(tx, &act).await?;
    Ok(())
}

/// Checks a secret and the tombstone; answers the present epoch.
fn known(row: Option<Row>, id: &str, renewal_hash: &[u8; 32]) -> StoreResult<u64> {
    let Some(row) = row else {
        return Err(EnrolRefusal::UnknownSidecar(id.to_owned()).into());
    };
    if !bool::from(row.hash("renewal_hash")?.ct_eq(renewal_hash)) {
        return Err(EnrolRefusal::WrongSecret(id.to_owned()).into());
    }
    if row.maybe_int("revoked_at")?.is_some() {
        return Err(EnrolRefusal::Revoked(id.to_owned()).into());
    }
    row.count("epoch")
}

async fn begin_epoch(tx: &mut Tx, id: &str, epoch: u64, now: Micros) -> StoreResult<Enrolled> {
    let generation = tx
        .one("SELECT generation FROM chain_head", &[])
        .await?
        .count("generation")?;
    tx.run(
        "INSERT INTO epochs (sidecar, epoch, started_at, generation, committed, settled, source_hash, closed) \
         VALUES ($1, $2, $3, $4, 0, 0, $5, $6)",
        &args![id, epoch, now, generation, &[0_u8; 32], false],
    )
    .await?;
    event(tx, id, epoch, false).await?;
    let open = epochs::marks(
        tx,
        "sidecar = $1 AND epoch < $2 AND NOT closed",
        &args![id, epoch],
    )
    .await?;
    Ok(Enrolled {
        sidecar: one(tx, id).await?,
        open_epochs: open,
        database_time: now,
    })
}

async fn event(tx: &mut Tx, id: &str, epoch: u64, revoked: bool) -> StoreResult<()> {
    let sequence = tx.take("sidecars", 1).await?;
    tx.run(
        "INSERT INTO sidecar_events (sequence, sidecar, epoch, revoked) VALUES ($1, $2, $3, $4)",
        &args![sequence, id, epoch, revoked],
    )
    .await?;
    tx.wake(Topic::Sidecars);
    Ok(())
}

async fn check_renewal(tx: &mut Tx, id: &str, epoch: u64, renewal_hash: &[u8; 32]) -> StoreResult<Sidecar> {
    let row = tx
        .row(
            "SELECT epoch, renewal_hash, revoked_at FROM sidecars WHERE id = $1",
            &args![id],
        )
        .await?;
    let current = known(row, id, renewal_hash)?;
    if current != epoch {
        return Err(EnrolRefusal::StaleEpoch {
            sidecar: id.to_owned(),
            asked: epoch,
            current,
        }
        .into());
    }
    one(tx, id).await
}

const SIDECARS: &str = "SELECT s.id, s.namespace, s.name, s.labels, s.version, s.contract, s.agents, s.upstreams, \
     COALESCE(s.allowed_agents, s.agents) AS allowed_agents, \
     COALESCE(s.allowed_upstreams, s.upstreams) AS allowed_upstreams, s.epoch, \
     s.enrolled_at, s.revoked_at, s.revoked_by, h.seen_at, h.lease_age_ms, h.high_water, h.open_intents, \
     h.stop_sequence, a.generation, a.number, a.apply_us, a.rejected, a.at AS acked_at FROM sidecars s \
     LEFT JOIN heartbeats h ON h.sidecar = s.id AND h.epoch = s.epoch \
     LEFT JOIN acks a ON a.sidecar = s.id AND a.epoch = s.epoch";

async fn one(tx: &mut Tx, id: &str) -> StoreResult<Sidecar> {
    match tx.row(&format!("{SIDECARS} WHERE s.id = $1"), &args![id]).await? {
        Some(row) => sidecar(&row),
        None => Err(StoreError::NotFound {
            what: "sidecar",
            id: id.to_owned(),
        }),
    }
}

async fn all(tx: &mut Tx, namespace: Option<&str>) -> StoreResult<Vec<Sidecar>> {
    let mut sidecars: Vec<Sidecar> = tx
        .rows(&format!("{SIDECARS} ORDER BY s.name, s.id"), &[])
        .await?
        .iter()
        .map(sidecar)
        .collect::<StoreResult<_>>()?;
    sidecars.retain(|sidecar| namespace.is_none_or(|namespace| namespace == sidecar.namespace));
    Ok(sidecars)
}

async fn revoke(tx: &mut Tx, id: &str, act: &Act) -> StoreResult<Sidecar> {
    let row = tx
        .row(
            "SELECT epoch, revoked_at FROM sidecars WHERE id = $1 FOR UPDATE",
            &args![id],
        )
        .await?;
    let Some(row) = row else {
        return Err(StoreError::NotFound {
            what: "sidecar",
            id: id.to_owned(),
        });
    };
    if row.maybe_int("revoked_at")?.is_none() {
        let now = tx.now().await?;
        tx.run(
            "UPDATE sidecars SET revoked_at = $2, revoked_by = $3 WHERE id = $1",
            &args![id, now, &act.by],
        )
        .await?;
        event(tx, id, row.count("epoch")?, true).await?;
        acts::append(tx, act).await?;
    }
    one(tx, id).await
}

async fn events_after(tx: &mut Tx, sequence: u64, limit: u32) -> StoreResult<Vec<SidecarEvent>> {
    tx.rows(
        "SELECT sequence, sidecar, epoch, revoked FROM sidecar_events WHERE sequence > $1 ORDER BY sequence LIMIT $2",
        &args![sequence, limit],
    )
    .await?
    .iter()
    .map(|row| {
        Ok(SidecarEvent {
            sequence: row.count("sequence")?,
            sidecar: row.text("sidecar")?,
            epoch: row.count("epoch")?,
            revoked: row.flag("revoked")?,
        })
    })
    .collect()
}

async fn rollout(tx: &mut Tx, revision: Revision) -> StoreResult<Rollout> {
    let mut sidecars = all(tx, None).await?;
    sidecars.retain(|sidecar| sidecar.revoked.is_none());
    Ok(Rollout {
        revision,
        committed_at: desired::committed_at(tx, revision).await?,
        database_time: tx.now().await?,
        sidecars,
    })
}

fn sidecar(row: &Row) -> StoreResult<Sidecar> {
    let number = |column: &str| {
        Ok::<_, StoreError>(u64::try_from(row.maybe_int(column)?.unwrap_or_default()).unwrap_or_default())
    };
    let ack = match row.maybe_text("rejected")? {
        None => None,
        Some(rejected) => Some(SidecarAck {
            revision: Revision::new(number("generation")?, number("number")?),
            apply_us: number("apply_us")?,
            rejected: from_json::<Vec<RejectedResource>>("rejected resources", &rejected)?,
        }),
    };
    let revoked = match row.maybe_int("revoked_at")? {
        None => None,
        Some(at) => Some((at, row.maybe_text("revoked_by")?.unwrap_or_default())),
    };
    Ok(Sidecar {
        id: row.text("id")?,
        namespace: row.text("namespace")?,
        facts: SidecarFacts {
            name: row.text("name")?,
            labels: from_json("labels", &row.text("labels")?)?,
            version: row.text("version")?,
            contract: row.small("contract")?,
        },
        agents: row.list("agents")?,
        upstreams: row.list("upstreams")?,
        scope: SidecarScope {
            agents: row.list("allowed_agents")?,
            upstreams: row.list("allowed_upstreams")?,
        },
        epoch: row.count("epoch")?,
        enrolled_at: row.int("enrolled_at")?,
        revoked,
        last_seen: row.maybe_int("seen_at")?.unwrap_or_default(),
        heartbeat: SidecarHeartbeat {
            lease_age_ms: number("lease_age_ms")?,
            high_water: number("high_water")?,
            open_intents: u32::try_from(number("open_intents")?).unwrap_or(u32::MAX),
            stop_sequence: number("stop_sequence")?,
        },
        ack,
        acked_at: row.maybe_int("acked_at")?.unwrap_or_default(),
    })
}

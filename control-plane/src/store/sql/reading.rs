//! Reading the chain.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{
    SqlStore, acts, by_prefix, checkpoints, ingest, transact,
    tx::Tx,
    value::{Arg, Row, args},
};
use crate::store::{
    error::{StoreError, StoreResult},
    records::{
        ChainHead, ChainPosition, CheckpointRow, Gap, GapKind, IngestBatch, OWN_SOURCE, RecordFilter,
        Records, SessionRow, StoredRecord,
    },
    sidecars::EpochMark,
    types::{Act, Micros},
};

const COLUMNS: &str = "generation, seq, id, time, header, payload, hash, mac, key_id";

/// A record's own time can be later than its commit by so much, where clocks differ.
const CLOCK_SKEW: Micros = 24 * 3600 * 1_000_000;

#[async_trait]
impl Records for SqlStore {
    async fn ingest(&self, batches: Vec<IngestBatch>) -> StoreResult<Vec<EpochMark>> {
        transact!(write self, "putting records into the chain", tx => ingest::ingest(tx, &batches))
    }

    async fn append_act(&self, act: Act) -> StoreResult<ChainPosition> {
        transact!(write self, "recording an act", tx => acts::append(tx, &act))
    }

    async fn chain_head(&self) -> StoreResult<ChainHead> {
        transact!(read self, "reading the chain's head", tx => head(tx))
    }

    async fn records(&self, filter: RecordFilter) -> StoreResult<Vec<StoredRecord>> {
        transact!(read self, "listing records", tx => list(tx, &filter))
    }

    async fn record(&self, id: &str) -> StoreResult<StoredRecord> {
        transact!(read self, "reading a record", tx => one(tx, id))
    }

    async fn records_after(&self, after: ChainPosition, limit: u32) -> StoreResult<Vec<StoredRecord>> {
        transact!(read self, "reading the chain", tx => after_position(tx, after, limit))
    }

    async fn sessions(&self, namespace: Option<&str>, limit: u32) -> StoreResult<Vec<SessionRow>> {
        transact!(read self, "listing sessions", tx => sessions(tx, namespace, limit))
    }

    async fn gaps(&self) -> StoreResult<Vec<Gap>> {
        transact!(read self, "looking for gaps", tx => gaps(tx))
    }

    async fn insert_checkpoint(&self, checkpoint: CheckpointRow) -> StoreResult<()> {
        transact!(write self, "keeping a checkpoint", tx => checkpoints::insert(tx, &checkpoint))
    }

    async fn checkpoints(&self, limit: u32) -> StoreResult<Vec<CheckpointRow>> {
        transact!(read self, "reading checkpoints", tx => checkpoints::list(tx, limit))
    }

    async fn erase_payload(&self, id: &str, act: Act) -> StoreResult<()> {
        transact!(write self, "erasing a payload", tx => erase(tx, id, &act))
    }
}

async fn head(tx: &mut Tx) -> StoreResult<ChainHead> {
    let row = tx
        .one("SELECT generation, seq, hash FROM chain_head", &[])
        .await?;
    Ok(ChainHead {
        at: position(&row)?,
        hash: row.hash("hash")?,
        database_time: tx.now().await?,
    })
}

fn position(row: &Row) -> StoreResult<ChainPosition> {
    Ok(ChainPosition {
        generation: row.count("generation")?,
        seq: row.count("seq")?,
    })
}

fn record(row: &Row) -> StoreResult<StoredRecord> {
    let mac = match row.maybe_bytes("mac")? {
        None => None,
        Some(_) => Some(row.hash("mac")?),
    };
    Ok(StoredRecord {
        at: position(row)?,
        id: row.text("id")?,
        time: row.int("time")?,
        header: row.text("header")?,
        payload: row.maybe_text("payload")?,
        hash: row.hash("hash")?,
        mac,
        key_id: row.text("key_id")?,
    })
}

/// Conditions on `records`, with their arguments.
struct Conditions {
    sql: String,
    values: Vec<Arg>,
}

impl Conditions {
    /// Adds `AND <left> $n <right>`.
    fn add(&mut self, left: &str, value: impl Into<Arg>, right: &str) {
        self.values.push(value.into());
        self.sql
            .push_str(&format!(" AND {left} ${}{right}", self.values.len()));
    }
}

async fn list(tx: &mut Tx, filter: &RecordFilter) -> StoreResult<Vec<StoredRecord>> {
    let mut wanted = Conditions {
        sql: "1 = 1".to_owned(),
        values: Vec::new(),
    };
    for (column, value) in [
        ("namespace =", &filter.namespace),
        ("agent =", &filter.agent),
        ("person =", &filter.user),
        ("session =", &filter.session),
        ("upstream =", &filter.upstream),
        ("action =", &filter.action),
        ("outcome =", &filter.outcome),
        ("risk =", &filter.risk),
        ("kind =", &filter.kind),
    ] {
        if let Some(value) = value {
            wanted.add(column, value, "");
        }
    }
    if let Some(glob) = &filter.tool {
        let (condition, value) = tx.matches("tool", wanted.values.len() + 1, glob);
        wanted.values.push(value);
        wanted.sql.push_str(&format!(" AND {condition}"));
    }
    if let Some(since) = filter.since {
        wanted.add("time >=", since, "");
        wanted.add("stored_at >=", since.saturating_sub(CLOCK_SKEW), "");
    }
    if let Some(until) = filter.until {
        wanted.add("time <", until, "");
    }
    if let Some(text) = &filter.text {
        let escaped: String = text.to_lowercase().chars().flat_map(escaped).collect();
        wanted.add(
            "lower(header || coalesce(payload, '')) LIKE",
            format!("%{escaped}%"),
            " ESCAPE '!'",
        );
    }
    if let Some(before) = filter.before {
        wanted.add("(generation, seq) < (CAST(", before.generation, " AS BIGINT)");
        wanted.values.push(before.seq.into());
        wanted
            .sql
            .push_str(&format!(", CAST(${} AS BIGINT))", wanted.values.len()));
    }
    let limit = if filter.limit == 0 { 100 } else { filter.limit };
    wanted.values.push(limit.into());
    let sql = format!(
        "SELECT {COLUMNS} FROM records WHERE {} ORDER BY generation DESC, seq DESC LIMIT ${}",
        wanted.sql,
        wanted.values.len()
    );
    tx.rows(&sql, &wanted.values).await?.iter().map(record).collect()
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let escape = matches!(character, '%' | '_' | '!').then_some('!');
    escape.into_iter().chain([character])
}

async fn one(tx: &mut Tx, id: &str) -> StoreResult<StoredRecord> {
    let by_trace = format!(
        "SELECT {COLUMNS} FROM records WHERE trace_id = $1 AND trace_id <> '' \
                            ORDER BY generation DESC, seq DESC LIMIT 1"
    );
    if let Some(row) = tx.row(&by_trace, &args![id]).await? {
        return record(&row);
    }
    let exact =
        format!("SELECT {COLUMNS} FROM records WHERE id = $1 ORDER BY generation DESC, seq DESC LIMIT 1");
    if let Some(row) = tx.row(&exact, &args![id]).await? {
        return record(&row);
    }
    record(&by_prefix(tx, "record", &format!("SELECT {COLUMNS} FROM records WHERE"), id).await?)
}

async fn after_position(tx: &mut Tx, after: ChainPosition, limit: u32) -> StoreResult<Vec<StoredRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM records WHERE (generation, seq) > ($1, $2) ORDER BY generation, seq LIMIT $3"
    );
    tx.rows(&sql, &args![after.generation, after.seq, limit])
        .await?
        .iter()
        .map(record)
        .collect()
}

async fn sessions(tx: &mut Tx, namespace: Option<&str>, limit: u32) -> StoreResult<Vec<SessionRow>> {
    let condition = if namespace.is_some() {
        "AND namespace = $2"
    } else {
        ""
    };
    let mut values = args![limit].to_vec();
    values.extend(namespace.map(Arg::from));
    let sql = format!(
        "SELECT session, agent, person, namespace, count(*) AS records, min(time) AS first_seen, \
         max(time) AS last_seen FROM records WHERE session <> '' {condition} \
         GROUP BY session, agent, person, namespace ORDER BY max(time) DESC, session LIMIT $1"
    );
    let mut found = Vec::new();
    for row in tx.rows(&sql, &values).await? {
        let mut session = SessionRow {
            session: row.text("session")?,
            agent: row.text("agent")?,
            user: row.text("person")?,
            namespace: row.text("namespace")?,
            records: row.count("records")?,
            first_seen: row.int("first_seen")?,
            last_seen: row.int("last_seen")?,
            tools: Vec::new(),
        };
        let tools = tx
            .rows(
                "SELECT DISTINCT tool FROM records WHERE session = $1 AND agent = $2 AND person = $3 \
                 AND namespace = $4 AND tool <> ''",
                &args![
                    &session.session,
                    &session.agent,
                    &session.user,
                    &session.namespace
                ],
            )
            .await?;
        let sorted: BTreeSet<String> = tools
            .iter()
            .map(|row| row.text("tool"))
            .collect::<StoreResult<_>>()?;
        session.tools = sorted.into_iter().collect();
        found.push(session);
    }
    Ok(found)
}

async fn gaps(tx: &mut Tx) -> StoreResult<Vec<Gap>> {
    let mut found = Vec::new();
    let lost = "SELECT g.sidecar, g.epoch, g.first_n, g.last_n, g.seen_at, coalesce(s.namespace, '') AS namespace \
                FROM gaps g LEFT JOIN sidecars s ON s.id = g.sidecar ORDER BY g.seen_at, g.sidecar, g.epoch";
    for row in tx.rows(lost, &[]).await? {
        found.push(Gap {
            namespace: row.text("namespace")?,
            sidecar: row.text("sidecar")?,
            epoch: row.count("epoch")?,
            kind: GapKind::Lost {
                from: row.count("first_n")?,
                to: row.count("last_n")?,
            },
            seen_at: row.int("seen_at")?,
        });
    }
    let open = "SELECT e.sidecar, e.epoch, e.committed, s.namespace, coalesce(h.high_water, 0) AS high_water, \
                coalesce(h.open_intents, 0) AS open_intents, coalesce(h.seen_at, e.started_at) AS seen_at \
                FROM epochs e JOIN sidecars s ON s.id = e.sidecar \
                LEFT JOIN heartbeats h ON h.sidecar = e.sidecar AND h.epoch = e.epoch \
                WHERE NOT e.closed AND (e.epoch < s.epoch OR s.revoked_at IS NOT NULL) AND e.sidecar <> $1 \
                ORDER BY e.sidecar, e.epoch";
    for row in tx.rows(open, &args![OWN_SOURCE]).await? {
        found.push(Gap {
            namespace: row.text("namespace")?,
            sidecar: row.text("sidecar")?,
            epoch: row.count("epoch")?,
            kind: GapKind::NotClosed {
                committed: row.count("committed")?,
                high_water: row.count("high_water")?,
                open_intents: row.small("open_intents")?,
            },
            seen_at: row.int("seen_at")?,
        });
    }
    Ok(found)
}

async fn erase(tx: &mut Tx, id: &str, act: &Act) -> StoreResult<()> {
    let touched = tx
        .run(
            "UPDATE records SET payload = NULL WHERE id = $1 AND payload IS NOT NULL",
            &args![id],
        )
        .await?;
    if touched == 0 {
        return Err(StoreError::NotFound {
            what: "record with a payload",
            id: id.to_owned(),
        });
    }
    acts::append(tx, act).await?;
    Ok(())
}

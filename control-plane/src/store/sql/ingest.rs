//! Records into the chain, exactly once: the locked watermarks of the epochs, the locked head, links in memory, one bulk write.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chain::{
    hash::Hash,
    link::{ChainWriter, Head, Linked, Position},
    record::SourceRecord,
};

use super::{
    acts,
    tx::{Connection, Tx},
    value::{Arg, args},
};
use crate::store::{
    error::{StoreError, StoreResult},
    records::{ChainPosition, Incoming, IncomingRecord, IngestBatch, RefusedRecord},
    sidecars::EpochMark,
    types::{Micros, Topic},
};

/// Longest text of a column that is looked up. The header has it whole.
const COLUMN: usize = 256;

/// A record that is not in the chain yet.
pub(super) struct Fresh<'r> {
    pub(super) sidecar: &'r str,
    pub(super) epoch: u64,
    pub(super) record: Cow<'r, IncomingRecord>,
    /// What the source's next record links.
    pub(super) link: Hash,
}

/// A row of `records`.
struct NewRow<'r> {
    linked: Linked,
    key_id: String,
    stored_at: Micros,
    source: &'r SourceRecord,
    payload: Option<&'r str>,
}

/// An epoch's row, locked.
struct Locked {
    committed: u64,
    source_hash: Hash,
    generation: u64,
    closed: bool,
}

pub(super) async fn ingest(tx: &mut Tx, batches: &[IngestBatch]) -> StoreResult<Vec<EpochMark>> {
    let mut by_epoch: BTreeMap<(&str, u64), Vec<&Incoming>> = BTreeMap::new();
    for batch in batches {
        by_epoch
            .entry((&batch.sidecar, batch.epoch))
            .or_default()
            .extend(&batch.records);
    }
    let epochs: Vec<(&str, u64)> = by_epoch.keys().copied().collect();
    let generation = tx
        .one("SELECT generation FROM chain_head", &[])
        .await?
        .count("generation")?;
    let mut locked = lock(tx, &epochs).await?;
    if locked.len() < epochs.len() {
        super::epochs::adopt(tx, &epochs).await?;
        locked = lock(tx, &epochs).await?;
    }
    let mut fresh = Vec::new();
    for ((sidecar, epoch), records) in &by_epoch {
        let Some(mark) = locked.get(&((*sidecar).to_owned(), *epoch)) else {
            return Err(StoreError::NoOpenEpoch {
                sidecar: (*sidecar).to_owned(),
                epoch: *epoch,
            });
        };
        continue_epoch(tx, (sidecar, *epoch), mark, generation, records, &mut fresh).await?;
    }
    if !fresh.is_empty() {
        append(tx, &fresh).await?;
        net::crash::passes(net::crash::Point::BatchWritten);
    }
    marks(tx, &epochs).await
}

/// Takes the records that continue an epoch; drops those below its watermark, refuses holes. In the place of what is not accepted, or
/// does not link the record before it, comes a record that says so: what follows in the epoch does not wait for it.
async fn continue_epoch<'r>(
    tx: &mut Tx,
    (sidecar, epoch): (&'r str, u64),
    mark: &Locked,
    generation: u64,
    records: &[&'r Incoming],
    fresh: &mut Vec<Fresh<'r>>,
) -> StoreResult<()> {
    let (mut last, mut prev) = (mark.committed, mark.source_hash);
    // A restore may have lost records that were settled before it, so that their source no longer has them.
    let mut may_skip = mark.generation != generation;
    for incoming in records.iter().copied() {
        let (n, link) = (incoming.n(), incoming.link());
        if n <= last {
            continue;
        }
        if mark.closed {
            return Err(StoreError::NoOpenEpoch {
                sidecar: sidecar.to_owned(),
                epoch,
            });
        }
        let follows = n == last + 1;
        if !follows && may_skip {
            lost(tx, (sidecar, epoch), last + 1, n - 1).await?;
        } else if !follows {
            return Err(StoreError::Hole {
                sidecar: sidecar.to_owned(),
                epoch,
                expected: last + 1,
                found: n,
            });
        }
        let record = match incoming {
            Incoming::Record(record) if !follows || record.record.source_prev == Some(prev) => {
                Cow::Borrowed(&**record)
            }
            Incoming::Record(record) => {
                let refused = unlinked(record, link);
                Cow::Owned(acts::standing_for(tx, &refused, (sidecar, epoch), prev).await?)
            }
            Incoming::Refused(refused) => {
                Cow::Owned(acts::standing_for(tx, refused, (sidecar, epoch), prev).await?)
            }
        };
        may_skip = false;
        (last, prev) = (n, link);
        fresh.push(Fresh {
            sidecar,
            epoch,
            record,
            link,
        });
    }
    Ok(())
}

/// A source whose own chain is broken would make the whole chain fail its verification.
fn unlinked(record: &IncomingRecord, link: Hash) -> RefusedRecord {
    RefusedRecord {
        n: record.n,
        link,
        namespace: record.record.namespace.clone(),
        reason: "it does not link the record before it".to_owned(),
    }
}

async fn lost(tx: &mut Tx, (sidecar, epoch): (&str, u64), from: u64, to: u64) -> StoreResult<()> {
    let now = tx.now().await?;
    tx.run(
        "INSERT INTO gaps (sidecar, epoch, first_n, last_n, seen_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (sidecar, epoch, first_n) DO NOTHING",
        &args![sidecar, epoch, from, to, now],
    )
    .await?;
    Ok(())
}

/// `(sidecar, epoch) IN (…)` with its arguments, from `$1`.
fn named(epochs: &[(&str, u64)]) -> (String, Vec<Arg>) {
    let places: Vec<String> = (0..epochs.len())
        .map(|index| format!("(${}, ${})", index * 2 + 1, index * 2 + 2))
        .collect();
    let values = epochs
        .iter()
        .flat_map(|(sidecar, epoch)| [Arg::from(*sidecar), Arg::from(*epoch)])
        .collect();
    (
        format!("(sidecar, epoch) IN (VALUES {})", places.join(", ")),
        values,
    )
}

async fn lock(tx: &mut Tx, epochs: &[(&str, u64)]) -> StoreResult<BTreeMap<(String, u64), Locked>> {
    if epochs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (condition, values) = named(epochs);
    let sql = format!(
        "SELECT sidecar, epoch, committed, source_hash, generation, closed FROM epochs WHERE {condition} \
         ORDER BY sidecar, epoch FOR UPDATE"
    );
    tx.rows(&sql, &values)
        .await?
        .iter()
        .map(|row| {
            let locked = Locked {
                committed: row.count("committed")?,
                source_hash: row.hash("source_hash")?.into(),
                generation: row.count("generation")?,
                closed: row.flag("closed")?,
            };
            Ok(((row.text("sidecar")?, row.count("epoch")?), locked))
        })
        .collect()
}

async fn marks(tx: &mut Tx, epochs: &[(&str, u64)]) -> StoreResult<Vec<EpochMark>> {
    if epochs.is_empty() {
        return Ok(Vec::new());
    }
    let (condition, values) = named(epochs);
    super::epochs::marks(tx, &condition, &values).await
}

/// Locks the head and appends records whose epochs are locked; moves head and watermarks.
pub(super) async fn append(tx: &mut Tx, fresh: &[Fresh<'_>]) -> StoreResult<ChainPosition> {
    let mut writer = locked_writer(tx).await?;
    let stored_at = tx.now().await?;
    let key_id = writer.key_id().unwrap_or_default().to_owned();
    let mut rows = Vec::with_capacity(fresh.len());
    let mut reached: BTreeMap<(&str, u64), (u64, Hash)> = BTreeMap::new();
    for one in fresh {
        let linked = writer
            .append(&one.record.source)
            .map_err(|error| StoreError::Invalid {
                what: "record",
                reason: error.to_string(),
            })?;
        reached.insert((one.sidecar, one.epoch), (one.record.n, one.link));
        rows.push(NewRow {
            linked,
            key_id: key_id.clone(),
            stored_at,
            source: &one.record.record,
            payload: one.record.payload.as_deref(),
        });
    }
    write_rows(tx, &rows).await?;
    let head = writer.head();
    move_head(tx, &head).await?;
    for ((sidecar, epoch), (last, link)) in &reached {
        tx.run(
            "UPDATE epochs SET committed = $3, generation = $4, source_hash = $5 WHERE sidecar = $1 AND epoch = $2",
            &args![
                *sidecar,
                *epoch,
                *last,
                head.at.generation,
                link.as_bytes(),
            ],
        )
        .await?;
    }
    write_marks(
        tx,
        &head,
        reached
            .iter()
            .map(|((sidecar, epoch), (last, _))| (*sidecar, *epoch, *last)),
    )
    .await?;
    tx.wake(Topic::Records);
    Ok(ChainPosition {
        generation: head.at.generation,
        seq: head.at.seq,
    })
}

/// Remembers how far each epoch is in the chain at this head.
async fn write_marks<'m>(
    tx: &mut Tx,
    head: &Head,
    marks: impl Iterator<Item = (&'m str, u64, u64)>,
) -> StoreResult<()> {
    let rows: Vec<Vec<Arg>> = marks
        .map(|(sidecar, epoch, n)| args![head.at.generation, head.at.seq, sidecar, epoch, n].to_vec())
        .collect();
    tx.insert_many(
        "INSERT INTO ingest_marks (generation, seq, sidecar, epoch, n)",
        &rows,
        "",
    )
    .await?;
    Ok(())
}

/// Locks the head; answers a writer that continues there.
pub(super) async fn locked_writer(tx: &mut Tx) -> StoreResult<ChainWriter> {
    let row = tx
        .one("SELECT generation, seq, hash FROM chain_head FOR UPDATE", &[])
        .await?;
    let at = Position {
        generation: row.count("generation")?,
        seq: row.count("seq")?,
    };
    Ok(ChainWriter::new(
        Head {
            at,
            hash: row.hash("hash")?.into(),
        },
        tx.mac_key.clone(),
    ))
}

pub(super) async fn move_head(tx: &mut Tx, head: &Head) -> StoreResult<()> {
    tx.run(
        "UPDATE chain_head SET generation = $1, seq = $2, hash = $3",
        &args![head.at.generation, head.at.seq, head.hash.as_bytes()],
    )
    .await?;
    Ok(())
}

const COLUMNS: &str = "generation, seq, stored_at, id, time, kind, namespace, sidecar, epoch, n, agent, \
                                  person, session, tool, upstream, action, outcome, risk, trace_id, header, payload, \
                                  hash, mac, key_id";

/// Writes rows in bulk: COPY on Postgres, many rows per statement on SQLite.
async fn write_rows(tx: &mut Tx, rows: &[NewRow<'_>]) -> StoreResult<()> {
    let rows: Vec<Vec<Arg>> = rows.iter().map(columns).collect();
    if let Connection::Postgres(connection) = tx.connection() {
        crate::store::postgres::copy(connection, &format!("COPY records ({COLUMNS}) FROM STDIN"), &rows).await
    } else {
        tx.insert_many(&format!("INSERT INTO records ({COLUMNS})"), &rows, "")
            .await
            .map(|_| ())
    }
}

fn columns(row: &NewRow<'_>) -> Vec<Arg> {
    let source = row.source;
    let optional = |text: Option<&str>| Arg::from(column(text.unwrap_or_default()));
    args![
        row.linked.at.generation,
        row.linked.at.seq,
        row.stored_at,
        column(&source.id),
        source.time.micros(),
        source.kind.name(),
        column(&source.namespace),
        column(source.sidecar.as_deref().unwrap_or_default()),
        source.epoch.unwrap_or_default(),
        source.n.unwrap_or_default(),
    ]
    .into_iter()
    .chain([
        optional(source.agent.as_deref()),
        optional(source.user.as_deref()),
        optional(source.session.as_deref()),
        optional(source.tool.as_deref()),
        optional(source.upstream.as_deref()),
        optional(source.action.map(|action| action.name())),
        optional(Some(source.outcome.name())),
        optional(source.risk.as_deref()),
        optional(source.trace_id.as_deref()),
        Arg::Text(row.linked.header.clone()),
        Arg::MaybeText(row.payload.map(str::to_owned)),
        Arg::Bytes(row.linked.hash.as_bytes().to_vec()),
        Arg::MaybeBytes(row.linked.mac.map(|mac| mac.as_bytes().to_vec())),
        Arg::Text(row.key_id.clone()),
    ])
    .collect()
}

/// A text that can be a column with an index: without NUL, which Postgres refuses, and not too long.
fn column(text: &str) -> String {
    if text.len() <= COLUMN && !text.contains('\0') {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars().filter(|character| *character != '\0') {
        if kept.len() + character.len_utf8() > COLUMN {
            break;
        }
        kept.push(character);
    }
    kept
}

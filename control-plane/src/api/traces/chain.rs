//! The chain: verification, export, keys, checkpoints, gaps.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::verify::CheckpointLine;
use futures_util::stream;
use http::{HeaderMap, header};
use net::problem::Problem;
use proto::v1::PublicKey;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::input::{MAX_NUMBER, NoParams, Params};
use super::super::{page, text};
use crate::auth::Operator;
use crate::core::Core;
use crate::keys::hex;
use crate::store::records::{ChainPosition, GapKind};
use crate::traces::{ChainItem, ChainReader, Part, line, signed};

const JSON_LINES: &str = "application/jsonl; charset=utf-8";
/// What precedes the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410).
const SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

pub(in super::super) async fn verify(
    State(core): State<Arc<Core>>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Value>, Problem> {
    let began = core.clock.boot_now();
    let report = crate::traces::verify(&core).await?;
    let took = core.clock.since(began).as_millis();
    let first_bad = report.damage.as_ref().map(|damage| {
        json!({
            "generation": damage.at.generation,
            "seq": damage.at.seq,
            "damage": damage.kind.name(),
            "detail": damage.detail,
        })
    });
    let last = report.last.unwrap_or_default();
    let mut answer = json!({
        "valid": report.is_intact(),
        "checked": report.records,
        "checkpoints": report.checkpoints,
        "head": {
            "generation": last.generation,
            "seq": last.seq,
            "hash": report.head.map(|hash| hash.to_string()),
        },
        "duration_ms": u64::try_from(took).unwrap_or(u64::MAX),
        "report": report,
    });
    if let (Some(fields), Some(first_bad)) = (answer.as_object_mut(), first_bad) {
        fields.insert("first_bad".to_owned(), first_bad);
    }
    Ok(Json(answer))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Range {
    generation: Option<u64>,
    from: Option<u64>,
    until: Option<u64>,
}

impl Range {
    /// Numbers without a generation are of the present one.
    fn part(&self, present: u64) -> Result<Part, Problem> {
        let given = [self.generation, self.from, self.until];
        if given.into_iter().flatten().any(|number| number > MAX_NUMBER) {
            return Err(Problem::bad_request(
                "generation, from and until are numbers of records",
            ));
        }
        let generation = self.generation.unwrap_or(present);
        let at = |seq| ChainPosition { generation, seq };
        Ok(match (self.generation, self.from, self.until) {
            (None, None, None) => Part::default(),
            (None, None, Some(until)) => Part {
                from: None,
                until: Some(at(until)),
            },
            (None, Some(from), until) => Part {
                from: Some(at(from)),
                until: until.map(at),
            },
            (Some(_), from, until) => Part {
                from: Some(at(from.unwrap_or(1))),
                until: Some(at(until.unwrap_or(MAX_NUMBER))),
            },
        })
    }
}

/// One batch is in memory at a time; the next is read when the client has taken it.
pub(in super::super) async fn export(
    State(core): State<Arc<Core>>,
    Params(range): Params<Range>,
) -> Result<Response, Problem> {
    let present = core.store.chain_head().await?.at.generation;
    let part = range.part(present)?;
    let reader = ChainReader::open(core.store.clone(), part).await?;
    let batches = stream::try_unfold(reader, |mut reader| async move {
        let Some(items) = reader.next().await.map_err(broken)? else {
            return Ok(None);
        };
        let text = lines(&items).map_err(broken)?;
        Ok::<_, std::io::Error>(Some((text, reader)))
    });
    let name = "attachment; filename=\"toolgate-traces.jsonl\"";
    let headers = [
        (header::CONTENT_TYPE, JSON_LINES),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, Body::from_stream(batches)).into_response())
}

/// The client sees a transfer that breaks off, never one that looks whole.
fn broken(error: impl std::fmt::Display) -> std::io::Error {
    tracing::error!(%error, "an export broke off");
    std::io::Error::other("the export broke off")
}

fn lines(items: &[ChainItem]) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for item in items {
        text.push_str(&match item {
            ChainItem::Record(record) => line(record).to_line()?,
            ChainItem::Checkpoint(checkpoint) => CheckpointLine { checkpoint }.to_line()?,
        });
    }
    Ok(text)
}

/// With `Accept: text/plain`: the keys of checkpoints in hexadecimal, one a line, as `toolgate trace verify --public-key` reads them.
pub(in super::super) async fn keys(
    State(core): State<Arc<Core>>,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
) -> Response {
    let keys = core.keys.public_keys();
    if accepts(&headers, "text/plain") {
        let of_checkpoints = keys.iter().filter(|key| key.purpose == "checkpoint");
        let text: String = of_checkpoints
            .map(|key| hex::encode(&key.ed25519) + "\n")
            .collect();
        return text.into_response();
    }
    let shown: Vec<Value> = keys.iter().map(key).collect();
    Json(shown).into_response()
}

fn key(key: &PublicKey) -> Value {
    let der = [SPKI.as_slice(), &key.ed25519].concat();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode(der)
    );
    json!({
        "id": key.id,
        "purpose": key.purpose,
        "public_key": STANDARD.encode(&key.ed25519),
        "hex": hex::encode(&key.ed25519),
        "pem": pem,
    })
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let accepted = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains(kind))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Newest {
    limit: Option<u32>,
}

/// With `Accept: application/jsonl`: one signed checkpoint a line, as `toolgate trace verify --checkpoints` reads them.
pub(in super::super) async fn checkpoints(
    State(core): State<Arc<Core>>,
    Params(newest): Params<Newest>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let rows = core.store.checkpoints(page::size(newest.limit)?).await?;
    if accepts(&headers, "jsonl") || accepts(&headers, "ndjson") {
        let mut text = String::new();
        for row in rows {
            let line = serde_json::to_string(&signed(row))
                .map_err(|error| super::super::refusal::internal(&error))?;
            text.push_str(&line);
            text.push('\n');
        }
        return Ok(([(header::CONTENT_TYPE, JSON_LINES)], text).into_response());
    }
    let shown: Vec<Value> = rows
        .into_iter()
        .map(|row| {
            json!({
                "generation": row.at.generation,
                "seq": row.at.seq,
                "hash": hex::encode(&row.hash),
                "time": text::time(row.time),
                "text": row.text,
                "signature": hex::encode(&row.signature),
                "key_id": row.key_id,
            })
        })
        .collect();
    Ok(Json(shown).into_response())
}

pub(in super::super) async fn gaps(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Vec<Value>>, Problem> {
    let mut gaps = core.store.gaps().await?;
    gaps.retain(|gap| operator.reach().covers(&gap.namespace));
    let gaps = gaps.into_iter().map(|gap| {
        let mut shown = json!({
            "namespace": gap.namespace,
            "sidecar": gap.sidecar,
            "epoch": gap.epoch,
            "seen_at": text::time(gap.seen_at),
        });
        let more = match gap.kind {
            GapKind::Lost { from, to } => json!({"kind": "lost", "from": from, "to": to}),
            GapKind::NotClosed {
                committed,
                high_water,
                open_intents,
            } => json!({
                "kind": "not_closed", "committed": committed, "high_water": high_water, "open_intents": open_intents,
            }),
        };
        if let (Some(shown), Value::Object(more)) = (shown.as_object_mut(), more) {
            shown.extend(more);
        }
        shown
    });
    Ok(Json(gaps.collect()))
}

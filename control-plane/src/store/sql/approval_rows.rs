//! Approvals as rows: reading one, lists, the feed of events.

use std::time::Duration;

use policy::approval::UnknownStatus;

use super::{
    tx::Tx,
    value::{Arg, Row, args},
};
use crate::store::{
    approvals::{Approval, ApprovalDraft, ApprovalEvent, ApprovalFilter, ApprovalStatus, Binding},
    error::{StoreError, StoreResult},
    types::Revision,
};

pub(super) const COLUMNS: &str = "id, namespace, sidecar, call_id, agent, person, tool, fingerprint, arguments_digest, \
                       digest_key_id, session, binding, params, classification, policy_rule, rule_index, generation, \
                       number, message, injection_risk, resources, identity, floors, timeout_us, status, created_at, \
                       expires_at, resolved_at, resolved_by, resolved_via, reasoning, confidence, consumed_at, \
                       consumed_by, claim_generation, claim_number, claim_stops, cursor";

pub(super) async fn list(tx: &mut Tx, filter: &ApprovalFilter) -> StoreResult<Vec<Approval>> {
    let mut sql = format!("SELECT {COLUMNS} FROM approvals WHERE 1 = 1");
    let mut values: Vec<Arg> = Vec::new();
    if let Some(status) = filter.status {
        values.push(status.as_str().into());
        sql.push_str(&format!(" AND status = ${}", values.len()));
    }
    if let Some(namespace) = &filter.namespace {
        values.push(namespace.into());
        sql.push_str(&format!(" AND namespace = ${}", values.len()));
    }
    for (column, glob) in [("agent", &filter.agent), ("tool", &filter.tool)] {
        let Some(glob) = glob else { continue };
        let (condition, value) = tx.matches(column, values.len() + 1, glob);
        values.push(value);
        sql.push_str(&format!(" AND {condition}"));
    }
    if let Some(upstream) = &filter.upstream {
        // A tool without a prefix is of the upstream that declares it, as stops have it.
        values.push(upstream.into());
        let own = values.len();
        values.push(format!("{upstream}.").into());
        let prefix = values.len();
        sql.push_str(&format!(
            " AND (substr(tool, 1, length(${prefix})) = ${prefix} OR (tool NOT LIKE '%.%' AND EXISTS (SELECT 1 FROM tools \
             WHERE tools.namespace = approvals.namespace AND tools.name = approvals.tool AND tools.upstream = ${own})))"
        ));
    }
    if let Some(before) = &filter.before {
        values.push(before.into());
        sql.push_str(&format!(
            " AND (created_at, id) < (SELECT created_at, id FROM approvals WHERE id = ${})",
            values.len()
        ));
    }
    values.push(if filter.limit == 0 { 100_u32 } else { filter.limit }.into());
    sql.push_str(&format!(
        " ORDER BY created_at DESC, id DESC LIMIT ${}",
        values.len()
    ));
    tx.rows(&sql, &values).await?.iter().map(approval).collect()
}

pub(super) async fn events_after(tx: &mut Tx, cursor: u64, limit: u32) -> StoreResult<Vec<ApprovalEvent>> {
    let columns: Vec<String> = COLUMNS.split(", ").map(|column| format!("a.{column}")).collect();
    let sql = format!(
        "SELECT e.cursor AS event_cursor, e.status AS event_status, e.consumed AS event_consumed, e.at AS event_at, {} \
         FROM approval_events e JOIN approvals a ON a.id = e.approval WHERE e.cursor > $1 ORDER BY e.cursor LIMIT $2",
        columns.join(", ")
    );
    tx.rows(&sql, &args![cursor, limit])
        .await?
        .iter()
        .map(|row| {
            Ok(ApprovalEvent {
                cursor: row.count("event_cursor")?,
                status: status(row, "event_status")?,
                consumed: row.flag("event_consumed")?,
                at: row.int("event_at")?,
                approval: approval(row)?,
            })
        })
        .collect()
}

pub(super) fn approval(row: &Row) -> StoreResult<Approval> {
    let asked = ApprovalDraft {
        namespace: row.text("namespace")?,
        sidecar: row.text("sidecar")?,
        call_id: row.text("call_id")?,
        binding: Binding {
            agent: row.text("agent")?,
            user: row.text("person")?,
            tool: row.text("tool")?,
            fingerprint: row.bytes("fingerprint")?,
            arguments_digest: row.bytes("arguments_digest")?,
            digest_key_id: row.text("digest_key_id")?,
            session: row.text("session")?,
        },
        params: row.bytes("params")?.into(),
        classification: row.bytes("classification")?.into(),
        policy_rule: row.text("policy_rule")?,
        rule_index: row.small("rule_index")?,
        revision: Revision::new(row.count("generation")?, row.count("number")?),
        message: row.text("message")?,
        injection_risk: row.flag("injection_risk")?,
        resources: row.list("resources")?,
        identity: row.text("identity")?,
        floors: row.list("floors")?,
        timeout: Duration::from_micros(row.count("timeout_us")?),
    };
    Ok(Approval {
        id: row.text("id")?,
        asked,
        status: status(row, "status")?,
        created_at: row.int("created_at")?,
        expires_at: row.int("expires_at")?,
        resolved_at: row.maybe_int("resolved_at")?,
        resolved_by: row.text("resolved_by")?,
        resolved_via: row.text("resolved_via")?,
        reasoning: row.text("reasoning")?,
        confidence: row.maybe_real("confidence")?,
        consumed_at: row.maybe_int("consumed_at")?,
        consumed_by: row.text("consumed_by")?,
        cursor: row.count("cursor")?,
    })
}

fn status(row: &Row, column: &str) -> StoreResult<ApprovalStatus> {
    let text = row.text(column)?;
    text.parse().map_err(|error: UnknownStatus| StoreError::Invalid {
        what: "approval status",
        reason: error.to_string(),
    })
}

//! Records as calls that policies can decide again.

use std::collections::BTreeSet;

use chain::payload::Payload;
use chain::record::{Header, SourceRecord};
use chain::vocabulary::{Action as Recorded, RecordKind};
use net::problem::Problem;
use policy::decide::{Floor, FloorKind};
use policy::{Action, replay};
use tools::classify::SideEffectKind;
use tools::targets::{Extent, Targets};

use crate::core::Core;
use crate::store::records::{ChainPosition, RecordFilter, StoredRecord};

/// Records in one page of the store.
const PAGE: u32 = 1_000;

/// Calls and questions of a range, newest first.
pub(super) struct Range {
    pub(super) calls: Vec<replay::Recorded>,
    /// Records without a decision of policies: refused before it, or acts.
    pub(super) undecided: usize,
    /// More records are in the range than were read.
    pub(super) is_cut: bool,
}

/// Reads at most `limit` records that a filter finds.
pub(super) async fn range(core: &Core, filter: RecordFilter, limit: usize) -> Result<Range, Problem> {
    let mut range = Range {
        calls: Vec::new(),
        undecided: 0,
        is_cut: false,
    };
    let mut before: Option<ChainPosition> = filter.before;
    let mut read = 0;
    loop {
        let page = RecordFilter {
            before,
            limit: PAGE,
            ..filter.clone()
        };
        let records = core.store.records(page).await?;
        let Some(last) = records.last() else { break };
        before = Some(last.at);
        for record in &records {
            if read == limit {
                range.is_cut = true;
                return Ok(range);
            }
            read += 1;
            match call(record) {
                Some(call) => range.calls.push(call),
                None => range.undecided += 1,
            }
        }
        if records.len() < usize::try_from(PAGE).unwrap_or(usize::MAX) {
            break;
        }
    }
    Ok(range)
}

/// The call of a record; `None` when policies decided nothing about it.
pub(super) fn call(stored: &StoredRecord) -> Option<replay::Recorded> {
    let record = Header::decode(&stored.header).ok()?.record;
    if record.kind == RecordKind::Act {
        return None;
    }
    let payload: Option<Payload> = stored
        .payload
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let has_params = payload.as_ref().is_some_and(|payload| payload.params.is_some());
    // A call without arguments has none to keep.
    let is_empty = record.request_bytes.is_some_and(|bytes| bytes <= 2);
    let params = payload
        .as_ref()
        .and_then(|payload| Some(payload.params.as_ref()?.get().to_owned()))
        .or_else(|| (is_empty && !has_params).then(|| "{}".to_owned()));
    Some(replay::Recorded {
        action: decided(&record)?,
        agent: record.agent.as_deref()?.parse().ok()?,
        user: record.user.as_deref().and_then(|user| user.parse().ok()),
        session: record.session.as_deref().and_then(|session| session.parse().ok()),
        namespace: record.namespace.parse().ok()?,
        tool: record.tool.as_deref()?.parse().ok()?,
        params,
        argv: payload.as_ref().and_then(|payload| payload.argv.clone()),
        risks: replay::risks_of(record.risks.iter().map(AsRef::as_ref)),
        capability: record.capability.as_deref().map(str::to_owned),
        side_effect: record.side_effect.as_deref().and_then(side_effect),
        targets: targets(payload),
        floors: floors(&record),
        id: record.id,
    })
}

/// What policies decided, before a grant.
fn decided(record: &SourceRecord) -> Option<Action> {
    if record.grant.is_some() {
        return Some(Action::HumanApproval);
    }
    Some(match record.action? {
        Recorded::Allow => Action::Allow,
        Recorded::HumanApproval => Action::HumanApproval,
        Recorded::Deny => Action::Deny,
    })
}

fn side_effect(name: &str) -> Option<SideEffectKind> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
}

fn targets(payload: Option<Payload>) -> Targets {
    let Some(payload) = payload else {
        return Targets::UNKNOWN;
    };
    let extent = |members: Option<Vec<String>>| members.map_or(Extent::Unknown, Extent::Known);
    Targets {
        resources: extent(payload.resources),
        columns: extent(payload.columns),
        hosts: extent(payload.hosts),
        paths: extent(payload.paths),
        recipients: extent(payload.recipients),
    }
}

/// The floors that do not come from policies; those come from the policies that decide again.
fn floors(record: &SourceRecord) -> Vec<Floor> {
    let mut seen = BTreeSet::new();
    let mut floors = Vec::new();
    for hit in &record.floors {
        let kind = match hit.name.as_ref() {
            "pin:new" => FloorKind::PinNew,
            "pin:changed" => FloorKind::PinChanged,
            "dispatcher" => FloorKind::Dispatcher,
            _ => continue,
        };
        let action = match hit.action {
            Recorded::Allow => Action::Allow,
            Recorded::HumanApproval => Action::HumanApproval,
            Recorded::Deny => Action::Deny,
        };
        if seen.insert(hit.name.as_ref()) {
            floors.push(Floor { kind, action });
        }
    }
    floors
}

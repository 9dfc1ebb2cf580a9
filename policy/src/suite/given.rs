//! What a test says about a call.

use tools::classify::{Access, Risk, RiskSet};
use tools::targets::Extent;

use super::Given;
use crate::decide::{Floor, FloorKind};
use crate::document::Action;
use crate::nearest;
use crate::yaml::{MapReader, Problems, Value};

pub(super) fn read(reader: &MapReader<'_, '_>, problems: &Problems) -> Given {
    let texts = |key: &'static str| -> Option<Vec<String>> {
        let found = reader.strings(key)?;
        Some(found.into_iter().map(|(text, _)| text.to_owned()).collect())
    };
    let mut given = Given {
        capability: reader.string("capability").map(str::to_owned),
        tags: texts("tags"),
        ..Given::default()
    };
    if let Some(value) = reader.optional("risk") {
        let mut risks = RiskSet::EMPTY;
        let all = Risk::ALL.map(|risk| (risk.name(), risk));
        for risk in words(value, "risk", &all, problems) {
            risks.insert(risk);
        }
        given.risk = Some(risks);
    }
    if let Some(value) = reader.optional("access") {
        let all = [
            ("read", Access::Read),
            ("write", Access::Write),
            ("unknown", Access::Unknown),
        ];
        given.access = words(value, "access", &all, problems).into_iter().next();
    }
    if let Some(value) = reader.optional("floors") {
        let approval = |kind| Floor {
            kind,
            action: Action::HumanApproval,
        };
        let denied = Floor {
            kind: FloorKind::Dispatcher,
            action: Action::Deny,
        };
        let all = [
            ("pin:new", Floor::PIN_NEW),
            ("pin:changed", Floor::PIN_CHANGED),
            ("dispatcher", denied),
            ("dispatcher:human_approval", approval(FloorKind::Dispatcher)),
        ];
        given.floors = Some(words(value, "floor", &all, problems));
    }
    let extent = |key| texts(key).map_or(Extent::Unknown, Extent::Known);
    given.targets.resources = extent("resources");
    given.targets.columns = extent("columns");
    given.targets.hosts = extent("hosts");
    given.targets.paths = extent("paths");
    given.targets.recipients = extent("recipients");
    given
}

fn words<T: Copy>(value: &Value, what: &str, known: &[(&'static str, T)], problems: &Problems) -> Vec<T> {
    let texts = problems.strings(value).unwrap_or_default();
    let mut found = Vec::new();
    for (text, place) in texts {
        match known.iter().find(|(name, _)| *name == text) {
            Some((_, word)) => found.push(*word),
            None => {
                let hint = nearest::hint(text, known.iter().map(|(name, _)| *name));
                problems.at_with_hint(place, format!("{what} \"{text}\" is unknown"), hint);
            }
        }
    }
    found
}

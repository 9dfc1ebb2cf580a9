//! What a rule can be for the calls of one tool.

use tools::classify::{Risk, RiskSet};

use super::possible::Possible;
use super::query::ToolQuery;
use crate::document::{Condition, Field, Rule, Selector, Test};
use crate::evaluate::{Truth, selector_truth, test_truth};

/// The results that calls of the tool can give a rule that covers it.
pub(crate) fn possible_rule(rule: &Rule, query: &ToolQuery<'_>) -> Possible {
    let always = Possible::only(Truth::True);
    let selected = rule.selectors.iter().fold(always, |so_far, part| {
        so_far.and(possible_selector(part, rule, query))
    });
    match &rule.condition {
        Some(condition) => selected.and(possible_condition(condition, query)),
        None => selected,
    }
}

fn possible_condition(condition: &Condition, query: &ToolQuery<'_>) -> Possible {
    match condition {
        Condition::All(parts) => parts.iter().fold(Possible::only(Truth::True), |so_far, part| {
            so_far.and(possible_condition(part, query))
        }),
        Condition::Any(parts) => parts.iter().fold(Possible::only(Truth::False), |so_far, part| {
            so_far.or(possible_condition(part, query))
        }),
        Condition::Not(part) => !possible_condition(part, query),
        Condition::Test(test) => possible_test(test, query),
    }
}

/// The results of one test: the caller is known, the arguments are not.
pub(super) fn possible_test(test: &Test, query: &ToolQuery<'_>) -> Possible {
    match &test.field {
        Field::Agent | Field::User => Possible::only(test_truth(test, &query.as_call())),
        Field::Session if query.session.is_some() => Possible::only(test_truth(test, &query.as_call())),
        Field::Session | Field::Argument(_) => Possible::ANY,
    }
}

/// The results of one selector.
pub(super) fn possible_selector(selector: &Selector, rule: &Rule, query: &ToolQuery<'_>) -> Possible {
    let as_now = || Possible::only(selector_truth(selector, rule.action, &query.as_call()));
    let risks = query.classification.possible_risks;
    let calls_differ = risks.iter().count() > 1 || risks != query.classification.risks;
    match selector {
        Selector::Family(_) | Selector::Tags(_) | Selector::User(_) => as_now(),
        Selector::Risk(listed) if calls_differ => {
            possible_risk(*listed, risks.union(query.classification.risks))
        }
        Selector::Access(_) | Selector::SideEffect(_) | Selector::Capability(_) if calls_differ => {
            Possible::ANY
        }
        Selector::Risk(_) | Selector::Access(_) | Selector::SideEffect(_) | Selector::Capability(_) => {
            as_now()
        }
        Selector::Targets(..) if query.targets.is_none() => Possible::ANY,
        Selector::Targets(..) => as_now(),
    }
}

/// A call has any non-empty part of the possible risks.
fn possible_risk(listed: RiskSet, risks: RiskSet) -> Possible {
    risks.iter().fold(Possible::NONE, |so_far, risk| {
        so_far.with(if listed.contains(risk) {
            Truth::True
        } else if risk == Risk::Unknown {
            Truth::Undecided
        } else {
            Truth::False
        })
    })
}

//! From a tool's declaration to its classification.
//!
//! One write signal outweighs any number of read signals.

use std::collections::BTreeMap;

use super::action::{self, Action, Manner, Without};
use super::call;
use super::correction::Correction;
use super::defaults;
use super::family::Generic;
use super::mapping::{Effect, Mapping, Role};
use super::name::NameReading;
use super::output;
use super::plan::{CallPlan, Placed, Presence};
use super::program::ProgramSign;
use super::schema::{self, Arguments};
use super::signal::{self, Signal, Signals};
use super::text;
use super::words;
use super::{
    Access, Classification, Family, Risk, RiskSet, RiskSource, SideEffect, SideEffectKind, SideEffectSource,
};
use crate::id::ToolName;
use crate::json::Node;
use crate::model::ToolKind;

/// What a tool claims about itself by MCP annotations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
}

/// What is known about a tool before it is called.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'a> {
    /// The governed name.
    pub name: &'a ToolName,
    /// The tool's own name, without its upstream's.
    pub local: &'a str,
    /// Where it comes from.
    pub kind: ToolKind,
    /// The description.
    pub description: Option<&'a str>,
    /// The annotations.
    pub hints: Hints,
    /// The HTTP method, for a tool that is one HTTP operation.
    pub method: Option<&'a str>,
    /// The JSON Schema of the arguments.
    pub input_schema: Option<Node<'a>>,
    /// The program that it is a command of.
    pub program: Option<&'a ProgramSign>,
}

/// Classifies a tool from its declaration. To be done once per tool.
pub fn classify_tool(declared: &Declared<'_>) -> Classification {
    judge(declared, None).0
}

/// Classifies a tool, with what an operator corrected, and prepares to judge its calls.
pub(crate) fn judge(declared: &Declared<'_>, correction: Option<&Correction>) -> (Classification, CallPlan) {
    let own_name = words::own_name(declared.local, declared.kind);
    let readable = words::split(own_name);
    let arguments = Arguments::of(declared.input_schema);
    let mut subject = Subject {
        generic: Generic::of(declared, readable.as_deref().unwrap_or_default(), &arguments),
        name: NameReading::of(readable.as_deref().unwrap_or_default()),
        is_readable: readable.is_some(),
        declared,
        own_name,
        arguments,
    };
    let said = subject.said(correction);
    subject.judge(&said, correction)
}

/// The layer that gives the base.
enum Said<'m> {
    Operator(&'m Mapping),
    Default(&'m Mapping),
    Pattern(&'static str, &'m Effect),
    Inferred,
}

struct Subject<'d> {
    declared: &'d Declared<'d>,
    own_name: &'d str,
    is_readable: bool,
    name: NameReading,
    arguments: Arguments<'d>,
    generic: Generic,
}

impl Subject<'_> {
    fn said<'m>(&mut self, correction: Option<&'m Correction>) -> Said<'m> {
        if let Some(mapping) = correction.and_then(|correction| correction.mapping.as_ref()) {
            return Said::Operator(mapping);
        }
        if let Some(mapping) = defaults::mapping(self.own_name, self.declared.kind, &self.arguments) {
            // What the mapping knows to be data is nothing to run.
            let is_data = |key: &str| {
                mapping
                    .arguments
                    .iter()
                    .any(|(name, role)| *role == Role::Data && schema::key(name) == key)
            };
            self.generic.forget(is_data);
            return Said::Default(mapping);
        }
        match defaults::pattern(self.own_name) {
            Some(pattern) => Said::Pattern(pattern.glob, &pattern.effect),
            None => Said::Inferred,
        }
    }

    fn judge(&self, said: &Said<'_>, correction: Option<&Correction>) -> (Classification, CallPlan) {
        let mut classification = Classification::unknown(self.declared.name.clone());
        if self.generic.is_generic() {
            classification.family = Family::Generic;
        }
        let signals = Signals::of(
            self.declared,
            &self.name,
            &self.arguments,
            self.is_readable,
            matches!(said, Said::Operator(_) | Said::Default(_)),
            self.generic.is_generic(),
        );
        let mut plan = self.plan(said, &signals);
        let capability = self.capability(said, &signals);
        classification.source = match said {
            Said::Operator(_) | Said::Default(_) => RiskSource::Mapped,
            Said::Pattern(..) => RiskSource::Pattern,
            Said::Inferred if plan.base.is_empty() && !plan.actions.iter().any(Action::may_write) => {
                RiskSource::Unknown
            }
            Said::Inferred => RiskSource::Inferred,
        };
        classification.access = self.access(said, &signals, &plan);
        classification.side_effect = self.side_effect(said, &signals, &classification);
        classification.reasons = self.reasons(said, &signals);
        if let Some(correction) = correction {
            correction.apply(&mut classification, &mut plan, signals.is_local);
        }
        classification.risks = call::unasked(&plan, &classification);
        classification.possible_risks = plan.possible().union(classification.risks);
        classification.risk = classification.risks.gravest();
        classification.capability = capability;
        classification.plain_read = classification.possible_risks == RiskSet::of(Risk::Read)
            && classification.access == Access::Read
            && classification.family == Family::Named
            && plan.corrected.is_none_or(|kind| kind == SideEffectKind::Read);
        (classification, plan)
    }

    fn plan(&self, said: &Said<'_>, signals: &Signals) -> CallPlan {
        let inferred = signals.risks();
        let read = RiskSet::of(Risk::Read);
        let (base, residue, without) = match said {
            Said::Operator(mapping) | Said::Default(mapping) => {
                let without = if mapping.risks == read {
                    Without::Unknown
                } else {
                    Without::Nothing
                };
                (mapping.risks, RiskSet::EMPTY, without)
            }
            Said::Pattern(_, effect) => {
                let base = effect.risks.union(signals.grave());
                (base, base, Without::Nothing)
            }
            Said::Inferred if inferred == read => (inferred, inferred, Without::Read),
            Said::Inferred if inferred.is_empty() && self.generic.is_generic() => {
                (RiskSet::of(Risk::Execution), RiskSet::EMPTY, Without::Nothing)
            }
            Said::Inferred if inferred.is_empty() => (inferred, inferred, Without::Unknown),
            Said::Inferred => (inferred, signals.residue(), Without::Nothing),
        };
        let manner = Manner {
            without,
            decides: matches!(said, Said::Inferred) && inferred.is_empty() && !self.generic.is_generic(),
            local: signals.is_local,
        };
        let mapping = match said {
            Said::Operator(mapping) | Said::Default(mapping) => Some(*mapping),
            Said::Pattern(..) | Said::Inferred => None,
        };
        let empty = (BTreeMap::new(), BTreeMap::new());
        let (tables, roles) = mapping.map_or((&empty.0, &empty.1), |mapping| {
            (&mapping.actions, &mapping.arguments)
        });
        let mut actions = action::actions(&self.arguments, tables, roles, manner);
        if self.declared.kind == ToolKind::Host && mapping.is_none() {
            actions.extend(action::undeclared_actions(manner));
        }
        let operator = matches!(said, Said::Operator(_));
        CallPlan {
            base,
            residue,
            claim: signals.claim().filter(|_| {
                let may_read =
                    base == read || !tables.is_empty() || roles.values().any(|role| text::is_text(*role));
                matches!(said, Said::Default(_)) && may_read
            }),
            correction: None,
            actions,
            presence: self.presence(mapping),
            roles: roles
                .iter()
                .map(|(name, role)| Placed {
                    key: schema::key(name),
                    name: name.clone(),
                    role: *role,
                })
                .collect(),
            extractor: None,
            generic_texts: if operator {
                Vec::new()
            } else {
                self.generic.texts()
            },
            is_opaque: self.generic.is_opaque() && !operator,
            corrected: None,
            program: self.declared.program.filter(|_| !operator).cloned(),
        }
    }

    fn presence(&self, mapping: Option<&Mapping>) -> Vec<Presence> {
        let mapped = mapping.into_iter().flat_map(|mapping| &mapping.presence);
        let mut presence: Vec<Presence> = mapped
            .map(|(name, effect)| Presence {
                key: schema::key(name),
                risks: effect.risks,
                capability: effect.capability.clone(),
                reason: format!("argument {name:?} is given"),
            })
            .collect();
        let has_role = |key: &str| {
            mapping.is_some_and(|mapping| {
                mapping
                    .arguments
                    .iter()
                    .any(|(name, role)| *role == Role::Data && schema::key(name) == key)
            })
        };
        for (key, name) in output::outputs(&self.arguments) {
            if !has_role(&key) && !presence.iter().any(|known| known.key == key) {
                presence.push(Presence {
                    key,
                    risks: RiskSet::of(Risk::LocalWrite),
                    capability: None,
                    reason: format!("argument {name:?} names a file to write to"),
                });
            }
        }
        presence
    }

    fn capability(&self, said: &Said<'_>, signals: &Signals) -> Option<String> {
        match said {
            Said::Operator(mapping) | Said::Default(mapping) => mapping.capability.clone(),
            Said::Pattern(_, effect) => effect.capability.clone(),
            Said::Inferred => {
                let act = signals.gravest()?;
                let domain = self.name.domain.map_or("other", |domain| domain.name);
                Some(format!("{domain}.{}", act.verb()))
            }
        }
    }

    fn access(&self, said: &Said<'_>, signals: &Signals, plan: &CallPlan) -> Access {
        let by_risks = |risks: RiskSet| {
            if risks == RiskSet::of(Risk::Read) {
                Access::Read
            } else if risks == RiskSet::of(Risk::Unknown) {
                Access::Unknown
            } else {
                Access::Write
            }
        };
        let actions_write = plan.actions.iter().any(Action::may_write);
        match said {
            Said::Operator(mapping) if !actions_write => by_risks(mapping.risks),
            Said::Default(mapping) if !actions_write && signals.claim().is_none() => by_risks(mapping.risks),
            Said::Pattern(_, effect) if !actions_write && signals.claim().is_none() => {
                by_risks(effect.risks.union(signals.grave()))
            }
            Said::Operator(_) | Said::Default(_) | Said::Pattern(..) => Access::Write,
            Said::Inferred if signals.writes() || actions_write => Access::Write,
            Said::Inferred if signals.reads() => Access::Read,
            Said::Inferred => Access::Unknown,
        }
    }

    fn side_effect(&self, said: &Said<'_>, signals: &Signals, classification: &Classification) -> SideEffect {
        let mapped = match said {
            Said::Operator(mapping) | Said::Default(mapping) => Some(mapping.worst().union(mapping.risks)),
            Said::Pattern(_, effect) => Some(effect.risks),
            Said::Inferred => None,
        };
        let claimed = signals
            .claimed_effect()
            .filter(|_| !matches!(said, Said::Operator(_)));
        let from_mapping = mapped.and_then(|risks| {
            Some(SideEffect {
                kind: signal::effect_of(risks)?,
                source: SideEffectSource::Mapping,
            })
        });
        let stated = match from_mapping {
            Some(effect) => signal::graver(Some(effect), claimed),
            None => signal::graver(signals.named_effect(), claimed),
        };
        let described = match said {
            Said::Inferred => signal::described(self.declared.description),
            Said::Operator(_) | Said::Default(_) | Said::Pattern(..) => None,
        };
        match signal::graver(stated, described) {
            Some(effect) => effect,
            None => classification.side_effect,
        }
    }

    fn reasons(&self, said: &Said<'_>, signals: &Signals) -> Vec<String> {
        let layer = match said {
            Said::Operator(_) => Some("mapped by an operator".to_owned()),
            Said::Default(_) => Some(format!("mapped as {:?}", self.own_name)),
            Said::Pattern(glob, _) => Some(format!("pattern {glob:?}")),
            Said::Inferred => None,
        };
        let unreadable = (!self.is_readable).then(|| "name not readable".to_owned());
        let wanted = |signal: &&Signal| match said {
            Said::Operator(_) | Said::Default(_) => signal.is_claim,
            Said::Pattern(..) | Said::Inferred => true,
        };
        let signals = signals
            .all
            .iter()
            .filter(wanted)
            .map(|signal| signal.reason.clone());
        layer
            .into_iter()
            .chain(unreadable)
            .chain(signals)
            .chain(self.generic.reasons())
            .collect()
    }
}

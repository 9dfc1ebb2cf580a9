//! Arguments whose value says what is done.

use std::collections::BTreeMap;

use super::mapping::{Effect, Role};
use super::name::acts_of_value;
use super::risk::{Risk, RiskSet};
use super::schema::{self, Arguments, Property};
use super::vocabulary::{self, Act};
use super::words;
use crate::json::Node;

/// Keys of arguments that say what is done.
const ACTIONS: [&str; 6] = ["action", "operation", "method", "op", "verb", "subcommand"];
/// Like these, but as often a setting: only unmistakable verbs of writing among its values count.
const SETTING: &str = "mode";
/// Values beyond this length are no names of actions.
const MAX_VALUE: usize = 256;

/// How a value without a verb is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Without {
    /// The tool itself says what is done.
    Nothing,
    /// The tool says that it reads: only what is declared, or what begins with a verb of writing, is an action.
    Read,
    /// Nothing is known then: the tool is mapped as a read, or says nothing itself.
    Unknown,
}

/// An argument that says what is done.
#[derive(Debug, Clone)]
pub(super) struct Action {
    pub(super) key: String,
    name: String,
    is_setting: bool,
    without: Without,
    /// Whether verbs of reading make a read, for a tool that says nothing itself.
    decides: bool,
    local: bool,
    table: BTreeMap<String, Effect>,
    declared: Option<Vec<String>>,
    default: Option<String>,
}

/// What a value says.
#[derive(Debug, Default)]
pub(super) struct Says {
    pub(super) risks: RiskSet,
    pub(super) capability: Option<String>,
    /// Whether this takes the place of what the tool itself says.
    pub(super) decides: bool,
    pub(super) reason: Option<String>,
}

/// What all action arguments of a tool have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) without: Without,
    pub(super) decides: bool,
    pub(super) local: bool,
}

/// The action arguments of a tool: those that it declares, and those that its mapping names.
pub(super) fn actions(
    arguments: &Arguments<'_>,
    tables: &BTreeMap<String, BTreeMap<String, Effect>>,
    roles: &BTreeMap<String, Role>,
    manner: Manner,
) -> Vec<Action> {
    let mut actions: Vec<Action> = tables
        .iter()
        .map(|(name, table)| Action::new(name, arguments.named(&schema::key(name)), table, manner))
        .collect();
    for property in &arguments.properties {
        let is_action = ACTIONS.contains(&property.key.as_str()) || property.key == SETTING;
        let has_role = roles.keys().any(|name| schema::key(name) == property.key);
        let is_known = actions.iter().any(|action| action.key == property.key);
        if is_action && property.accepts_text() && !has_role && !is_known {
            actions.push(Action::new(
                &property.name,
                Some(property),
                &BTreeMap::new(),
                manner,
            ));
        }
    }
    actions
}

/// Any action at all, of a tool whose arguments are not declared.
pub(super) fn undeclared_actions(manner: Manner) -> Vec<Action> {
    ACTIONS
        .iter()
        .map(|name| Action::new(name, None, &BTreeMap::new(), manner))
        .collect()
}

impl Action {
    fn new(
        name: &str,
        property: Option<&Property<'_>>,
        table: &BTreeMap<String, Effect>,
        manner: Manner,
    ) -> Self {
        let key = schema::key(name);
        Self {
            is_setting: key == SETTING,
            without: if table.is_empty() {
                manner.without
            } else {
                Without::Unknown
            },
            decides: manner.decides || !table.is_empty(),
            local: manner.local,
            table: table
                .iter()
                .map(|(value, effect)| (value.to_lowercase(), effect.clone()))
                .collect(),
            declared: property.and_then(Property::values),
            default: property.and_then(Property::default_text),
            name: name.to_owned(),
            key,
        }
    }

    /// What one call's value says.
    pub(super) fn says(&self, value: Option<Node<'_>>) -> Says {
        match value.filter(|value| !value.is_null()) {
            None => self.absent(),
            Some(value) => match value.as_str() {
                Some(text) => self.text(&text),
                None => self.not_text(),
            },
        }
    }

    /// What the values that a call may have can say.
    pub(super) fn possible(&self) -> RiskSet {
        let declared = self.worst_declared();
        if self.declared.is_some() {
            return declared.union(self.absent().risks);
        }
        let any = match self.without {
            _ if self.is_setting && self.table.is_empty() => RiskSet::KNOWN,
            Without::Nothing => RiskSet::KNOWN,
            Without::Read | Without::Unknown => RiskSet::ALL,
        };
        declared.union(any)
    }

    /// Whether a declared or usual value writes.
    pub(super) fn may_write(&self) -> bool {
        let listed = self.worst_declared();
        !listed.is_subset_of(RiskSet::of(Risk::Read))
    }

    /// Whether its values can take the place of what the tool itself says.
    fn can_decide(&self) -> bool {
        self.decides && (!self.is_setting || self.is_mapped())
    }

    /// Whether a mapping lists the values.
    pub(super) fn is_mapped(&self) -> bool {
        !self.table.is_empty()
    }

    fn worst_declared(&self) -> RiskSet {
        let listed = self.table.values().map(|effect| effect.risks);
        let declared = self.declared.iter().flatten().map(|value| self.text(value).risks);
        listed.chain(declared).fold(RiskSet::EMPTY, RiskSet::union)
    }

    fn absent(&self) -> Says {
        if let Some(default) = &self.default {
            return self.text(default);
        }
        let risks = self.worst_declared();
        Says {
            decides: self.can_decide() && !risks.is_empty(),
            reason: (!risks.is_empty()).then(|| format!("argument {:?} is absent", self.name)),
            risks,
            capability: None,
        }
    }

    fn not_text(&self) -> Says {
        let mut risks = self.worst_declared();
        if self.declared.is_none() && risks.is_empty() && !self.is_setting && self.without != Without::Nothing
        {
            risks.insert(Risk::Unknown);
        }
        Says {
            decides: self.can_decide() && !risks.is_empty(),
            reason: Some(format!("argument {:?} is no text", self.name)),
            risks,
            capability: None,
        }
    }

    fn text(&self, value: &str) -> Says {
        let value = value.trim();
        let shown: String = value.chars().take(64).collect();
        let reason = Some(format!("argument {:?}: {shown:?}", self.name));
        let listed = || self.table.get(&value.to_lowercase());
        if let Some(effect) = (value.len() <= MAX_VALUE).then(listed).flatten() {
            return Says {
                risks: effect.risks,
                capability: effect.capability.clone(),
                decides: true,
                reason,
            };
        }
        let acts = self.acts(value);
        let mut risks: RiskSet = acts.iter().map(|act| act.risk(self.local)).collect();
        if risks.is_empty() {
            let is_declared = self
                .declared
                .as_ref()
                .is_none_or(|declared| declared.iter().any(|known| known == value));
            let unknown = match self.without {
                Without::Nothing => false,
                Without::Read => !is_declared,
                Without::Unknown => true,
            };
            if unknown && (!self.is_setting || self.is_mapped()) {
                risks.insert(Risk::Unknown);
            }
        }
        if !self.can_decide() {
            risks.remove(Risk::Read);
        }
        Says {
            decides: self.can_decide() && !risks.is_empty(),
            reason: reason.filter(|_| !risks.is_empty()),
            risks,
            capability: None,
        }
    }

    /// What the verbs of a value say.
    fn acts(&self, value: &str) -> Vec<Act> {
        if self.key == "method"
            && let Some(act) = http_act(value)
        {
            return vec![act];
        }
        if value.len() > MAX_VALUE {
            return Vec::new();
        }
        let Some(words) = words::split(value) else {
            return Vec::new();
        };
        // A filter that anybody may type is an action only when it begins like one.
        let is_free = self.declared.is_none() && self.without == Without::Read;
        let begins_with_verb = || {
            words
                .first()
                .and_then(|first| vocabulary::verb(first))
                .is_some_and(|verb| verb.writes() && (verb.is_plain() || !self.is_setting))
        };
        if is_free && !begins_with_verb() {
            return Vec::new();
        }
        acts_of_value(&words, !self.is_setting)
            .into_iter()
            .map(|(act, _)| act)
            .collect()
    }
}

fn http_act(value: &str) -> Option<Act> {
    let is = |name: &str| value.eq_ignore_ascii_case(name);
    if is("GET") || is("HEAD") || is("OPTIONS") {
        Some(Act::Read)
    } else if is("POST") || is("PUT") || is("PATCH") {
        Some(Act::Write)
    } else if is("DELETE") {
        Some(Act::Delete)
    } else {
        None
    }
}

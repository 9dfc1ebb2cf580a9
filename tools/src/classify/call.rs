//! One call of a tool.

use std::borrow::Cow;

use super::mapping::Role;
use super::plan::{CallPlan, Placed};
use super::program::{ProgramSign, Said};
use super::reach::{self, Reach};
use super::risk::{Risk, RiskSet};
use super::text::{self, TextReading};
use super::{Access, Classification, Family, SideEffect, SideEffectKind, SideEffectSource, schema};
use crate::extract::Extractor;
use crate::json::Node;
use crate::model::Tool;
use crate::targets::Targets;

/// What one call is judged to do, and what it reaches.
#[derive(Debug, Clone)]
pub struct Assessment<'t> {
    /// The tool's own classification where the arguments change nothing, else the call's.
    pub classification: Cow<'t, Classification>,
    /// What the call reaches.
    pub targets: Targets,
}

/// Classifies one call of a tool from its arguments (absent: an empty object).
pub fn classify_call<'t>(tool: &'t Tool, arguments: Option<Node<'_>>) -> Assessment<'t> {
    if tool.plan.is_fixed() {
        return Assessment {
            classification: Cow::Borrowed(&tool.classification),
            targets: Targets::UNKNOWN,
        };
    }
    let mut reading = Reading::new(&tool.plan, &tool.classification, arguments);
    reading.read();
    reading.reach();
    reading.finish()
}

/// What is known of the texts that a call carries.
#[derive(Debug)]
struct Texts {
    is_any: bool,
    is_all_read: bool,
    /// The arguments that were looked at.
    keys: Vec<String>,
    /// What any text could do.
    possible: RiskSet,
}

impl Default for Texts {
    fn default() -> Self {
        Self {
            is_any: false,
            is_all_read: true,
            keys: Vec::new(),
            possible: RiskSet::EMPTY,
        }
    }
}

/// Arguments that are being read.
struct Reading<'t, 'a> {
    plan: &'t CallPlan,
    tool: &'t Classification,
    arguments: Option<Node<'a>>,
    /// The arguments by key; two spellings of a name are two entries.
    given: Vec<(String, Node<'a>)>,
    risks: RiskSet,
    capability: Option<String>,
    capability_risk: Option<Risk>,
    /// Whether this is a call, not the tool before any.
    is_call: bool,
    is_decided: bool,
    /// Whether everything that is run was understood.
    is_text_read: bool,
    reasons: Vec<String>,
    hosts: Reach,
    paths: Reach,
    recipients: Reach,
    resources: Reach,
    columns: Reach,
}

impl<'t, 'a> Reading<'t, 'a> {
    fn new(plan: &'t CallPlan, tool: &'t Classification, arguments: Option<Node<'a>>) -> Self {
        let members = arguments.into_iter().flat_map(Node::members);
        Self {
            plan,
            tool,
            arguments,
            given: members.map(|(name, value)| (schema::key(&name), value)).collect(),
            risks: RiskSet::EMPTY,
            capability: None,
            capability_risk: None,
            is_call: true,
            is_decided: false,
            is_text_read: false,
            reasons: Vec::new(),
            hosts: Reach::default(),
            paths: Reach::default(),
            recipients: Reach::default(),
            resources: Reach::default(),
            columns: Reach::default(),
        }
    }

    fn read(&mut self) {
        self.actions();
        self.texts();
        self.base();
        self.presence();
    }

    fn values(&self, key: &str) -> Vec<Node<'a>> {
        let named = self
            .given
            .iter()
            .filter(|(given, value)| given == key && !value.is_null());
        named.map(|(_, value)| *value).collect()
    }

    /// Adds risks, and the capability if these are the gravest so far.
    fn add(&mut self, risks: RiskSet, capability: Option<&str>) {
        self.risks = self.risks.union(risks);
        if risks.is_empty() || self.capability_risk.is_some_and(|known| known >= risks.gravest()) {
            return;
        }
        if let Some(capability) = capability {
            self.capability = Some(capability.to_owned());
            self.capability_risk = Some(risks.gravest());
        }
    }

    fn actions(&mut self) {
        for action in &self.plan.actions {
            let values = self.values(&action.key);
            let mut says: Vec<_> = values.into_iter().map(|value| action.says(Some(value))).collect();
            if says.is_empty() {
                says.push(action.says(None));
            }
            for said in says {
                self.add(said.risks, said.capability.as_deref());
                self.is_decided |= said.decides;
                self.reasons.extend(said.reason);
            }
        }
    }

    fn texts(&mut self) {
        let plan = self.plan;
        let mut texts = Texts::default();
        for Placed { key, name, role } in plan.roles.iter().filter(|placed| text::is_text(placed.role)) {
            for value in self.values(key) {
                let reading = text::read(*role, name, value, self.arguments);
                self.text(reading, text::possible(*role), &mut texts);
            }
            texts.keys.push(key.clone());
            // A patch is one of several ways of saying what to write; the others are always there.
            if *role != Role::Patch {
                texts.possible = texts.possible.union(text::possible(*role));
            }
        }
        if let Some(extractor) = &plan.extractor {
            self.extract(extractor, &mut texts);
        }
        if let Some(program) = plan.program.as_ref().filter(|_| self.is_call) {
            self.program(program, &mut texts);
        }
        let is_unread = |key: &String| !texts.keys.contains(key) && !self.values(key).is_empty();
        let all_read = texts.is_all_read && !plan.generic_texts.iter().any(is_unread);
        self.is_text_read = texts.is_any && all_read && !plan.is_opaque;
        if self.is_text_read {
            self.is_decided = true;
            self.add(plan.residue, None);
            return;
        }
        // Leaving the text out must not look milder than any text.
        if !texts.is_any && self.is_call && !self.is_decided {
            self.risks = self.risks.union(texts.possible);
        }
        if texts.is_any || plan.is_generic() {
            self.risks.insert(Risk::Execution);
        }
    }

    fn extract(&mut self, extractor: &Extractor, texts: &mut Texts) {
        let extraction = extractor.extract(self.arguments);
        match extractor {
            Extractor::UriTemplate { .. } => {
                self.resources.join(extraction.resources);
                self.columns.join(extraction.columns);
            }
            Extractor::Sql { argument, .. } => {
                let first = argument.split('.').next().unwrap_or_default();
                let key = schema::key(first);
                if !self.values(&key).is_empty() {
                    let reading = TextReading::sql(extraction);
                    self.text(Some(reading), RiskSet::KNOWN, texts);
                }
                texts.keys.push(key);
                texts.possible = RiskSet::KNOWN;
            }
        }
    }

    /// What the arguments of a program say.
    fn program(&mut self, program: &ProgramSign, texts: &mut Texts) {
        match program.read(self.arguments) {
            Said::Text(reading) => {
                self.text(Some(*reading), RiskSet::KNOWN, texts);
                texts.keys.extend(["args", "flags", "stdin"].map(str::to_owned));
            }
            Said::Known(reading) => {
                self.is_decided |= reading.is_complete;
                self.text(Some(*reading), RiskSet::KNOWN, &mut Texts::default());
            }
            Said::UnknownOptions => {
                self.risks.insert(Risk::Execution);
                self.reasons.push("options that are not listed".to_owned());
            }
            Said::Nothing => {}
        }
    }

    fn text(&mut self, reading: Option<TextReading>, possible: RiskSet, texts: &mut Texts) {
        texts.is_any = true;
        let Some(reading) = reading else {
            texts.is_all_read = false;
            self.risks.insert(Risk::Execution);
            self.reasons.push("the text to run is no text".to_owned());
            return;
        };
        texts.is_all_read &= reading.is_complete;
        let mut risks = reading.risks;
        if !risks.is_subset_of(possible) || risks.is_empty() {
            risks = risks.intersection(possible);
            risks.insert(Risk::Execution);
        }
        self.add(risks, reading.capability);
        self.reasons.extend(reading.reasons);
        self.hosts.join(reading.hosts);
        self.paths.join(reading.paths);
        self.recipients.join(reading.recipients);
        self.resources.join(reading.resources);
        self.columns.join(reading.columns);
    }

    /// What the tool itself does, unless an argument said what is done.
    fn base(&mut self) {
        if !self.is_decided {
            let own = self.plan.own();
            self.add(own, None);
        }
        if self.risks.is_empty() {
            self.risks = self.plan.own();
        }
    }

    fn presence(&mut self) {
        for presence in &self.plan.presence {
            if !self.values(&presence.key).is_empty() {
                self.add(presence.risks, presence.capability.as_deref());
                self.reasons.push(presence.reason.clone());
            }
        }
        if self.plan.claim.is_some_and(|claim| self.risks.gravest() < claim) {
            self.risks.extend(self.plan.claim);
        }
        self.risks.extend(self.plan.correction);
    }

    fn reach(&mut self) {
        for Placed { key, role, .. } in &self.plan.roles {
            for value in self.values(key) {
                match role {
                    Role::Path => self.paths.add(value, reach::path),
                    Role::Url => self.hosts.add(value, reach::url),
                    Role::Host => self.hosts.add(value, reach::host),
                    Role::Recipient => self.recipients.add(value, reach::recipients),
                    Role::Shell | Role::Patch | Role::Sql | Role::Data => {}
                }
            }
        }
    }

    fn finish(mut self) -> Assessment<'t> {
        let targets = Targets {
            hosts: std::mem::take(&mut self.hosts).extent(),
            paths: std::mem::take(&mut self.paths).extent(),
            recipients: std::mem::take(&mut self.recipients).extent(),
            resources: std::mem::take(&mut self.resources).extent(),
            columns: std::mem::take(&mut self.columns).extent(),
        };
        Assessment {
            classification: self.classification(),
            targets,
        }
    }

    fn classification(self) -> Cow<'t, Classification> {
        let tool = self.tool;
        let is_as_tool = self.risks == tool.risks;
        let calls_differ = tool.possible_risks != tool.risks || tool.possible_risks.iter().count() > 1;
        if is_as_tool && !calls_differ {
            return Cow::Borrowed(tool);
        }
        let (access, side_effect) = if is_as_tool {
            (tool.access, tool.side_effect)
        } else {
            (access(self.risks), side_effect(self.risks, tool.side_effect))
        };
        let plain_read = self.risks == RiskSet::of(Risk::Read)
            && access == Access::Read
            && (tool.family == Family::Named || self.is_text_read)
            && self
                .plan
                .corrected
                .is_none_or(|kind| kind == SideEffectKind::Read);
        if is_as_tool && plain_read == tool.plain_read && self.capability.is_none() && self.reasons.is_empty()
        {
            return Cow::Borrowed(tool);
        }
        let mut own = tool.clone();
        own.risks = self.risks;
        own.risk = self.risks.gravest();
        own.capability = self.capability.or(own.capability);
        own.access = access;
        own.side_effect = side_effect;
        own.plain_read = plain_read;
        own.reasons.extend(self.reasons);
        Cow::Owned(own)
    }
}

/// The risks that a tool shows before any call: of a call without arguments, but without guessing at a text.
pub(super) fn unasked(plan: &CallPlan, tool: &Classification) -> RiskSet {
    let mut reading = Reading::new(plan, tool, None);
    reading.is_call = false;
    reading.read();
    reading.risks
}

fn access(risks: RiskSet) -> Access {
    let mut rest = risks;
    rest.remove(Risk::Read);
    if rest.is_empty() {
        return Access::Read;
    }
    rest.remove(Risk::Unknown);
    if rest.is_empty() {
        Access::Unknown
    } else {
        Access::Write
    }
}

fn side_effect(risks: RiskSet, tool: SideEffect) -> SideEffect {
    if tool.source == SideEffectSource::Correction {
        return tool;
    }
    let kind = if risks.contains(Risk::Delete) {
        SideEffectKind::Delete
    } else if risks.contains(Risk::PermissionChange) {
        SideEffectKind::Admin
    } else {
        match access(risks) {
            Access::Read => SideEffectKind::Read,
            Access::Write => SideEffectKind::Write,
            Access::Unknown => return tool,
        }
    };
    SideEffect {
        kind,
        source: SideEffectSource::Arguments,
    }
}

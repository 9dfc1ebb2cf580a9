//! Policies and calls from small alphabets, so that rules often meet calls.
#![allow(dead_code, unused_imports, reason = "every test file uses its part")]
#![allow(unreachable_pub, reason = "the module is private to each test")]

mod call;

use std::sync::Arc;

pub use call::{arguments, asked};

use policy::document::{
    Action, Condition, FORMAT, Field, Mode, Operator, Origin, Policy, PolicyKind, Rule, Scalar, Selector,
    TargetKind, Test,
};
use policy::glob::{Glob, ToolGlob};
use policy::{Call, Floor, InvalidPolicy};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use tools::classify::{Access, Classification, Family, Risk, RiskSet, SideEffectKind};
use tools::id::{AgentId, Namespace, SessionId, ToolName, UserId};
use tools::json::{Document, Limits};
use tools::targets::Targets;

/// Policies, and those that cannot be read.
#[derive(Debug, Clone)]
pub struct World {
    pub policies: Vec<Policy>,
    pub invalid: Vec<InvalidPolicy>,
}

/// An owned call.
#[derive(Debug, Clone)]
pub struct Asked {
    pub namespace: Namespace,
    pub agent: AgentId,
    pub user: Option<UserId>,
    pub session: Option<SessionId>,
    pub tool: ToolName,
    pub classification: Classification,
    pub targets: Targets,
    pub arguments: Option<String>,
    pub floors: Vec<Floor>,
}

impl Asked {
    pub fn with<T>(&self, use_call: impl FnOnce(&Call<'_>) -> T) -> T {
        let text = self.arguments.as_deref().unwrap_or("{}");
        let document = Document::parse(text.as_bytes(), Limits::ARGUMENTS).unwrap();
        use_call(&Call {
            namespace: &self.namespace,
            agent: &self.agent,
            user: self.user.as_ref(),
            session: self.session.as_ref(),
            tool: &self.tool,
            classification: &self.classification,
            targets: &self.targets,
            arguments: self.arguments.is_some().then(|| document.root()),
            floors: &self.floors,
        })
    }
}

fn one_of<T: Clone + std::fmt::Debug + 'static>(values: &[T]) -> impl Strategy<Value = T> + use<T> {
    select(values.to_vec())
}

fn globs(patterns: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<Glob>> {
    prop::collection::vec(one_of(patterns), 1..=most)
        .prop_map(|patterns| patterns.iter().map(|pattern| pattern.parse().unwrap()).collect())
}

fn tool_globs(most: usize) -> impl Strategy<Value = Vec<ToolGlob>> {
    let patterns = [
        "*",
        "x.*",
        "*.read",
        "x.read",
        "?.write",
        "x.resource:*",
        "*prompt:*",
        "**",
    ];
    prop::collection::vec(one_of(&patterns), 1..=most)
        .prop_map(|patterns| patterns.iter().map(|pattern| pattern.parse().unwrap()).collect())
}

fn number(text: &str) -> Scalar {
    Scalar::Number(text.parse().unwrap())
}

fn text(text: &str) -> Scalar {
    Scalar::String(Arc::from(text))
}

fn any_scalar() -> impl Strategy<Value = Scalar> {
    one_of(&[
        number("1"),
        number("5"),
        number("1e2"),
        text("a"),
        text("ab"),
        text("1"),
        Scalar::Boolean(true),
    ])
}

fn some<T: std::fmt::Debug>(values: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    prop::collection::vec(values, 1..=2)
}

fn operator_and_values() -> impl Strategy<Value = (Operator, Vec<Scalar>)> {
    let operator = |names: &[&'static str]| one_of(names).prop_map(|name| name.parse::<Operator>().unwrap());
    let patterns = || {
        one_of(&["a", "^a$", "b+", "."]).prop_map(|pattern: &str| Scalar::Pattern(pattern.parse().unwrap()))
    };
    prop_oneof![
        (
            operator(&["<", "<=", ">", ">="]),
            one_of(&[number("1"), number("5"), number("100")]).prop_map(|n| vec![n])
        ),
        (operator(&["==", "!=", "in", "not_in"]), some(any_scalar())),
        (
            operator(&[
                "contains",
                "not_contains",
                "starts_with",
                "not_starts_with",
                "ends_with",
                "not_ends_with"
            ]),
            some(one_of(&[text("a"), text("b"), text("ab"), text("")]))
        ),
        (operator(&["matches", "not_matches"]), some(patterns())),
        operator(&["exists", "not_exists"]).prop_map(|operator| (operator, Vec::new())),
    ]
}

fn test(allows: bool) -> impl Strategy<Value = Condition> {
    let mut fields = vec![
        "m",
        "params.m",
        "n.k",
        "l[0]",
        "l[every]",
        "l[every].k",
        "l[1].k",
        "$agent",
        "$user",
        "$session",
    ];
    if !allows {
        fields.extend(["l[*]", "l[*].k", "l[*].k[every]"]);
    }
    (select(fields), operator_and_values()).prop_map(|(field, (operator, values))| {
        let field: Field = field.parse().unwrap();
        Condition::Test(Test {
            field,
            operator,
            values,
        })
    })
}

fn condition(allows: bool) -> impl Strategy<Value = Condition> {
    test(allows).prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..=3).prop_map(Condition::All),
            prop::collection::vec(inner.clone(), 1..=3).prop_map(Condition::Any),
            inner.prop_map(|part| Condition::Not(Box::new(part))),
        ]
    })
}

const RISKS: [Risk; 4] = [Risk::Read, Risk::Execution, Risk::Delete, Risk::Unknown];

fn risks() -> impl Strategy<Value = RiskSet> {
    subsequence(RISKS.to_vec(), 1..=3).prop_map(|risks| {
        let mut set = RiskSet::EMPTY;
        risks.into_iter().for_each(|risk| set.insert(risk));
        set
    })
}

fn selector() -> impl Strategy<Value = Selector> {
    let access = [Access::Read, Access::Write, Access::Unknown];
    let effects = [
        SideEffectKind::Read,
        SideEffectKind::Write,
        SideEffectKind::Delete,
    ];
    let kinds = [
        TargetKind::Resources,
        TargetKind::Columns,
        TargetKind::Hosts,
        TargetKind::Paths,
        TargetKind::Recipients,
    ];
    prop_oneof![
        3 => risks().prop_map(Selector::Risk),
        1 => some(one_of(&access)).prop_map(Selector::Access),
        1 => one_of(&[Family::Named, Family::Generic]).prop_map(|family| Selector::Family(vec![family])),
        1 => some(one_of(&effects)).prop_map(Selector::SideEffect),
        1 => globs(&["file.*", "*"], 2).prop_map(Selector::Capability),
        1 => one_of(&["pci", "beta"]).prop_map(|tag| Selector::Tags(vec![Arc::from(tag)])),
        1 => globs(&["ann", "b*", "*"], 2).prop_map(Selector::User),
        2 => (one_of(&kinds), globs(&["a*", "*b", "ab", "*"], 2)).prop_map(|(kind, globs)| Selector::Targets(kind, globs)),
    ]
}

fn rule(guardrail: bool) -> impl Strategy<Value = Rule> {
    let actions = if guardrail {
        vec![Action::HumanApproval, Action::Deny]
    } else {
        Action::ALL.to_vec()
    };
    select(actions).prop_flat_map(|action| {
        (
            prop::option::weighted(0.8, tool_globs(2)),
            prop::option::weighted(0.2, tool_globs(1)),
            prop::option::weighted(0.3, prop::collection::vec(selector(), 1..=2)),
            prop::option::weighted(0.5, condition(action == Action::Allow)),
        )
            .prop_map(move |(tools, except, selectors, condition)| Rule {
                line: 1,
                tools,
                except: except.unwrap_or_default(),
                selectors: selectors.unwrap_or_default(),
                action,
                message: None,
                condition,
            })
    })
}

const AGENTS: &[&str] = &["*", "a", "ab", "a*", "*b", "?", "a?", "**", "b*"];

fn policy() -> impl Strategy<Value = Policy> {
    prop::bool::weighted(0.25).prop_flat_map(|guardrail| {
        (
            globs(AGENTS, 2),
            globs(&["*", "*", "default", "prod"], 1),
            prop::bool::weighted(0.2),
            prop::collection::vec(rule(guardrail), 1..=4),
            one_of(&[
                Origin::Inline(0),
                Origin::Inline(1),
                Origin::Directory(Arc::from("f"), 0),
                Origin::Api,
            ]),
        )
            .prop_map(move |(agents, namespaces, shadow, rules, origin)| Policy {
                format: FORMAT,
                name: "p".parse().unwrap(),
                agents,
                namespaces,
                kind: if guardrail {
                    PolicyKind::Guardrail
                } else {
                    PolicyKind::Standard
                },
                mode: if shadow { Mode::Shadow } else { Mode::Enforce },
                rate_limit: None,
                rules,
                origin,
                source_file: None,
            })
    })
}

pub fn world() -> impl Strategy<Value = World> {
    let unreadable = (globs(&["a", "b*"], 1), globs(&["prod", "*"], 1));
    (
        prop::collection::vec(policy(), 0..=4),
        prop::option::weighted(0.1, unreadable),
    )
        .prop_map(|(mut policies, unreadable)| {
            for (number, policy) in policies.iter_mut().enumerate() {
                policy.name = format!("p{number}").parse().unwrap();
            }
            let invalid = unreadable.into_iter().map(|(agents, namespaces)| InvalidPolicy {
                name: "broken".parse().unwrap(),
                agents,
                namespaces,
            });
            World {
                policies,
                invalid: invalid.collect(),
            }
        })
}

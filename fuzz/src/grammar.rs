//! Policies and calls from small alphabets, each choice one byte, so that rules often meet calls.

use std::fmt::Write;

use libfuzzer_sys::arbitrary::Unstructured;
use policy::foresee::ToolQuery;
use policy::{Action, Call, Decision, Floor, PolicySet};
use tools::classify::{Classification, Risk, RiskSet};
use tools::id::{AgentId, Namespace, SessionId, ToolName, UserId};
use tools::json::{Document, Limits};
use tools::targets::Targets;

/// Choices read from the input; an exhausted input always chooses the first.
pub struct Choices<'b>(Unstructured<'b>);

impl<'b> Choices<'b> {
    /// Choices from bytes.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// One of several.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        let last = of.len() - 1;
        of[self.0.int_in_range(0..=last).unwrap_or(0)]
    }

    /// At least one of several, as a YAML list.
    fn list(&mut self, of: &[&str]) -> String {
        let one = self.one(of);
        if self.rarely() {
            format!("['{one}', '{}']", self.one(of))
        } else {
            format!("['{one}']")
        }
    }

    fn rarely(&mut self) -> bool {
        self.one(&[false, false, false, true])
    }

    /// Everything that was not used for choices.
    pub fn rest(self) -> &'b [u8] {
        self.0.take_rest()
    }
}

const AGENTS: [&str; 8] = ["*", "a", "ab", "a*", "*b", "?", "**", "b*"];
const TOOLS: [&str; 7] = ["*", "x.*", "*.read", "x.read", "?.write", "x.resource:*", "**"];
const SCALARS: [&str; 8] = ["1", "5", "1e2", "-0.5", "a", "ab", "'1'", "true"];
const FIELDS: [&str; 9] = [
    "m",
    "params.m",
    "n.k",
    "'l[0]'",
    "'l[every]'",
    "'l[every].k'",
    "$agent",
    "$user",
    "$session",
];
const SOME_FIELDS: [&str; 3] = ["'l[*]'", "'l[*].k'", "'l[*].k[every]'"];

/// The text of one to three policies. Every text of this grammar is valid.
pub fn policies(choices: &mut Choices<'_>) -> String {
    let mut text = String::new();
    for number in 0..choices.one(&[1, 2, 3]) {
        let guardrail = choices.rarely();
        let kind = if guardrail { "guardrail" } else { "standard" };
        let mode = if choices.rarely() { "shadow" } else { "enforce" };
        let (agents, namespace) = (choices.list(&AGENTS), choices.one(&["'*'", "default", "prod"]));
        let rules: Vec<String> = (0..choices.one(&[1, 2, 3]))
            .map(|_| rule(choices, guardrail))
            .collect();
        let _infallible = writeln!(
            text,
            "---\nname: p{number}\nagent: {agents}\nnamespace: {namespace}\nkind: {kind}\nmode: {mode}\nrules:\n{}",
            rules.concat()
        );
    }
    text
}

fn rule(choices: &mut Choices<'_>, guardrail: bool) -> String {
    let actions: &[&str] = if guardrail {
        &["human_approval", "deny"]
    } else {
        &["allow", "human_approval", "deny"]
    };
    let action = choices.one(actions);
    let mut text = format!("  - action: {action}\n");
    let mut put = |key: &str, value: String| {
        let _infallible = writeln!(text, "    {key}: {value}");
    };
    if choices.one(&[true, true, false]) {
        put("tools", choices.list(&TOOLS));
    }
    if choices.rarely() {
        put("except", choices.list(&TOOLS));
    }
    match choices.one(&[0, 0, 0, 0, 1, 2, 3, 4]) {
        0 => {}
        1 => put("risk", choices.list(&["READ", "EXECUTION", "UNKNOWN"])),
        2 => put("access", choices.list(&["read", "write", "unknown"])),
        3 => put("user", choices.list(&["ann", "b*", "*"])),
        _ => put("paths", choices.list(&["a*", "*b", "*"])),
    }
    if choices.one(&[false, true]) {
        put("condition", condition(choices, action == "allow", 0));
    }
    text
}

fn condition(choices: &mut Choices<'_>, allows: bool, depth: usize) -> String {
    let joined = if depth < 3 {
        choices.one(&["", "", "", "all", "any", "not"])
    } else {
        ""
    };
    match joined {
        "" => test(choices, allows),
        "not" => format!("{{not: {}}}", condition(choices, allows, depth + 1)),
        joined => {
            let count = choices.one(&[1, 2, 3]);
            let parts: Vec<String> = (0..count)
                .map(|_| condition(choices, allows, depth + 1))
                .collect();
            format!("{{{joined}: [{}]}}", parts.join(", "))
        }
    }
}

fn test(choices: &mut Choices<'_>, allows: bool) -> String {
    let field = if !allows && choices.rarely() {
        choices.one(&SOME_FIELDS)
    } else {
        choices.one(&FIELDS)
    };
    let is_negated = choices.rarely();
    let negated = if is_negated { "not_" } else { "" };
    let (operator, value) = match choices.one(&[0, 1, 2, 3, 4, 5]) {
        0 => {
            let operator = choices.one(&["'<'", "'<='", "'>'", "'>='"]);
            (operator.to_owned(), choices.one(&["1", "5", "100"]).to_owned())
        }
        1 => {
            let operator = if is_negated { "'!='" } else { "'=='" };
            (operator.to_owned(), choices.one(&SCALARS).to_owned())
        }
        2 => {
            let values = [choices.one(&SCALARS), choices.one(&SCALARS)];
            (format!("{negated}in"), format!("[{}]", values.join(", ")))
        }
        3 => {
            let operator = choices.one(&["contains", "starts_with", "ends_with"]);
            (
                format!("{negated}{operator}"),
                choices.one(&["a", "b", "ab"]).to_owned(),
            )
        }
        4 => (
            format!("{negated}matches"),
            choices.one(&["a", "'^a$'", "b+", "'.'"]).to_owned(),
        ),
        _ => return format!("{{field: {field}, operator: {negated}exists}}"),
    };
    format!("{{field: {field}, operator: {operator}, value: {value}}}")
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct Asked {
    pub namespace: Namespace,
    pub agent: AgentId,
    pub user: Option<UserId>,
    pub session: Option<SessionId>,
    pub tool: ToolName,
    pub classification: Classification,
    pub floors: Vec<Floor>,
    pub arguments: Vec<u8>,
}

fn valid<T: std::str::FromStr>(text: &str) -> T {
    match text.parse() {
        Ok(value) => value,
        Err(_) => panic!("{text} is refused"),
    }
}

/// A call about which little is known.
pub fn asked() -> Asked {
    call(&mut Choices::new(&[]))
}

/// A call, without arguments yet.
pub fn call(choices: &mut Choices<'_>) -> Asked {
    let tool: ToolName = valid(choices.one(&["x.read", "x.write", "y.read", "x.resource:u", "Bash"]));
    let mut classification = Classification::unknown(tool.clone());
    let mut risks = RiskSet::of(choices.one(&[Risk::Unknown, Risk::Read, Risk::Execution]));
    risks.insert(choices.one(&[Risk::Unknown, Risk::Read, Risk::Execution]));
    classification.risks = risks;
    classification.possible_risks = risks;
    classification.risk = risks.gravest();
    Asked {
        namespace: valid(choices.one(&["default", "prod"])),
        agent: valid(choices.one(&["a", "ab", "b", "cb"])),
        user: choices.one(&[None, Some("ann"), Some("bob")]).map(valid),
        session: choices.one(&[None, Some("a"), Some("s")]).map(valid),
        tool,
        classification,
        floors: choices
            .one(&[None, None, Some(Floor::PIN_CHANGED)])
            .into_iter()
            .collect(),
        arguments: b"{}".to_vec(),
    }
}

impl Asked {
    /// What a client that lists tools asks; it does not name the conversation yet where `knows_session` is false.
    pub fn query(&self, knows_session: bool) -> ToolQuery<'_> {
        ToolQuery {
            namespace: &self.namespace,
            agent: &self.agent,
            user: self.user.as_ref(),
            session: self.session.as_ref().filter(|_| knows_session),
            tool: &self.tool,
            classification: &self.classification,
            targets: Some(&Targets::UNKNOWN),
            floors: &self.floors,
        }
    }
}

/// The decision about a call; arguments that are refused count as none.
pub fn ask(asked: &Asked, set: &PolicySet) -> Decision {
    let document = Document::parse(&asked.arguments, Limits::ARGUMENTS).ok();
    set.decide(&Call {
        namespace: &asked.namespace,
        agent: &asked.agent,
        user: asked.user.as_ref(),
        session: asked.session.as_ref(),
        tool: &asked.tool,
        classification: &asked.classification,
        targets: &Targets::UNKNOWN,
        arguments: document.as_ref().map(Document::root),
        floors: &asked.floors,
    })
}

/// Whether a decision lets a call through, now or after somebody's approval.
pub fn runs(decision: &Decision) -> bool {
    decision.action != Action::Deny
}

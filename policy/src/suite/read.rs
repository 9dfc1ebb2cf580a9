//! YAML becomes cases.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use super::{Case, Expected, Given, MAX_CASES, Suite, given};
use crate::document::Action;
use crate::nearest;
use crate::yaml::{self, MapReader, Node, Problem, Problems, Value};

const EMPTY: &str = "{}";

impl Suite {
    /// Reads the tests of a file (of several documents, all).
    ///
    /// # Errors
    /// Every problem in the text, with its place.
    pub fn parse(file: &str, text: &str) -> Result<Suite, Vec<Problem>> {
        let documents = yaml::load(file, text)?;
        let problems = Problems::new(file);
        let mut suite = Suite::default();
        for document in documents.iter().filter(|document| !document.is_null()) {
            read_document(document, &mut suite, &problems);
        }
        problems.into_result(Some(suite))
    }
}

fn read_document(document: &Value, suite: &mut Suite, problems: &Problems) {
    if let Some(tests) = document.as_seq() {
        read_tests(tests, None, suite, problems);
        return;
    }
    let Some(reader) = MapReader::new(document, "a test file", problems) else {
        return;
    };
    let names = |key| -> Vec<String> {
        let texts = reader.strings(key).unwrap_or_default();
        texts.into_iter().map(|(text, _)| text.to_owned()).collect()
    };
    suite.policies.extend(names("policies"));
    suite.catalogues.extend(names("catalog"));
    let defaults = reader.optional("defaults");
    if let Some(tests) = reader
        .required("tests")
        .and_then(|value| problems.sequence(value))
    {
        read_tests(tests, defaults, suite, problems);
    }
    reader.finish();
}

fn read_tests(tests: &[Value], defaults: Option<&Value>, suite: &mut Suite, problems: &Problems) {
    for test in tests {
        let before = problems.len();
        let read = read_test(test, defaults, problems);
        let Some(read) = read.filter(|_| problems.len() == before) else {
            continue;
        };
        if suite.cases.len() + read.count() > MAX_CASES {
            problems.at(test, format!("the file makes more than {MAX_CASES} cases"));
            return;
        }
        suite.cases.extend(read.spread(problems.file()));
    }
}

/// A test with its lists.
struct Spread {
    line: u32,
    name: Option<Arc<str>>,
    namespace: tools::id::Namespace,
    session: Option<tools::id::SessionId>,
    users: Vec<Option<tools::id::UserId>>,
    params: Vec<Arc<str>>,
    given: Arc<Given>,
    cells: Vec<Cell>,
}

struct Cell {
    agent: tools::id::AgentId,
    tool: tools::id::ToolName,
    expected: Expected,
}

impl Spread {
    fn count(&self) -> usize {
        self.cells
            .len()
            .saturating_mul(self.users.len())
            .saturating_mul(self.params.len())
    }

    fn spread(self, file: &str) -> Vec<Case> {
        let file: Arc<str> = Arc::from(file);
        let mut cases = Vec::new();
        for cell in &self.cells {
            for user in &self.users {
                for params in &self.params {
                    cases.push(Case {
                        file: Arc::clone(&file),
                        line: self.line,
                        name: self.name.clone(),
                        agent: cell.agent.clone(),
                        user: user.clone(),
                        session: self.session.clone(),
                        namespace: self.namespace.clone(),
                        tool: cell.tool.clone(),
                        params: Arc::clone(params),
                        given: Arc::clone(&self.given),
                        expected: cell.expected.clone(),
                    });
                }
            }
        }
        cases
    }
}

fn read_test(value: &Value, defaults: Option<&Value>, problems: &Problems) -> Option<Spread> {
    let before = problems.len();
    let reader = MapReader::new(value, "a test", problems)?;
    let or_default = |key: &'static str| reader.optional(key).or_else(|| defaults?.get(key));
    let name = reader.string("name").map(Arc::from);
    let users: Vec<tools::id::UserId> = or_default("user")
        .map(|value| parsed(value, problems))
        .unwrap_or_default();
    let session = or_default("session").and_then(|value| one(problems.string(value)?, value, problems));
    let namespace = or_default("namespace").and_then(|value| one(problems.string(value)?, value, problems));
    let params = read_params(or_default("params"), problems);
    let given = given::read(&reader, problems);
    let (cells, asserts) = read_cells(&reader, or_default("agent"), problems);
    reader.finish();
    // With another problem, what was meant to be asserted may be what is misspelt.
    if !asserts && problems.len() == before {
        problems.at_with_hint(
            value,
            "the test asserts nothing",
            "give it action, rule or both".to_owned(),
        );
    }
    Some(Spread {
        line: value.line(),
        name,
        namespace: namespace.unwrap_or_default(),
        session,
        users: if users.is_empty() {
            vec![None]
        } else {
            users.into_iter().map(Some).collect()
        },
        params,
        given: Arc::new(given),
        cells,
    })
}

/// Who calls what, and what is asserted: agents with tools, or a matrix of both. Says whether anything is asserted.
fn read_cells(reader: &MapReader<'_, '_>, agent: Option<&Value>, problems: &Problems) -> (Vec<Cell>, bool) {
    let agents = agent.map(|value| parsed(value, problems));
    let tools = reader.optional("tool").map(|value| parsed(value, problems));
    let expected = Expected {
        action: reader
            .optional("action")
            .and_then(|value| read_action(value, problems)),
        ..reader
            .optional("rule")
            .and_then(|value| read_rule(value, problems))
            .unwrap_or_default()
    };
    let asserts = expected != Expected::default();
    if let Some(matrix) = reader.optional("matrix") {
        if tools.is_some() || asserts {
            problems.at(matrix, "matrix stands in place of tool, action and rule");
        }
        return (read_matrix(matrix, problems), true);
    }
    let cells = pairs(
        reader.value(),
        agents.as_deref(),
        tools.as_deref(),
        &expected,
        problems,
    );
    (cells, asserts)
}

fn pairs(
    value: &Value,
    agents: Option<&[tools::id::AgentId]>,
    tools: Option<&[tools::id::ToolName]>,
    expected: &Expected,
    problems: &Problems,
) -> Vec<Cell> {
    let (Some(agents), Some(tools)) = (agents, tools) else {
        problems.at(value, "a test needs agent and tool, or a matrix of both");
        return Vec::new();
    };
    let all = agents.iter().flat_map(|agent| {
        tools.iter().map(|tool| Cell {
            agent: agent.clone(),
            tool: tool.clone(),
            expected: expected.clone(),
        })
    });
    all.take(MAX_CASES + 1).collect()
}

/// `agent: {tool: action}`
fn read_matrix(value: &Value, problems: &Problems) -> Vec<Cell> {
    let mut cells = Vec::new();
    let Some(rows) = value.as_map() else {
        problems.expected(value, "a mapping of agents to tools to actions");
        return cells;
    };
    for row in rows.entries() {
        let agent: Option<tools::id::AgentId> = one(&row.key, &row.value, problems);
        let Some(columns) = row.value.as_map() else {
            problems.expected(&row.value, "a mapping of tools to actions");
            continue;
        };
        for column in columns.entries() {
            let tool: Option<tools::id::ToolName> = one(&column.key, &column.value, problems);
            let action = read_action(&column.value, problems);
            if let (Some(agent), Some(tool), Some(action)) = (&agent, tool, action) {
                cells.push(Cell {
                    agent: agent.clone(),
                    tool,
                    expected: Expected {
                        action: Some(action),
                        ..Expected::default()
                    },
                });
            }
        }
    }
    cells
}

fn one<T: FromStr<Err: Display>>(text: &str, place: &Value, problems: &Problems) -> Option<T> {
    text.parse()
        .map_err(|error: T::Err| problems.at(place, error.to_string()))
        .ok()
}

fn parsed<T: FromStr<Err: Display>>(value: &Value, problems: &Problems) -> Vec<T> {
    let texts = problems.strings(value).unwrap_or_default();
    if value.as_seq().is_some_and(<[Value]>::is_empty) {
        problems.at(value, "the list is empty: the test would assert nothing");
    }
    texts
        .into_iter()
        .filter_map(|(text, place)| one(text, place, problems))
        .collect()
}

fn read_action(value: &Value, problems: &Problems) -> Option<Action> {
    let text = problems.string(value)?;
    let found = text.parse().ok();
    if found.is_none() {
        let hint = nearest::hint(text, Action::ALL.iter().map(|action| action.as_str()));
        problems.at_with_hint(value, format!("action \"{text}\" is unknown"), hint);
    }
    found
}

/// `policy` or `policy#index`
fn read_rule(value: &Value, problems: &Problems) -> Option<Expected> {
    let text = problems.string(value)?;
    let (policy, index) = match text.rsplit_once('#') {
        None => (text, None),
        Some((policy, number)) => match number.parse() {
            Ok(index) => (policy, Some(index)),
            Err(_) => (text, None),
        },
    };
    Some(Expected {
        action: None,
        policy: Some(policy.to_owned()),
        index,
    })
}

fn read_params(value: Option<&Value>, problems: &Problems) -> Vec<Arc<str>> {
    let Some(value) = value else {
        return vec![Arc::from(EMPTY)];
    };
    let values = match value.as_seq() {
        Some(values) => values,
        None => std::slice::from_ref(value),
    };
    values
        .iter()
        .filter_map(|value| {
            if value.as_map().is_none() {
                problems.expected(value, "a mapping of arguments");
                return None;
            }
            let mut text = String::new();
            write_json(value, &mut text, problems);
            Some(Arc::from(text))
        })
        .collect()
}

/// A YAML value as JSON; numbers keep every digit.
fn write_json(value: &Value, out: &mut String, problems: &Problems) {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned());
    match value.node() {
        Node::Null => out.push_str("null"),
        Node::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Node::Number(text) => out.push_str(text),
        Node::NotFinite(text) => problems.at(value, format!("{text} is no JSON number")),
        Node::String(text) => out.push_str(&quoted(text)),
        Node::Seq(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(element, out, problems);
            }
            out.push(']');
        }
        Node::Map(map) => {
            out.push('{');
            for (index, entry) in map.entries().iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(&entry.key));
                out.push(':');
                write_json(&entry.value, out, problems);
            }
            out.push('}');
        }
    }
}

//! Over documents of many shapes: an edit changes the lines of its rule and nothing else, and can be undone.

use std::sync::Arc;

use proptest::prelude::*;
use tools::classify::Classification;
use tools::id::{AgentId, Namespace, ToolName};

use super::*;
use crate::document::{Policy, Source};
use crate::{PolicySet, ToolQuery};

const TOOL: &str = "db.q";
const COMMENTS: [&str; 4] = ["# c", "#", "# - tools: [x]", "# é: \"'"];

/// Choices for one document.
#[derive(Debug, Clone)]
struct Shape {
    top: usize,
    dash: usize,
    keys: usize,
    rules: Vec<Written>,
    after: Vec<Gap>,
    is_flow: bool,
}

/// What stands between two rules.
#[derive(Debug, Clone, Copy)]
enum Gap {
    Blank,
    Spaces,
    Comment(usize, usize),
}

#[derive(Debug, Clone)]
struct Written {
    gap: Vec<Gap>,
    shape: usize,
    action: usize,
    tools: usize,
    note: usize,
}

fn gap() -> impl Strategy<Value = Gap> {
    prop_oneof![
        Just(Gap::Blank),
        Just(Gap::Spaces),
        (0..COMMENTS.len(), 0..8_usize).prop_map(|(comment, indent)| Gap::Comment(comment, indent)),
    ]
}

fn written() -> impl Strategy<Value = Written> {
    let gap = prop_oneof![2 => Just(Vec::new()), 1 => proptest::collection::vec(gap(), 1..4)];
    (gap, 0..16_usize, 0..3_usize, 0..7_usize, 0..4_usize).prop_map(|(gap, shape, action, tools, note)| {
        Written {
            gap,
            shape,
            action,
            tools,
            note,
        }
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    let rules = proptest::collection::vec(written(), 1..6);
    let after = proptest::collection::vec(gap(), 0..4);
    (
        0..6_usize,
        0..5_usize,
        2..6_usize,
        rules,
        after,
        proptest::bool::weighted(0.03),
    )
        .prop_map(|(top, dash, keys, rules, after, is_flow)| Shape {
            top,
            dash,
            keys,
            rules,
            after,
            is_flow,
        })
}

impl Gap {
    fn line(self) -> String {
        match self {
            Self::Blank => String::new(),
            Self::Spaces => "   ".to_owned(),
            Self::Comment(comment, indent) => format!("{:indent$}{}", "", COMMENTS[comment]),
        }
    }
}

impl Written {
    /// The lines of the rule; the first starts with its dash.
    fn lines(&self, dash: usize, keys: usize) -> Vec<String> {
        let action = ["allow", "deny", "human_approval"][self.action];
        let tools = [
            "[db.q]",
            "'db.q'",
            "[\"db.q\"]",
            "['*']",
            "db.*",
            "[x.y, \"é.*\"]",
            "[\n db.q , # one\n\n x.y ]",
        ][self.tools];
        let note = ["", " # n", "   #", " "][self.note];
        let deep = " ".repeat(dash + keys + 1);
        let tools = tools
            .replace("\n ", &format!("\n{deep}"))
            .replace("\n\n", "\n \n");
        let keys_of: Vec<String> = match self.shape {
            0..=4 => vec![format!("tools: {tools}"), format!("action: {action}{note}")],
            5 => vec![format!("action: '{action}'{note}"), format!("tools: {tools}")],
            6 => vec![
                format!("\"tools\": {tools}"),
                format!("action:   \"{action}\"{note}"),
            ],
            7 => vec![format!("action: {action}{note}")],
            8 => vec![
                format!("tools: {tools}"),
                format!("action: {action}"),
                "condition: {all: [{field: a, operator: exists}]}".to_owned(),
            ],
            9 => vec![
                "risk: [READ]".to_owned(),
                format!("tools: {tools}"),
                format!("action: {action}{note}"),
            ],
            10 => vec![
                format!("tools: {tools}"),
                format!("action: {action}"),
                format!("message: |\n{deep}é\n\n{deep}# no comment"),
            ],
            11 => vec![
                format!("tools: {tools}"),
                format!("action: {action}"),
                format!("message: >+ # kept\n{deep}a\n\n"),
            ],
            12 => vec![
                format!("message: a\n{deep}b\n{deep}c"),
                format!("tools: {tools}"),
                format!("action: {action}{note}"),
            ],
            13 => vec![
                format!("action: {action}"),
                format!("message: \"a\n\n{deep}# b\n{deep}- c: \\\"\"{note}"),
            ],
            14 => vec![
                format!("action: {action}"),
                format!(
                    "condition:\n{deep}not:\n{deep}  field: a\n{deep}  operator: \"==\"\n{deep}  value: # here\n{deep}    - 1\n{deep}    - x{note}"
                ),
            ],
            _ => {
                return vec![format!(
                    "{:dash$}- {{tools: {tools}, action: {action}}}{note}",
                    ""
                )];
            }
        };
        let starts = std::iter::once(format!("{:dash$}-{:gap$}", "", "", gap = keys - 1));
        let indents = starts.chain(std::iter::repeat(" ".repeat(dash + keys)));
        indents
            .zip(keys_of)
            .map(|(indent, key)| format!("{indent}{key}"))
            .collect()
    }
}

impl Shape {
    fn lines(&self, name: &str) -> Vec<String> {
        let mut rules = vec!["rules:".to_owned()];
        for rule in &self.rules {
            rules.extend(rule.gap.iter().map(|gap| gap.line()));
            rules.extend(rule.lines(self.dash, self.keys));
        }
        rules.extend(self.after.iter().map(|gap| gap.line()));
        if self.is_flow {
            rules = vec!["rules: [{action: deny}]".to_owned()];
        }
        let (name, agent) = (
            vec![format!("name: {name}  # n")],
            vec!["agent: claude".to_owned()],
        );
        match self.top {
            0 => [rules, name, agent].concat(),
            1 => [name, vec![String::new()], rules, vec!["# a".to_owned()], agent].concat(),
            2 => [
                agent,
                name,
                vec!["rate_limit:".to_owned(), "  max_total: 3".to_owned()],
                rules,
            ]
            .concat(),
            _ => [name, agent, rules].concat(),
        }
    }
}

/// A file of one to three documents; the one that is named `a` is at `0..3`.
fn file() -> impl Strategy<Value = String> {
    let shapes = proptest::collection::vec(shape(), 1..4);
    (shapes, 0..3_usize, any::<[bool; 4]>()).prop_map(|(shapes, edited, [bom, crlf, ends, separated])| {
        let count = shapes.len();
        let mut lines: Vec<String> = Vec::new();
        for (at, shape) in shapes.iter().enumerate() {
            if at > 0 || separated {
                lines.push("---".to_owned());
            }
            let name = if at == edited.min(count - 1) {
                "a".to_owned()
            } else {
                format!("p{at}")
            };
            lines.extend(shape.lines(&name));
        }
        let mut text = lines.join("\n");
        if ends {
            text.push('\n');
        }
        if crlf {
            text = text.replace('\n', "\r\n");
        }
        if bom { format!("\u{feff}{text}") } else { text }
    })
}

fn policies(text: &str) -> Vec<Policy> {
    let found = Policy::parse_all("a.yaml", text, &Source::Directory, &Lists::none());
    let mut found = found.unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
    found
        .iter_mut()
        .flat_map(|policy| &mut policy.rules)
        .for_each(|rule| rule.line = 0);
    found
}

/// Of the named document alone.
fn view(text: &str) -> (Option<usize>, Action) {
    let own = policies(text)
        .into_iter()
        .filter(|policy| policy.name.as_str() == "a");
    let set = PolicySet::compile(own.map(Arc::new));
    let (namespace, agent): (_, AgentId) = (Namespace::default(), "claude".parse().unwrap());
    let tool: ToolName = TOOL.parse().unwrap();
    let classification = Classification::unknown(tool.clone());
    let query = ToolQuery {
        namespace: &namespace,
        agent: &agent,
        user: None,
        session: None,
        tool: &tool,
        classification: &classification,
        targets: None,
        floors: &[],
    };
    let own = own_policy(&set, &query).unwrap();
    assert_eq!(own.name.as_str(), "a");
    (own.deciding, set.tool_decision(&query).standard)
}

fn edit(text: &str, change: Change, deciding: Option<usize>) -> Result<Edit, EditRefused> {
    let request = EditRequest {
        policy: &"a".parse().unwrap(),
        tool: &TOOL.parse().unwrap(),
        change,
        deciding,
        note: Note {
            by: "ann",
            date: "2026-11-30",
        },
        lists: &Lists::none(),
    };
    set_action(text, "a.yaml", &request)
}

/// The rules of `a` in a file, and everything else.
fn rules(text: &str) -> (Vec<crate::document::Rule>, Vec<Policy>) {
    let mut all = policies(text);
    let own = all.iter_mut().find(|policy| policy.name.as_str() == "a").unwrap();
    let rules = std::mem::take(&mut own.rules);
    (rules, all)
}

/// Lines that differ, when both texts have the same number of them.
fn changed_lines(one: &str, other: &str) -> Option<Vec<(String, String)>> {
    let lines = |text: &str| text.split('\n').map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (lines(one), lines(other));
    (one.len() == other.len()).then(|| {
        one.into_iter()
            .zip(other)
            .filter(|(one, other)| one != other)
            .collect()
    })
}

fn check(text: &str, action: Action, knows_deciding: bool) {
    let (deciding, _) = view(text);
    let deciding = deciding.filter(|_| knows_deciding);
    let edit_1 = match edit(text, Change::Set(action), deciding) {
        Ok(edit) => edit,
        Err(error) => {
            let is_odd =
                text.contains("rules: [") || text.contains("message: |") || text.contains("message: >");
            assert!(is_odd, "refused: {error}\n{text}");
            return;
        }
    };
    let ((before, others), (after, others_after)) = (rules(text), rules(&edit_1.text));
    assert_eq!(others, others_after);
    let index = edit_1.rule.unwrap();
    let mut intended = before.clone();
    match edit_1.outcome {
        Outcome::Inserted => {
            assert_eq!(index, deciding.unwrap_or(before.len()));
            let mut rule = after[index].clone();
            assert_eq!((rule.tools.take().unwrap().len(), rule.action), (1, action));
            assert!(rule.is_unconditional() && rule.except.is_empty() && rule.message.is_none());
            intended.insert(index, after[index].clone());
            assert_eq!(edit_1.text.matches('\n').count(), text.matches('\n').count() + 3);
            let undone = edit(&edit_1.text, Change::Inherit, Some(index)).unwrap();
            assert_eq!((undone.outcome, undone.text.as_str()), (Outcome::Removed, text));
            let other = Action::ALL.into_iter().find(|other| *other != action).unwrap();
            let twice = edit(&edit_1.text, Change::Set(other), Some(index)).unwrap();
            assert_eq!(
                changed_lines(&edit_1.text, &twice.text).map(|lines| lines.len()),
                Some(1)
            );
            assert_eq!(
                edit(&twice.text, Change::Inherit, Some(index)).unwrap().text,
                text
            );
        }
        Outcome::Rewritten => {
            intended[index].action = action;
            let lines = changed_lines(text, &edit_1.text).unwrap();
            assert!(
                matches!(lines.as_slice(), [(one, other)] if one.contains("action") && other.replace(action.as_str(), before[index].action.as_str()) == *one),
                "{lines:?}"
            );
            let refused = edit(&edit_1.text, Change::Inherit, Some(index));
            assert!(matches!(refused, Err(EditRefused::ByHand { .. })), "{refused:?}");
        }
        Outcome::Unchanged => assert_eq!(edit_1.text, text),
        Outcome::Removed | Outcome::Emptied => panic!("nothing was to be removed"),
    }
    assert_eq!(after, intended);
    let (decides, standard) = view(&edit_1.text);
    if knows_deciding && (edit_1.outcome == Outcome::Inserted || deciding == Some(index)) {
        assert_eq!((decides, standard), (Some(index), action), "{}", edit_1.text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn an_edit_changes_its_own_lines_says_what_was_asked_and_can_be_undone(
        text in file(),
        action in 0..3_usize,
        knows_deciding in any::<bool>(),
    ) {
        check(&text, Action::ALL[action], knows_deciding);
    }

    #[test]
    fn any_text_is_edited_or_refused(text in "[ a-c:\\-#\\[\\]{}&*!|>'\"\r\n\t]{0,80}", whole in any::<bool>()) {
        let text = if whole { text } else { format!("name: a\nagent: claude\nrules:\n  - action: deny\n    message: {text}") };
        for change in [Change::Set(Action::Allow), Change::Inherit] {
            if let Ok(edit) = edit(&text, change, None) {
                policies(&edit.text);
            }
        }
    }
}

#[test]
fn the_seeds_of_the_fuzz_target_are_edited_or_refused_and_undone() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/seeds/policy_edit");
    let mut edited = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for action in Action::ALL {
            let Ok(done) = edit(&text, Change::Set(action), None) else {
                continue;
            };
            edited += 1;
            if done.outcome == Outcome::Inserted {
                assert_eq!(edit(&done.text, Change::Inherit, None).unwrap().text, text);
            }
        }
    }
    assert!(edited >= 15, "only {edited} edits were made");
}

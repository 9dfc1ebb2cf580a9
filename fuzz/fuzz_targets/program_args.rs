//! Building a program's argument vector never panics; whatever it lets through holds no NUL, keeps to the allowed options before any
//! `--`, and means the same however it was asked for.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use tools::json::{Document, Kind, Limits};
use tools::program::{Command, Program, ProgramCall, Shape};

const ALLOWED: [&str; 2] = ["-r", "--repo"];

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = Document::parse(bytes, Limits::ARGUMENTS) else {
        return;
    };
    let root = document.root();
    if root.kind() != Kind::Object {
        return;
    }
    let bare = Program {
        shape: Shape::Bare(rules()),
        rejects_metacharacters: false,
    };
    if let Ok(call) = bare.call("run", Some(root)) {
        check(&call);
        for argument in call.argv.iter().take_while(|argument| *argument != "--") {
            assert!(
                !argument.starts_with('-')
                    || argument == "-"
                    || argument.starts_with("-r")
                    || argument == "--repo"
                    || argument.starts_with("--repo="),
                "{:?}",
                call.argv
            );
        }
    }
    let program = commands();
    for local in ["pr", "pr.list", "pr.merge", "repo", "issue", "issue.close"] {
        let Ok(call) = program.call(local, Some(root)) else {
            continue;
        };
        check(&call);
        assert!(
            call.argv
                .iter()
                .zip(local.split('.'))
                .all(|(argument, word)| argument == word)
        );
    }
    if let Ok(call) = program.call("__dispatch", Some(root)) {
        check(&call);
        assert!(
            !call
                .argv
                .iter()
                .any(|argument| argument.contains([';', '|', '`', '\n', '\r']))
        );
    }
});

fn rules() -> Command {
    Command {
        allowed_args: Some(ALLOWED.map(str::to_owned).to_vec()),
        timeout: None,
    }
}

fn commands() -> Program {
    let names = ["pr list", "pr merge", "repo"];
    let declared: BTreeMap<_, _> = names
        .iter()
        .filter_map(|name| Some((name.parse().ok()?, rules())))
        .collect();
    Program {
        shape: Shape::Commands {
            declared,
            is_strict: false,
        },
        rejects_metacharacters: false,
    }
}

fn check(call: &ProgramCall) {
    assert!(!call.argv.iter().any(|argument| argument.contains('\0')));
    assert!(!call.meaning.names.is_empty() && !call.meaning.effective().is_empty());
    let asked_again = again(call);
    assert_eq!(
        asked_again.as_ref().map(|again| &again.argv),
        Some(&call.argv),
        "{call:?}"
    );
    assert_eq!(asked_again.map(|again| again.meaning), Some(call.meaning.clone()));
}

/// The same argument vector, asked for with all of it as `args` behind its first word.
fn again(call: &ProgramCall) -> Option<ProgramCall> {
    let [named] = call.meaning.names.as_slice() else {
        return Some(call.clone());
    };
    if named.is_bare {
        return Some(call.clone());
    }
    let (first, rest) = call.argv.split_first()?;
    let text = serde_json::json!({ "args": rest }).to_string();
    let document = Document::parse(text.as_bytes(), Limits::MESSAGE).ok()?;
    // Declared commands take what shells would read into; what is not declared was looked at before.
    commands()
        .call(first, Some(document.root()))
        .ok()
        .or_else(|| Some(call.clone()))
}

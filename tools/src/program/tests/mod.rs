mod meaning;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::classify::{Family, Risk, RiskSet, classify_call};
use crate::json::{Document, Limits};
use crate::model::{Tool, ToolKind};

fn rules(allowed: Option<&[&str]>, seconds: Option<u64>) -> Command {
    Command {
        allowed_args: allowed.map(|all| all.iter().map(ToString::to_string).collect()),
        timeout: seconds.map(Duration::from_secs),
    }
}

fn program(commands: &[(&str, Command)]) -> Program {
    Program {
        shape: Shape::Commands {
            declared: commands
                .iter()
                .map(|(name, rules)| (name.parse().unwrap(), rules.clone()))
                .collect(),
            is_strict: false,
        },
        rejects_metacharacters: false,
    }
}

fn gh() -> Program {
    program(&[
        ("pr list", rules(Some(&["-L", "--limit"]), Some(7))),
        ("pr merge", rules(Some(&["--squash", "--repo"]), Some(5))),
        ("repo", rules(None, None)),
    ])
}

fn jq(allowed: Option<&[&str]>) -> Program {
    Program {
        shape: Shape::Bare(rules(allowed, None)),
        rejects_metacharacters: false,
    }
}

fn bin(name: &str) -> Bin<'_> {
    Bin {
        name,
        is_installed: true,
        floor: "human_approval",
    }
}

fn call(program: &Program, local: &str, arguments: &Value) -> Result<ProgramCall, ArgumentError> {
    let text = arguments.to_string();
    let document = Document::parse(text.as_bytes(), Limits::ARGUMENTS).unwrap();
    program.call(local, Some(document.root()))
}

fn names(call: &ProgramCall) -> Vec<&str> {
    call.meaning
        .names
        .iter()
        .map(|named| named.local.as_str())
        .collect()
}

#[test]
fn a_tools_own_name_says_what_is_asked_for() {
    let gh = gh();
    assert!(matches!(gh.asked("pr.list"), Some(Asked::Declared(_))));
    assert!(matches!(gh.asked("issue"), Some(Asked::Undeclared(_))));
    assert!(matches!(gh.asked("__dispatch"), Some(Asked::Dispatch)));
    for nothing in [
        "", "run.", "-x", "PR", "a.b.c", "pr list", "pr..list", "é", "run\n", "__run",
    ] {
        assert_eq!(gh.asked(nothing), None, "{nothing:?}");
    }
    let mut strict = gh;
    if let Shape::Commands { is_strict, .. } = &mut strict.shape {
        *is_strict = true;
    }
    assert!(strict.asked("pr.list").is_some());
    for nothing in ["issue", "__dispatch", "pr"] {
        assert_eq!(strict.asked(nothing), None, "{nothing:?}");
    }
    assert_eq!(jq(None).asked("run"), Some(Asked::Run));
    assert_eq!(jq(None).asked("__dispatch"), None);
}

#[test]
fn flags_become_options_before_args() {
    let made = call(
        &gh(),
        "repo",
        &json!({"args": ["a b", "-", "--", "-x"], "flags": {"n": "prod", "name": "v", "web": true, "off": false,
            "label": ["a", "b"], "count": 3}, "stdin": "x\0y"}),
    )
    .unwrap();
    let expected = [
        "repo", "--count", "3", "--label", "a", "--label", "b", "-n", "prod", "--name", "v", "--web", "a b",
        "-", "--", "-x",
    ];
    let mut sorted = made.argv.clone();
    sorted.sort();
    let mut wanted: Vec<String> = expected.iter().map(ToString::to_string).collect();
    wanted.sort();
    assert_eq!(sorted, wanted);
    assert_eq!(made.stdin.as_deref(), Some("x\0y"));
    let tail = made.argv.get(made.argv.len() - 4..).unwrap();
    assert_eq!(tail, ["a b", "-", "--", "-x"]);
}

#[test]
fn only_allowed_options_pass_in_every_form() {
    let jq = jq(Some(&["-r", "--arg", "-target"]));
    for good in [
        json!({"args": ["-r", ".a | .b", "-"]}),
        json!({"args": ["--arg=x", "-rvalue", "-r=v", "-target=x"]}),
        json!({"args": ["-r=x", "--", "-f", "--evil"]}),
        json!({"args": ["a", "--", "--evil"]}),
        json!({"flags": {"r": "x", "arg": ["a", "b"]}}),
        json!({}),
    ] {
        assert!(call(&jq, "run", &good).is_ok(), "{good}");
    }
    for bad in [
        json!({"args": ["-f"]}),
        json!({"args": ["-f=x"]}),
        json!({"args": ["-fx"]}),
        json!({"args": ["--argfile", "x"]}),
        json!({"args": ["--ar"]}),
        json!({"args": ["-targetx"]}),
        json!({"args": ["x", "--evil"]}),
        json!({"args": ["-r", "--", "--evil"]}),
        json!({"args": ["---"]}),
        json!({"flags": {"evil": true}}),
        json!({"flags": {"r": "--evil"}}),
        json!({"flags": {"r": "-f"}}),
    ] {
        let error = call(&jq, "run", &bad).unwrap_err();
        assert!(matches!(error, ArgumentError::Option { .. }), "{bad}: {error}");
    }
}

#[test]
fn metacharacters_are_refused_where_a_dispatcher_is_used_and_data_elsewhere() {
    for text in [
        ";", "a && b", "a || b", "a | b", "`id`", "$(id)", "${HOME}", "a\nb", "a\rb",
    ] {
        let args = json!({"command": "issue", "args": [text]});
        let flags = json!({"command": "issue", "flags": {"x": text}});
        for (local, arguments) in [("__dispatch", args), ("__dispatch", flags)] {
            let error = call(&gh(), local, &arguments).unwrap_err();
            assert!(
                matches!(error, ArgumentError::Metacharacter { .. }),
                "{text:?}: {error}"
            );
        }
        let undeclared = call(&gh(), "issue", &json!({"args": [text]}));
        assert!(
            matches!(undeclared, Err(ArgumentError::Metacharacter { .. })),
            "{text:?}"
        );
        let dispatched = call(&gh(), "__dispatch", &json!({"command": "repo", "args": [text]}));
        assert!(
            matches!(dispatched, Err(ArgumentError::Metacharacter { .. })),
            "{text:?}"
        );
        assert!(call(&gh(), "repo", &json!({"args": [text]})).is_ok(), "{text:?}");
        assert!(call(&jq(None), "run", &json!({"args": [text], "stdin": text})).is_ok());
        let mut careful = jq(None);
        careful.rejects_metacharacters = true;
        assert!(call(&careful, "run", &json!({"args": [text]})).is_err());
        assert!(
            call(&careful, "run", &json!({"stdin": text})).is_ok(),
            "stdin is data"
        );
    }
}

#[test]
fn what_is_no_call_is_refused_with_words_that_say_what_to_do() {
    for (local, arguments, said) in [
        ("__dispatch", json!({}), "command is missing"),
        ("__dispatch", json!({"command": ""}), "a command needs a name"),
        (
            "__dispatch",
            json!({"command": "pr --repo"}),
            "\"--repo\" is not a word",
        ),
        ("__dispatch", json!({"command": "-x"}), "\"-x\" is not a word"),
        (
            "__dispatch",
            json!({"command": "pr;id"}),
            "\"pr;id\" is not a word",
        ),
        ("__dispatch", json!({"command": "a b c d e"}), "has 5 words"),
        (
            "__dispatch",
            json!({"command": ["pr"]}),
            "command must be a string, and is array",
        ),
        (
            "repo",
            json!({"command": "pr"}),
            "\"command\" is not an argument here",
        ),
        ("repo", json!({"args": "x"}), "args must be a list of strings"),
        (
            "repo",
            json!({"args": ["x", 1]}),
            "args[1] must be a string, and is number",
        ),
        ("repo", json!({"flags": ["x"]}), "flags must be an object"),
        (
            "repo",
            json!({"flags": {"--x": 1}}),
            "flags: \"--x\" is not the name of an option",
        ),
        (
            "repo",
            json!({"flags": {"x=y": 1}}),
            "is not the name of an option",
        ),
        ("repo", json!({"flags": {"x": null}}), "flags.x must be"),
        ("repo", json!({"flags": {"x": [[1]]}}), "flags.x[0] must be"),
        ("repo", json!({"stdin": 1}), "stdin must be a string"),
        (
            "repo",
            json!({"args": ["a\0b"]}),
            "argument 2 of the command line holds a NUL",
        ),
        ("repo", json!({"flags": {"x": "a\0b"}}), "holds a NUL"),
        (
            "repo",
            json!({"args": ["x".repeat(MAX_ARGUMENT_BYTES + 1)]}),
            "at most 131071",
        ),
        (
            "repo",
            json!({"args": vec![""; MAX_ARGUMENTS + 1]}),
            "4097 arguments",
        ),
    ] {
        let error = call(&gh(), local, &arguments).unwrap_err().to_string();
        assert!(error.contains(said), "{local} {said:?}: {error}");
    }
}

#[test]
fn tools_are_declared_as_they_can_be_called() {
    let declared = gh().declarations(bin("gh"));
    let names: Vec<_> = declared.iter().map(|one| one.local.as_str()).collect();
    assert_eq!(names, ["pr.list", "pr.merge", "repo", "__dispatch"]);
    for one in &declared {
        assert_eq!(one.declared["name"], one.local);
        assert!(gh().asked(&one.local).is_some());
        assert_eq!(
            one.declared["inputSchema"]["required"].is_array(),
            one.local == DISPATCHER
        );
    }
    assert_eq!(jq(None).declarations(bin("jq")).len(), 1);
    let floor = |program: &Program, local| tool(program, "gh", local).program_floor().map(str::to_owned);
    assert_eq!(floor(&gh(), "__dispatch").as_deref(), Some("human_approval"));
    assert_eq!(floor(&jq(None), "run").as_deref(), Some("human_approval"));
    assert_eq!(floor(&gh(), "repo"), None);
}

fn tool(program: &Program, name: &str, local: &str) -> Tool {
    let declared = program
        .declarations(bin(name))
        .into_iter()
        .find(|one| one.local == local)
        .unwrap();
    let raw = serde_json::value::to_raw_value(&declared.declared).unwrap();
    Tool::from_declaration(ToolKind::Cli, Some(&name.parse().unwrap()), None, raw.into()).unwrap()
}

fn risks(tool: &Tool, arguments: &Value) -> (RiskSet, bool) {
    let text = arguments.to_string();
    let document = Document::parse(text.as_bytes(), Limits::ARGUMENTS).unwrap();
    let judged = classify_call(tool, Some(document.root())).classification;
    (judged.risks, judged.plain_read)
}

#[test]
fn a_command_is_judged_by_its_name_and_by_options_that_nobody_listed() {
    let acmectl = program(&[
        ("get", rules(Some(&["-n"]), None)),
        ("describe", rules(None, None)),
        ("delete", rules(None, None)),
    ]);
    let get = tool(&acmectl, "acmectl", "get");
    assert!(get.classification.plain_read, "{:?}", get.classification);
    let describe = tool(&acmectl, "acmectl", "describe");
    assert!(!describe.classification.plain_read);
    assert!(risks(&describe, &json!({"args": ["pods"]})).1);
    assert!(
        risks(&describe, &json!({"args": ["pods", "--x"]}))
            .0
            .contains(Risk::Execution)
    );
    let delete = tool(&acmectl, "acmectl", "delete");
    assert!(delete.classification.risks.contains(Risk::Delete));
    let dispatcher = tool(&acmectl, "acmectl", "__dispatch");
    assert_eq!(dispatcher.classification.family, Family::Generic);
    assert!(!dispatcher.classification.plain_read);
}

#[test]
fn the_text_of_a_shell_and_the_arguments_of_a_known_program_are_read() {
    let bash = tool(&jq(None), "bash", "run");
    assert_eq!(bash.classification.family, Family::Generic);
    assert!(!bash.classification.plain_read);
    let read = RiskSet::of(Risk::Read);
    assert_eq!(risks(&bash, &json!({"args": ["-c", "ls -l"]})), (read, true));
    assert!(
        risks(&bash, &json!({"args": ["-c", "ls; rm -r x"]}))
            .0
            .contains(Risk::Delete)
    );
    assert!(
        risks(&bash, &json!({"args": ["script.sh"]}))
            .0
            .contains(Risk::Execution)
    );
    assert!(
        risks(&bash, &json!({"stdin": "rm -r x"}))
            .0
            .contains(Risk::Execution)
    );
    assert!(risks(&bash, &json!({})).0.contains(Risk::Execution));
    let git = program(&[("log", rules(None, None)), ("clean", rules(None, None))]);
    let log = tool(&git, "git", "log");
    assert_eq!(risks(&log, &json!({"args": ["--oneline"]})), (read, true));
    assert!(
        risks(&log, &json!({"args": ["--output=x"]}))
            .0
            .contains(Risk::LocalWrite)
    );
    assert!(
        risks(&tool(&git, "git", "clean"), &json!({"args": ["-f"]}))
            .0
            .contains(Risk::Delete)
    );
}

/// Arguments that are made of what could deceive.
fn argument() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        Just("merge"),
        Just("pr"),
        Just("list"),
        Just("-"),
        Just("--"),
        Just("-r"),
        Just("--repo"),
        Just("--repo=x"),
        Just("-rf"),
        Just("x"),
        Just("--squash"),
        Just("-x=merge"),
        Just("Merge"),
        Just("o/r"),
        Just("=")
    ];
    parts.prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn the_way_of_asking_changes_neither_the_vector_nor_what_it_means(
        words in proptest::collection::vec(prop_oneof![Just("pr"), Just("merge"), Just("repo"), Just("issue")], 1..5),
        args in proptest::collection::vec(argument(), 0..8),
    ) {
        let gh = program(&[("pr list", rules(None, None)), ("pr merge", rules(None, None)), ("repo", rules(None, None))]);
        let (first, rest) = words.split_first().unwrap();
        let more: Vec<String> = rest.iter().map(ToString::to_string).chain(args.iter().cloned()).collect();
        let ways = [
            call(&gh, "__dispatch", &json!({"command": words.join(" "), "args": args})),
            call(&gh, "__dispatch", &json!({"command": first, "args": more})),
            call(&gh, first, &json!({"args": more})),
        ];
        let by_name = call(&gh, &words.join("."), &json!({"args": args}));
        prop_assert_eq!(by_name.is_ok(), words.len() <= 2 || gh.asked(&words.join(".")).is_some());
        let ways = ways.into_iter().chain(by_name.ok().map(Ok));
        let made: Vec<_> = ways.collect::<Result<_, _>>().unwrap();
        for one in &made {
            prop_assert_eq!(&one.argv, &made[0].argv);
            prop_assert_eq!(one.meaning.effective(), made[0].meaning.effective());
        }
        prop_assert_eq!(&made[0].meaning, &made[1].meaning);
        prop_assert_eq!(&made[1].meaning, &made[2].meaning);
    }

    #[test]
    fn no_option_but_an_allowed_one_reaches_the_program(args in proptest::collection::vec(argument(), 0..8)) {
        let jq = jq(Some(&["-r", "--repo"]));
        if let Ok(made) = call(&jq, "run", &json!({"args": args})) {
            // However a program reads `--`: what stands before the first one is allowed or no option.
            for argument in made.argv.iter().take_while(|argument| *argument != "--") {
                let is_allowed = !argument.starts_with('-') || argument == "-" || argument.starts_with("-r")
                    || argument == "--repo" || argument.starts_with("--repo=");
                prop_assert!(is_allowed, "{:?}", made.argv);
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(local in ".{0,12}", text in "\\PC{0,64}") {
        for program in [gh(), jq(None)] {
            let _ = call(&program, &local, &json!({"args": [text], "command": text, "flags": {"x": text}}));
            let _ = call(&program, "__dispatch", &json!({"command": text}));
        }
    }
}

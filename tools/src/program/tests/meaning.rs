//! What an argument vector means, whatever it was asked for as.

use super::*;

#[test]
fn one_argument_vector_has_one_effective_name_however_it_was_asked_for() {
    let gh = gh();
    for (local, arguments) in [
        ("pr.merge", json!({"args": ["7"]})),
        ("__dispatch", json!({"command": "pr merge", "args": ["7"]})),
        ("__dispatch", json!({"command": "pr", "args": ["merge", "7"]})),
        ("pr", json!({"args": ["merge", "7"]})),
    ] {
        let call = call(&gh, local, &arguments).unwrap();
        assert_eq!(call.argv, ["pr", "merge", "7"], "{local}");
        assert_eq!(call.meaning.effective(), "pr.merge", "{local}");
        assert_eq!(call.timeout, Some(Duration::from_secs(5)), "{local}");
        assert!(!call.meaning.has_undeclared());
    }
    let undeclared = call(
        &gh,
        "__dispatch",
        &json!({"command": "issue", "args": ["close", "7"]}),
    )
    .unwrap();
    assert_eq!(names(&undeclared), ["issue.close"]);
    assert_eq!(undeclared.meaning.related, ["issue", "issue.close.7"]);
    assert!(undeclared.meaning.has_undeclared());
}

#[test]
fn a_command_behind_options_is_thought_of() {
    let gh = gh();
    // `x` may be the value of `--repo` or a word.
    let behind = call(&gh, "pr", &json!({"args": ["--repo", "x", "merge", "7"]})).unwrap();
    assert_eq!(names(&behind), ["pr.merge", "pr.x"]);
    assert_eq!(behind.timeout, Some(Duration::from_secs(5)));
    let many: Vec<String> = (0..600)
        .map(|number| {
            if number % 2 == 0 {
                "-x".into()
            } else {
                format!("w{number}")
            }
        })
        .collect();
    let unclear = call(&gh, "pr", &json!({"args": many})).unwrap_err();
    assert_eq!(unclear, ArgumentError::Unclear);
}

/// The figures of docs/cli.md.
#[test]
fn how_many_options_may_be_followed_by_words() {
    let gh = gh();
    let asked = |words: &str, options: usize, option: &'static str, value: &'static str| {
        let args: Vec<&str> = (0..options).flat_map(|_| [option, value]).collect();
        call(&gh, "__dispatch", &json!({"command": words, "args": args}))
    };
    for (words, most) in [("a", 18), ("a b", 44), ("a b c", 1023)] {
        assert!(asked(words, most, "-x", "w").is_ok(), "{words}");
        assert_eq!(
            asked(words, most + 1, "-x", "w").unwrap_err(),
            ArgumentError::Unclear,
            "{words}"
        );
    }
    for (words, option, value) in [("a b c d", "-x", "w"), ("a", "-x=1", "W"), ("a", "-x", "./w")] {
        assert!(
            asked(words, 1500, option, value).is_ok(),
            "{words} {option} {value}"
        );
    }
}

#[test]
fn a_rule_may_name_as_many_words_as_a_command_has() {
    let vector = json!({"command": "compute", "args": ["instances", "--zone", "b", "delete", "vm-1"]});
    let meaning = call(&gh(), "__dispatch", &vector).unwrap().meaning;
    assert_eq!(meaning.names.len(), 1);
    assert_eq!(meaning.effective(), "compute.instances");
    for named in [
        "compute",
        "compute.instances.delete",
        "compute.instances.delete.vm-1",
        "compute.instances.b.delete",
    ] {
        assert!(
            meaning.related.iter().any(|related| related == named),
            "{named}: {meaning:?}"
        );
    }
}

#[test]
fn a_declared_command_keeps_its_options_and_timeout_behind_options() {
    let gh = gh();
    let found = call(&gh, "pr", &json!({"args": ["--repo=x", "merge", "7"]})).unwrap();
    assert_eq!(names(&found), ["pr.merge"]);
    let refused = call(&gh, "pr", &json!({"args": ["--repo=x", "merge", "--admin", "7"]})).unwrap_err();
    assert!(
        refused.to_string().contains("option \"--admin\" is not allowed"),
        "{refused}"
    );
    let maybe = call(&gh, "pr", &json!({"args": ["--repo", "merge", "7"]})).unwrap();
    assert_eq!(names(&maybe), ["pr.7", "pr.merge"]);
}

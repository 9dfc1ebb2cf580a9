//! Programs as tools, end to end: git, jq, curl and a script, through `toolgate up`. How they end is in `leftovers.rs`.

use std::path::Path;

use serde_json::{Value, json};
use tests::mischief;
use tests::up::{Up, folder, output, toolgate};

const POLICY: &str = r#"
policies:
  - name: people
    agent: "*"
    rules:
      - tools: ["mischief.deny*", "git.push", "git.a.b.c", "git.q.r.s.t"]
        action: deny
      - tools: ["*"]
        except: ["git.e.f.g"]
        action: allow
"#;

/// The script in a folder, and the configuration of it and of real programs.
fn configured(folder: &Path) -> String {
    format!(
        r#"mcp_servers: []
drain: {{seconds: 1}}
loop: {{max: 1000}}
cli_tools:
{1}  - name: git
    bin: git
    working_dir: {0}/work
    default_action: allow
    commands:
      log: {{allowed_args: ["--oneline"]}}
  - name: jq
    bin: jq
    default_action: allow
    bare: {{allowed_args: ["-r", "--compact-output"]}}
  - name: curl
    bin: curl
    default_action: allow
    bare: {{}}
  - name: held
    bin: git
    commands:
      status:
"#,
        folder.display(),
        mischief::tool(folder)
    )
}

async fn up() -> (Up, tempfile::TempDir) {
    let folder = folder();
    let yaml = format!("{}{POLICY}", configured(folder.path()));
    (Up::start(&yaml).await, folder)
}

/// What a program answered.
fn answer(body: &Value) -> &Value {
    &body["result"]["structuredContent"]
}

async fn ran(up: &Up, tool: &str, arguments: Value) -> Value {
    let agent = tests::agent::Agent::new(&up.url, "a", None);
    let (status, body) = agent.rest(tool, arguments).await;
    assert_eq!(status, 200, "{tool}: {body}");
    answer(&body).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn real_programs_are_listed_called_and_recorded() {
    let (up, folder) = up().await;
    let agent = up.agent("a").await;
    let tools = agent.tools().await;
    for tool in ["git.log", "git.__dispatch", "jq.run", "curl.run", "mischief.echo"] {
        assert!(tools.iter().any(|listed| listed == tool), "{tool}: {tools:?}");
    }
    let data = json!({"args": ["-r", ".a | .[]", "--compact-output"], "stdin": "{\"a\":[1,\"x y\"]}"});
    let filtered = agent.call("jq.run", data).await;
    assert!(filtered.is_ok(), "{}", filtered.answer);
    let content = &filtered.answer["result"]["structuredContent"];
    assert_eq!(
        (&content["stdout"], &content["exit_code"]),
        (&json!("1\nx y\n"), &json!(0))
    );
    assert_eq!(filtered.text(), content.to_string());

    let init = ran(&up, "git.init", json!({"flags": {"quiet": true}})).await;
    assert_eq!(init["exit_code"], 0, "{init}");
    let commit =
        json!({"command": "commit", "args": ["--allow-empty", "-m", "first one", "--author", "A <a@b>"]});
    let flagged = json!({"args": ["user.email", "a@b"]});
    assert_eq!(ran(&up, "git.config", flagged).await["exit_code"], 0);
    assert_eq!(
        ran(&up, "git.config", json!({"args": ["user.name", "A"]})).await["exit_code"],
        0
    );
    assert_eq!(ran(&up, "git.__dispatch", commit).await["exit_code"], 0);
    let log = ran(&up, "git.log", json!({"flags": {"oneline": true}})).await;
    assert!(log["stdout"].as_str().unwrap().ends_with("first one\n"), "{log}");

    let url = format!("{}/healthz", up.url);
    let fetched = ran(
        &up,
        "curl.run",
        json!({"args": ["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", url]}),
    )
    .await;
    assert!(fetched["stdout"].as_str().unwrap().len() == 3, "{fetched}");

    let records = up.operator().records("tool=git.__dispatch", 1).await;
    let record = &records[0];
    assert_eq!(
        record["argv"],
        json!([
            "commit",
            "--allow-empty",
            "-m",
            "first one",
            "--author",
            "A <a@b>"
        ])
    );
    assert_eq!(
        (&record["exit_code"], &record["command"]),
        (&json!(0), &json!("git.commit"))
    );
    assert!(record["upstream_ms"].is_number());
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_has_one_meaning_whatever_it_is_called() {
    let (up, _folder) = up().await;
    let agent = tests::agent::Agent::new(&up.url, "a", None);
    for (tool, arguments) in [
        ("git.push", json!({})),
        ("git.push", json!({"args": ["origin"]})),
        ("git.__dispatch", json!({"command": "push"})),
        ("git.__dispatch", json!({"command": "a b c"})),
        (
            "git.__dispatch",
            json!({"command": "a", "args": ["b", "-x", "y", "c"]}),
        ),
        ("git.a.b", json!({"args": ["c", "d", "e"]})),
        (
            "git.__dispatch",
            json!({"command": "q r s t", "args": ["u", "v"]}),
        ),
        (
            "git.__dispatch",
            json!({"command": "push", "args": ["origin", "main"]}),
        ),
        ("git.__dispatch", json!({"command": "push origin"})),
    ] {
        let (status, body) = agent.rest(tool, arguments.clone()).await;
        assert_eq!(
            (status, &body["reason"]),
            (403, &json!("policy")),
            "{tool} {arguments}: {body}"
        );
        let (_, decided) = agent.decide(tool, arguments.clone()).await;
        assert_eq!(decided["action"], "deny", "{tool} {arguments}: {decided}");
    }
    // What is taken out of the rule that allows is not allowed by it.
    for arguments in [
        json!({"command": "e f g"}),
        json!({"command": "e", "args": ["f", "g", "h"]}),
    ] {
        let (status, body) = agent.rest("git.__dispatch", arguments.clone()).await;
        assert_eq!(
            (status, &body["reason"]),
            (403, &json!("no_rule")),
            "{arguments}: {body}"
        );
    }
    assert_eq!(
        agent.rest("git.__dispatch", json!({"command": "e f h"})).await.0,
        200
    );
    // The floor of what is not declared holds, and a declared command has none.
    for tool in ["held.log", "held.__dispatch"] {
        let (status, body) = agent.rest(tool, json!({"command": "log"})).await;
        assert_eq!(
            (status, &body["reason"]),
            (403, &json!("dispatcher")),
            "{tool}: {body}"
        );
    }
    assert_eq!(agent.rest("held.status", json!({})).await.0, 200);
    assert_eq!(agent.rest("held.a.b.c", json!({})).await.0, 404);
    assert_eq!(agent.rest("jq.other", json!({})).await.0, 404);
    // A declared command keeps its options however it is reached.
    for (tool, arguments) in [
        ("git.log", json!({"args": ["--output=x"]})),
        (
            "git.__dispatch",
            json!({"command": "log", "args": ["--output=x"]}),
        ),
        ("mischief.echo", json!({"args": ["-x"]})),
        ("mischief.echo", json!({"args": ["-n", "--", "--evil"]})),
        ("mischief.echo", json!({"flags": {"n": "--evil"}})),
        ("mischief.__dispatch", json!({"command": "echo", "args": ["-x"]})),
        ("jq.run", json!({"args": ["-f", "/etc/passwd"]})),
    ] {
        let (status, body) = agent.rest(tool, arguments.clone()).await;
        assert_eq!(
            (status, &body["reason"]),
            (400, &json!("invalid_arguments")),
            "{tool} {arguments}: {body}"
        );
        assert!(
            body["detail"].as_str().unwrap().contains("is not allowed"),
            "{body}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_can_mean_too_much_is_refused_and_recorded() {
    let (up, _folder) = up().await;
    let agent = tests::agent::Agent::new(&up.url, "a", None);
    let asked = |options: usize| {
        let args: Vec<&str> = (0..options).flat_map(|_| ["-x", "word"]).collect();
        json!({"command": "version", "args": args})
    };
    assert_eq!(agent.rest("git.__dispatch", asked(18)).await.0, 200);
    let (status, body) = agent.rest("git.__dispatch", asked(19)).await;
    assert_eq!(
        (status, &body["reason"]),
        (400, &json!("invalid_arguments")),
        "{body}"
    );
    let detail = body["detail"].as_str().unwrap();
    assert!(
        detail.contains("cannot be told which command is meant") && detail.contains("--name=value"),
        "{body}"
    );
    let records = up.operator().records("tool=git.__dispatch", 2).await;
    let refused: Vec<&Value> = records
        .iter()
        .filter(|record| record["reason"] == "invalid_arguments")
        .collect();
    assert_eq!(refused.len(), 1, "{records:?}");
    assert!(refused[0]["exit_code"].is_null(), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_call_is_replayed_as_what_it_meant() {
    let (up, folder) = up().await;
    ran(
        &up,
        "mischief.__dispatch",
        json!({"command": "echo", "args": ["hello"]}),
    )
    .await;
    ran(&up, "git.__dispatch", json!({"command": "init"})).await;
    up.operator().records("tool=mischief.__dispatch", 1).await;
    up.operator().records("tool=git.__dispatch", 1).await;
    let file = folder.path().join("new.yaml");
    let text = "name: people\nagent: '*'\nrules:\n  - {tools: [mischief.echo, git.init], action: deny}\n  - {tools: ['*'], action: allow}\n";
    std::fs::write(&file, text).unwrap();
    let replayed = up
        .json(&["policy", "replay", "--since", "1h", file.to_str().unwrap()])
        .await;
    let denied: Vec<&Value> = replayed["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|change| change["to"] == "deny" && change["from"] == "allow")
        .map(|change| &change["tool"])
        .collect();
    assert_eq!(denied, ["git.__dispatch", "mischief.__dispatch"], "{replayed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_reach_the_program_as_they_are_and_no_shell_reads_them() {
    let (up, folder) = up().await;
    let hostile = [
        "$(touch pwned)",
        "a b",
        "; touch pwned",
        "`id`",
        "*",
        "~",
        "é\u{202e}x",
        "",
        "-",
    ];
    let echoed = ran(&up, "mischief.echo", json!({"args": hostile})).await;
    assert_eq!(echoed["stdout"], format!("{}\n", hostile.join("\n")));
    assert!(!folder.path().join("pwned").exists() && !folder.path().join("work/pwned").exists());
    let agent = tests::agent::Agent::new(&up.url, "a", None);
    for text in [
        ";", "a && b", "a || b", "a | b", "`id`", "$(id)", "${HOME}", "a\nb", "a\rb", "a\0b",
    ] {
        for arguments in [
            json!({"command": "other", "args": [text]}),
            json!({"command": "other", "flags": {"x": text}}),
            json!({"command": "echo", "args": [text]}),
        ] {
            let (status, body) = agent.rest("mischief.__dispatch", arguments.clone()).await;
            assert_eq!(
                (status, &body["reason"]),
                (400, &json!("invalid_arguments")),
                "{arguments}: {body}"
            );
        }
    }
    assert_eq!(
        agent.rest("mischief.echo", json!({"args": ["a\0b"]})).await.0,
        400
    );
    for arguments in [
        json!({"args": "x"}),
        json!({"args": [1]}),
        json!({"flags": {"--x": 1}}),
        json!({"other": 1}),
        json!({"stdin": 1}),
    ] {
        let (status, body) = agent.rest("mischief.echo", arguments.clone()).await;
        assert_eq!(
            (status, &body["reason"]),
            (400, &json!("invalid_arguments")),
            "{arguments}: {body}"
        );
    }
    for command in ["-x", "A", "a;b", "", "a b c d e", "../x", "a/b"] {
        let (status, body) = agent
            .rest("mischief.__dispatch", json!({"command": command}))
            .await;
        assert_eq!(
            (status, &body["reason"]),
            (400, &json!("invalid_arguments")),
            "{command:?}: {body}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_has_its_own_environment_folder_and_nothing_open() {
    let (up, folder) = up().await;
    let shown = ran(&up, "mischief.env", json!({})).await;
    let text = shown["stdout"].as_str().unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    for name in &names {
        // What bash sets by itself: SHLVL, PWD, OLDPWD, _.
        assert!(
            [
                "PATH",
                "HOME",
                "LANG",
                "GREETING",
                "TOOLGATE_RUN",
                "SHLVL",
                "PWD",
                "OLDPWD",
                "_"
            ]
            .contains(name),
            "{text}"
        );
    }
    assert!(
        text.contains("GREETING=hello ${NAME}\n") && text.contains("LANG=en_US.UTF-8\n"),
        "{text}"
    );
    // 0, 1, 2, and the folder that `ls` reads.
    assert_eq!(text.lines().last().unwrap().trim(), "4", "{text}");
    let here = ran(&up, "git.rev-parse", json!({"args": ["--show-prefix"]})).await;
    assert_ne!(here["exit_code"], 0, "work is no repository yet: {here}");
    let fed = ran(&up, "mischief.input", json!({"stdin": "$(data) é"})).await;
    assert_eq!(fed["stdout"], "$(data) é");
    let large = "x".repeat(1_000_000);
    assert_eq!(
        ran(&up, "mischief.blind", json!({"stdin": large})).await["exit_code"],
        0
    );
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_sees_the_argument_vector() {
    let folder = folder();
    let mut yaml = configured(folder.path());
    yaml.push_str("approval: {rest_hold_seconds: 0}\npolicies:\n  - {name: p, agent: '*', rules: [{tools: ['*'], action: human_approval}]}\n");
    let up = Up::start(&yaml).await;
    let agent = tests::agent::Agent::new(&up.url, "a", None);
    let arguments = json!({"command": "echo", "flags": {"name": "x"}, "args": ["hello"]});
    assert_eq!(agent.rest("mischief.__dispatch", arguments).await.0, 202);
    let pending = up.operator().pending("mischief.__dispatch").await;
    assert_eq!(
        pending["params"]["argv"],
        json!(["echo", "--name", "x", "hello"]),
        "{pending}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_and_others_are_discovered() {
    let folder = folder();
    let text = "cli_tools:\n  - {name: git, bin: git, commands: {log: {allowed_args: ['--oneline']}, push: {}}}\n  - {name: jq, bin: jq, bare: {}}\n";
    std::fs::write(folder.path().join("c.yaml"), text).unwrap();
    let mut command = toolgate(&["discover", "--config", "c.yaml", "--generate-policy"]);
    command.current_dir(folder.path());
    let drafted = output(command, "").await;
    assert_eq!(drafted.code, 0, "{drafted:?}");
    for line in [
        "#   git.log [read]",
        "- \"git.push\"",
        "- \"git.__dispatch\"",
        "- \"jq.run\"",
    ] {
        assert!(drafted.stdout.contains(line), "{line}: {}", drafted.stdout);
    }
    std::fs::write(folder.path().join("draft.yaml"), &drafted.stdout).unwrap();
    let mut lint = toolgate(&["policy", "lint", "draft.yaml"]);
    lint.current_dir(folder.path());
    let linted = output(lint, "").await;
    assert_eq!(linted.code, 0, "{linted:?}");

    std::fs::write(
        folder.path().join("c.yaml"),
        "cli_tools: [{name: x, bin: no-such-program-here}]\n",
    )
    .unwrap();
    let mut command = toolgate(&["discover", "--config", "c.yaml"]);
    command.current_dir(folder.path());
    let missing = output(command, "").await;
    assert_ne!(missing.code, 0, "{missing:?}");
    assert!(
        missing.stderr.contains("no program no-such-program-here on PATH"),
        "{missing:?}"
    );
}

//! CLI tools: what the configuration of one says, and what each mistake is told.

use std::path::Path;
use std::time::Duration;

use policy::document::Action;

use crate::Config;

fn problems(tool: &str) -> Vec<String> {
    let text = format!("cli_tools:\n  - {tool}\n");
    let found = Config::parse("c.yaml", &text, &[("HOME", "/home/x")].into_iter().collect()).unwrap_err();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_cli_tool_is_read_with_its_defaults() {
    let text = "\
cli_tools:
  - name: terraform
    bin: terraform
    default_action: human_approval
    working_dir: /srv/infra
    env: {TF_IN_AUTOMATION: \"1\"}
    commands:
      plan: {timeout: 120s}
      apply: {allowed_args: [\"-target\"], timeout: 300s}
      state list:
  - name: jq
    bin: ./jq
    bare: {allowed_args: [\"-r\", \"--compact-output\"]}
";
    let config = Config::parse("c.yaml", text, &[("HOME", "/home/x")].into_iter().collect()).unwrap();
    let [terraform, jq] = config.cli_tools.as_slice() else {
        panic!("{config:?}")
    };
    assert_eq!(terraform.default_action, Action::HumanApproval);
    assert_eq!(terraform.commands["plan"].timeout, Duration::from_secs(120));
    assert_eq!(terraform.commands["state list"].timeout, Duration::from_secs(30));
    assert_eq!(terraform.commands["state list"].allowed_args, None);
    assert_eq!(terraform.bin, Path::new("terraform"));
    assert_eq!(
        (jq.default_action, jq.strict, jq.max_calls),
        (Action::Deny, false, 8)
    );
    assert_eq!(jq.max_output_bytes, 1024 * 1024);
    assert!(jq.bare.is_some() && jq.commands.is_empty());
    assert_eq!(config.upstream_names().count(), 2);
    assert!(
        !format!("{terraform:?}").contains("\"1\""),
        "values of env are not shown"
    );
}

#[test]
fn each_mistake_about_a_cli_tool_is_told() {
    for (tool, said) in [
        ("{bin: x}", "a CLI tool needs the key \"name\""),
        ("{name: '', bin: x}", "upstream name is empty"),
        ("{name: 'a.b', bin: x}", "may hold only letters"),
        ("{name: mesh, bin: x}", "is reserved"),
        ("{name: a}", "a CLI tool needs the key \"bin\""),
        ("{name: a, bin: ''}", "bin: the program's name is empty"),
        ("{name: a, bin: [x]}", "bin: expected a program's name or path"),
        (
            "{name: a, bin: x, default_action: ask}",
            "action \"ask\" is unknown",
        ),
        ("{name: a, bin: x, strict: true}", "strict needs commands"),
        (
            "{name: a, bin: x, commands: {p: {timeout: soon}}}",
            "timeout: \"soon\" is not a duration",
        ),
        (
            "{name: a, bin: x, commands: {p: {timeout: 0s}}}",
            "timeout: must be longer than nothing",
        ),
        (
            "{name: a, bin: x, commands: {p: {timeout: 30}}}",
            "timeout: expected a duration",
        ),
        (
            "{name: a, bin: x, bare: {}, commands: {p: {}}}",
            "bare and commands exclude each other",
        ),
        (
            "{name: a, bin: x, commands: {--p: {}}}",
            "\"--p\" is not a word of a command",
        ),
        (
            "{name: a, bin: x, commands: {a.b: {}}}",
            "\"a.b\" is not a word of a command",
        ),
        ("{name: a, bin: x, commands: {a b c d e: {}}}", "has 5 words"),
        ("{name: a, bin: x, commands: {'': {}}}", "a command needs a name"),
        (
            "{name: a, bin: x, commands: {a b: {}, 'a  b': {}}}",
            "\"a b\" is declared twice",
        ),
        (
            "{name: a, bin: x, commands: {p: {allowed_args: [x]}}}",
            "\"x\" is not an option",
        ),
        (
            "{name: a, bin: x, commands: {p: {allowed_args: ['--']}}}",
            "\"--\" is not an option",
        ),
        (
            "{name: a, bin: x, bare: {allowed_args: ['-n=1']}}",
            "\"-n=1\" is not an option",
        ),
        (
            "{name: a, bin: x, commands: {p: {allowed: []}}}",
            "unknown key \"allowed\" in a command",
        ),
        (
            "{name: a, bin: x, env: {A=B: x}}",
            "is not the name of a variable",
        ),
        (
            "{name: a, bin: x, max_calls: 0}",
            "max_calls: expected a whole number from 1 to 1024",
        ),
        ("{name: a, bin: x, max_output_bytes: 0}", "is not a size"),
        (
            "{name: a, bin: x}\n  - {name: a, bin: y}",
            "the name \"a\" is given to two upstreams",
        ),
    ] {
        let found = problems(tool);
        assert!(
            found.iter().any(|problem| problem.contains(said)),
            "{tool}: {found:?}"
        );
    }
    let text = "mcp_servers: [{name: a, transport: stdio, command: x}]\ncli_tools: [{name: a, bin: x}]\n";
    let found = Config::parse("c.yaml", text, &[("HOME", "/home/x")].into_iter().collect()).unwrap_err();
    assert_eq!(
        found[0].to_string(),
        "c.yaml:2:12 the name \"a\" is given to two upstreams; names are unique"
    );
}

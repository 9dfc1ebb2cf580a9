//! What each kind of mistake is told.

use crate::Config;

fn problems_with(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let environment = variables.iter().copied().collect();
    let found = Config::parse("c.yaml", text, &environment).unwrap_err();
    found.iter().map(ToString::to_string).collect()
}

fn problems(text: &str) -> Vec<String> {
    problems_with(text, &[])
}

#[test]
fn every_problem_is_told_at_once_with_its_place() {
    let text =
        "prot: 1\nport: high\nlisten: {agnet: x, grpc: nowhere}\npin_tools: yes\nstaleness: {write: 5}\n";
    assert_eq!(
        problems(text),
        [
            "c.yaml:1:1 unknown key \"prot\" in the configuration; did you mean \"port\"?",
            "c.yaml:2:7 port: expected a whole number from 0 to 65535, found the string \"high\"",
            "c.yaml:3:10 unknown key \"agnet\" in listen; did you mean \"agent\"?",
            "c.yaml:3:26 grpc: \"nowhere\" is not an address; write an IP address and a port, such as 127.0.0.1:9090",
            "c.yaml:4:12 pin_tools: expected true or false, found the string \"yes\"",
            "c.yaml:5:20 write: expected a duration such as 4m30s, found the number 5",
        ]
    );
}

#[test]
fn what_is_not_built_yet_is_an_error_that_says_so() {
    for key in [
        "supervisor",
        "memory",
        "trace_file",
        "otel_endpoint",
        "otel_headers",
        "otel_ca_cert",
        "otel_insecure_skip_verify",
    ] {
        let expected = format!("c.yaml:1:1 {key} is not available in this version; remove it");
        assert_eq!(problems(&format!("{key}: x\n")), [expected]);
    }
    for (text, place, key) in [
        (
            "approval: {channel: tty}",
            "1:21",
            "channel: tty is not available in this version",
        ),
        (
            "approval: {channel: tty-fallback}",
            "1:21",
            "channel: tty-fallback is not available in this version",
        ),
        (
            "approval: {callback_hosts: [x]}",
            "1:12",
            "callback_hosts is not available in this version; remove it",
        ),
        (
            "traces: {retention_days: 3}",
            "1:10",
            "retention_days is not available in this version; remove it",
        ),
    ] {
        assert_eq!(problems(text), [format!("c.yaml:{place} {key}")]);
    }
}

#[test]
fn questions_of_a_server_need_a_connection_for_each_session() {
    let server = "mcp_servers: [{name: a, transport: stdio, command: x, share: true, server_requests: ";
    assert!(problems(&format!("{server}[roots]}}]"))[0].contains("remove share: true, or the list"));
    assert!(problems(&format!("{server}[root]}}]"))[0].contains("did you mean \"roots\"?"));
    let environment = std::iter::empty::<(&str, &str)>().collect();
    let nothing = Config::parse("c.yaml", &format!("{server}[]}}]"), &environment);
    assert!(nothing.is_ok(), "{nothing:?}");
}

#[test]
fn values_out_of_range_are_told_with_the_range() {
    assert_eq!(
        problems("approval: {wait_seconds: 11}"),
        [
            "c.yaml:1:26 wait_seconds: expected seconds, a whole number from 0 to 10, found 11"
                .replace("expected seconds, a", "expected a")
        ]
    );
    assert!(problems("limits: {depth: 65}")[0].contains("from 1 to 64, found 65"));
    assert!(problems("limits: {argument_bytes: 4 parsecs}")[0].contains("is not a size"));
    assert!(problems("staleness: {write: 0s}")[0].contains("must be longer than nothing"));
    assert!(problems("port: 65536")[0].contains("from 0 to 65535"));
}

#[test]
fn a_word_that_is_no_choice_gets_the_nearest() {
    assert_eq!(
        problems("spool: {sync: dsk}"),
        ["c.yaml:1:15 sync: \"dsk\" is unknown; did you mean \"disk\"?"]
    );
    assert!(problems("approval: {channel: pager}")[0].contains("valid are queue"));
}

#[test]
fn settings_that_do_not_fit_together_are_told() {
    for (text, expected) in [
        ("tls: {cert_file: a}", "1:18 tls.cert_file needs tls.key_file too"),
        ("tls: {key_file: a}", "1:17 tls.key_file needs tls.cert_file too"),
        (
            "tls: {client_ca_file: a}",
            "1:23 tls.client_ca_file needs tls.cert_file and tls.key_file too",
        ),
        (
            "staleness: {write: 5m, read: 1m}",
            "1:30 staleness.read must not be shorter than staleness.write",
        ),
        (
            "storage_path: a\ndatabase_url: postgres://x/y",
            "1:15 storage_path and database_url exclude each other; keep one of them",
        ),
        (
            "limits: {message_bytes: 1MiB}",
            "1:9 limits.argument_bytes must not be larger than limits.message_bytes",
        ),
        (
            "control_plane: {url: 'http://x:1', ca_cert: a}",
            "1:45 control_plane.ca_cert needs a url that starts with https://",
        ),
        (
            "auth: {jwt: {jwks_url: 'http://x/', issuer: i, audience: a, ca_cert: c}}",
            "1:70 auth.jwt.ca_cert needs a jwks_url that starts with https://",
        ),
        (
            "auth: {service_accounts: {ca_cert: c}}",
            "1:36 auth.service_accounts.ca_cert needs jwks_url too",
        ),
        (
            "auth: {sidecar_accounts: {token_file: c, accounts: ['prod:*']}}",
            "1:39 auth.sidecar_accounts.token_file needs jwks_url too",
        ),
        (
            "auth: {sidecar_accounts: {agents: ['*']}}",
            "1:26 auth.sidecar_accounts needs the key \"accounts\": patterns such as \"prod:*\"",
        ),
        (
            "control_plane: {token_file: a, service_account_file: b}",
            "1:54 control_plane.service_account_file and token_file exclude each other; keep one of them",
        ),
        (
            "auth: {service_accounts: {audience: toolgate}}",
            "1:37 auth.service_accounts.audience must not be \"toolgate\": an agent's token could enrol a sidecar",
        ),
        (
            "auth: {sidecar_accounts: {accounts: ['prod:*'], audience: toolgate-agent}}",
            "1:59 auth.sidecar_accounts.audience must not be \"toolgate-agent\": that is what agents' tokens are for, and one could enrol a sidecar",
        ),
        (
            "auth: {jwt: {jwks_url: 'https://x/', issuer: i, audience: a}, service_accounts: {issuer: i, audience: a}}",
            "1:81 auth.service_accounts.audience must not be that of auth.jwt: one token could name two agents",
        ),
        (
            "auth: {sidecar_accounts: {accounts: ['prod:*'], audience: a}, service_accounts: {audience: a}}",
            "1:26 auth.sidecar_accounts.audience must not be that of auth.service_accounts: an agent's token could enrol a sidecar",
        ),
        (
            "auth: {sidecar_accounts: {accounts: ['prod:*'], issuer: i, audience: a}, jwt: {jwks_url: 'https://x/', issuer: i, audience: a}}",
            "1:26 auth.sidecar_accounts.audience must not be that of auth.jwt: an agent's token could enrol a sidecar",
        ),
        (
            "auth: {sidecar_accounts: {accounts: ['prod:*'], issuer: i, audience: a}, operators: {jwks_url: 'https://x/', issuer: i, audience: a, roles: [{value: a, role: admin}]}}",
            "1:85 auth.operators.audience must not be that of auth.sidecar_accounts: a sidecar's token would be an operator's",
        ),
        (
            "outbound: {no_proxy: [10.0.0.0/8]}",
            "1:22 outbound.no_proxy needs outbound.proxy too: without one everything is reached directly",
        ),
        (
            "mcp_servers: [{name: a, transport: stdio}]",
            "1:15 an MCP server with transport stdio needs the key \"command\"",
        ),
        (
            "mcp_servers: [{name: a, transport: streamable-http, url: 'http://x/', env: {A: b}}]",
            "1:76 env means nothing with transport streamable-http; remove it",
        ),
        (
            "mcp_servers: [{name: a, transport: stdio, command: x}, {name: a, transport: stdio, command: y}]",
            "1:14 the name \"a\" is given to two upstreams; names are unique",
        ),
        (
            "expose: {prefix: never}\nmcp_servers: [{name: a, transport: stdio, command: x}, {name: b, transport: stdio, command: y}]",
            "1:9 expose.prefix: never needs exactly one MCP server, and no other upstream",
        ),
    ] {
        assert_eq!(problems(text), [format!("c.yaml:{expected}")]);
    }
}

#[test]
fn servers_need_a_name_and_a_transport_and_a_sound_url() {
    assert_eq!(
        problems("mcp_servers: [{command: x}]"),
        [
            "c.yaml:1:15 an MCP server needs the key \"name\"",
            "c.yaml:1:15 an MCP server needs the key \"transport\"",
        ]
    );
    assert!(problems("mcp_servers: [{name: mesh, transport: stdio, command: x}]")[0].contains("reserved"));
    for url in ["ftp://x/", "http://", "localhost:1", "http://user:pass@x/"] {
        let text = format!("mcp_servers: [{{name: a, transport: streamable-http, url: '{url}'}}]");
        let found = problems(&text);
        assert!(
            found[0].contains("URL") && !found[0].contains("pass@"),
            "{found:?}"
        );
    }
}

#[test]
fn an_identity_provider_needs_its_address_its_name_and_an_audience() {
    assert_eq!(
        problems("auth: {jwt: {agent_claim: azp}}"),
        ["jwks_url", "issuer", "audience"].map(|key| format!("c.yaml:1:13 auth.jwt needs the key \"{key}\""))
    );
    let text = "auth: {jwt: {jwks_url: 'https://u:hunter2@x/', issuer: '', audience: a, user: b}}";
    let found = problems(text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[2].contains("unknown key \"user\" in auth.jwt"), "{found:?}");
    assert!(!found.concat().contains("hunter2"), "{found:?}");
    assert!(
        problems("auth: {agents: {a: ''}}")[0].contains("agent"),
        "an empty agent id"
    );
}

#[test]
fn an_unset_variable_in_a_header_is_named() {
    let text = "mcp_servers:\n- {name: a, transport: streamable-http, url: 'http://x/', headers: {X-Key: '${A}${B_TOKEN}'}}\n";
    assert_eq!(
        problems_with(text, &[("A", "1")]),
        ["c.yaml:2:76 X-Key: the environment variable B_TOKEN is not set; set it, or remove it here"]
    );
    assert!(problems_with(&text.replace("${A}${B_TOKEN}", "${A"), &[])[0].contains("has no closing"));
    assert!(problems_with(text, &[("A", "1\n2"), ("B_TOKEN", "2")])[0].contains("no header may hold"));
}

#[test]
fn problems_of_policies_are_told_with_the_rest() {
    let text = "prot: 1\npolicies:\n  - name: p\n    agent: a\n    rules:\n      - {tools: [\"@nobody\"], action: alow}\n";
    let found = problems(text);
    assert!(
        found[0].starts_with("c.yaml:1:1 unknown key \"prot\""),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("c.yaml:6:") && line.contains("alow")),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("c.yaml:6:") && line.contains("nobody")),
        "{found:?}"
    );
}

#[test]
fn a_variable_with_a_bad_value_is_named() {
    assert_eq!(
        problems_with("", &[("TOOLGATE_PORT", "x"), ("TOOLGATE_SPOOL_SYNC", "never")]),
        [
            "environment variable TOOLGATE_PORT: expected a whole number from 0 to 65535, found x",
            "environment variable TOOLGATE_SPOOL_SYNC: \"never\" is unknown; valid are auto, process, disk",
        ]
    );
}

#[test]
fn secrets_are_never_told() {
    let text = "database_url: mysql://u:hunter2@x/y\nmaster_key: hunter2\nauth: {admin_token: 270893}\n";
    let found = problems_with(text, &[("TOOLGATE_CONTROL_PLANE_URL", "http://u:hunter2@x/")]);
    assert_eq!(found.len(), 4);
    assert!(
        found
            .iter()
            .all(|line| !line.contains("hunter2") && !line.contains("270893")),
        "{found:?}"
    );
    assert_eq!(
        found[1],
        "c.yaml:2:13 master_key may not stand in a file; set TOOLGATE_MASTER_KEY"
    );
}

#[test]
fn a_text_that_is_not_one_mapping_is_told() {
    assert!(problems("- a\n")[0].contains("expected the configuration (a mapping), found a list"));
    assert!(problems("port: 1\n---\nport: 2\n")[0].contains("one document"));
    assert!(problems("a: [\n")[0].contains("not valid YAML"));
    assert!(problems("listen: 9090\n")[0].contains("expected listen (a mapping), found the number 9090"));
    assert!(problems("mcp_servers: {}\n")[0].contains("expected a list"));
}

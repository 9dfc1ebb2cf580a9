//! What a configuration becomes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::{ApprovalChannel, Params, Separator, Sync, Transport};
use crate::{Config, Environment};

fn parse(text: &str) -> Config {
    Config::parse("c.yaml", text, &Environment::default()).unwrap()
}

#[test]
fn an_empty_file_is_the_defaults() {
    let config = parse("");
    assert_eq!(config.agent_address().to_string(), "127.0.0.1:9090");
    assert_eq!(config.listen.operator.to_string(), "127.0.0.1:9095");
    assert_eq!(config.listen.grpc.to_string(), "127.0.0.1:9091");
    assert_eq!(config.staleness.write, Duration::from_secs(180));
    assert_eq!(config.staleness.read, Duration::from_secs(900));
    assert_eq!(config.approval.timeout_seconds, Duration::from_secs(300));
    assert_eq!(config.approval.wait_seconds, Duration::ZERO);
    assert_eq!(config.approval.channel, ApprovalChannel::Queue);
    assert_eq!(config.limits.argument_bytes, 4 << 20);
    assert_eq!(config.limits.message_bytes, 16 << 20);
    assert_eq!((config.limits.depth, config.r#loop.max), (64, None));
    assert_eq!(config.spool.sync, Sync::Auto);
    assert_eq!(config.traces.params, Params::Redacted);
    assert_eq!(config.expose.separator, Separator::Dot);
    assert_eq!(config.credentials.ttl, Duration::from_secs(3600));
    assert_eq!(config.grants.max_duration, Duration::from_secs(86_400));
    assert!(config.sidecar.agents[0].is_any());
    assert!(!config.auth.loopback_operators && !config.pin_tools && !config.hide_denied_tools);
    assert!(config.mcp_servers.is_empty() && config.policies.is_empty());
}

const DESKTOP: &str = r#"
port: 9100
mcp_servers:
  - name: filesystem
    transport: stdio
    command: npx
    args: ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"]
    env:
      NODE_OPTIONS: "${NOT_EXPANDED}"
  - name: memory
    transport: streamable-http
    url: "http://localhost:9070/mcp"
    forward_identity: true
    headers:
      Authorization: "Bearer ${MEM7_TOKEN}"
lists:
  readers: ["*.read_*", "*.list_*"]
policies:
  - name: support-agent
    agent: "support-*"
    rules:
      - tools: ["@readers"]
        action: allow
      - tools: ["*"]
        action: deny
policy_dir: ./policies
pin_tools: true
storage_path: state.db
spool: {dir: /var/spool/toolgate, sync: disk, max_bytes: 64MiB}
staleness: {write: 1m30s, read: 5m}
sidecar: {name: desk, labels: {site: home}, agents: ["a", "b-*"], namespace: team}
"#;

#[test]
fn a_desktop_configuration_is_read_whole() {
    let environment = [("MEM7_TOKEN", "s3cret")].into_iter().collect();
    let config = Config::parse("c.yaml", DESKTOP, &environment).unwrap();
    let [files, memory] = &config.mcp_servers[..] else {
        panic!("two servers are configured")
    };
    assert_eq!(
        (files.name.as_str(), files.transport),
        ("filesystem", Transport::Stdio)
    );
    assert_eq!(files.args[2].expose(), "/home/me");
    assert_eq!(files.env["NODE_OPTIONS"].expose(), "${NOT_EXPANDED}");
    assert_eq!(memory.headers["Authorization"].expose(), "Bearer s3cret");
    assert!(memory.forward_identity);
    assert_eq!(config.policies[0].name.as_str(), "support-agent");
    assert_eq!(config.policy_dir.as_deref(), Some(Path::new("./policies")));
    assert_eq!(config.spool_dir(), PathBuf::from("/var/spool/toolgate"));
    assert_eq!(
        (config.spool.max_bytes, config.spool.sync),
        (64 << 20, Sync::Disk)
    );
    assert_eq!(config.staleness.write, Duration::from_secs(90));
    assert_eq!(
        config.sidecar.namespace.as_ref().map(|n| n.as_str()),
        Some("team")
    );
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn a_control_plane_needs_no_secrets_of_upstreams() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, DESKTOP).unwrap();
    assert!(Config::load(&path, &Environment::default()).is_err());
    let config = Config::load_without_upstreams(&path, &Environment::default()).unwrap();
    assert!(config.mcp_servers.is_empty());
    assert_eq!(config.policies.len(), 1);
}

#[test]
fn the_environment_overrides_the_file() {
    let environment: Environment = [
        ("TOOLGATE_PORT", "9200"),
        ("TOOLGATE_SPOOL_SYNC", "process"),
        ("TOOLGATE_PIN_TOOLS", "true"),
        ("TOOLGATE_STALENESS_WRITE", "10s"),
        ("TOOLGATE_LISTEN_HOSTS", "a.example, b.example"),
        ("TOOLGATE_CONTROL_URL", "https://control:9091"),
        ("TOOLGATE_ADMIN_TOKEN", "first"),
        ("MESH_ADMIN_TOKEN", "second"),
        ("TOOLGATE_MASTER_KEY", "mk"),
        ("MESH_TRACE_KEY", "tk"),
        ("TOOLGATE_NAMESPACE", "not a key"),
    ]
    .into_iter()
    .collect();
    let config = Config::parse("c.yaml", "port: 1\nspool: {sync: disk}\n", &environment).unwrap();
    assert_eq!(
        (config.port, config.spool.sync, config.pin_tools),
        (9200, Sync::Process, true)
    );
    assert_eq!(config.staleness.write, Duration::from_secs(10));
    assert_eq!(config.listen.hosts, ["a.example", "b.example"]);
    assert_eq!(config.control_plane.url.as_deref(), Some("https://control:9091"));
    assert_eq!(
        config
            .auth
            .admin_token
            .map(|token| token.expose().to_owned())
            .as_deref(),
        Some("first")
    );
    assert_eq!(
        config.master_key.map(|key| key.expose().to_owned()).as_deref(),
        Some("mk")
    );
    assert_eq!(
        config.trace_key.map(|key| key.expose().to_owned()).as_deref(),
        Some("tk")
    );
}

#[test]
fn a_service_link_of_kubernetes_is_not_a_setting() {
    let environment = [("TOOLGATE_PORT", "tcp://10.0.0.1:9090")].into_iter().collect();
    assert_eq!(Config::parse("c.yaml", "", &environment).unwrap().port, 9090);
}

#[test]
fn relative_paths_start_from_the_files_folder_and_those_of_variables_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    std::fs::write(
        &path,
        "policy_dir: ./policies\ntls: {cert_file: /etc/c.pem, key_file: k.pem}\n",
    )
    .unwrap();
    let environment = [
        ("TOOLGATE_STORAGE_PATH", "state.db"),
        ("XDG_STATE_HOME", "/state"),
    ]
    .into_iter()
    .collect();
    let config = Config::load(&path, &environment).unwrap();
    assert_eq!(config.policy_dir, Some(folder.path().join("./policies")));
    assert_eq!(config.tls.key_file, Some(folder.path().join("k.pem")));
    assert_eq!(config.tls.cert_file, Some(PathBuf::from("/etc/c.pem")));
    assert_eq!(config.storage_path(), PathBuf::from("state.db"));
    assert_eq!(config.data_dir, PathBuf::from("/state/toolgate"));
    assert_eq!(config.spool_dir(), PathBuf::from("/state/toolgate/spool"));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.yaml");
    let found = Config::load(&path, &Environment::default()).unwrap_err();
    assert!(
        found[0]
            .to_string()
            .contains("none.yaml cannot be read: No such file"),
        "{}",
        found[0]
    );
    std::fs::write(&path, b"port: \xff\n").unwrap();
    let found = Config::load(&path, &Environment::default()).unwrap_err();
    assert!(found[0].to_string().contains("is not UTF-8 text"), "{}", found[0]);
}

#[test]
fn the_json_schema_names_every_key_and_refuses_others() {
    let schema = crate::json_schema();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["port"]["default"], 9090);
    assert_eq!(
        schema["properties"]["loop"]["properties"]["max"]["type"],
        "integer"
    );
    let server = &schema["properties"]["mcp_servers"]["items"];
    assert_eq!(server["required"], serde_json::json!(["name", "transport"]));
    assert_eq!(server["properties"]["transport"]["oneOf"][1]["const"], "sse");
    assert!(schema["properties"].get("supervisor").is_none());
}

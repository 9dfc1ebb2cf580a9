//! What people get wrong gets one clear answer, and nothing is started or changed.

use std::process::Command;

use reqwest::Method;
use tests::fleet::{Fleet, free_port};
use tests::process::Process;
use tests::programs::built;
use tests::up::{Ran, Up, folder, output, toolgate};
use tests::wait;

const WRONG: &str = r#"prot: 1
mcp_servers:
  - name: a
    transport: carrier-pigeon
    comand: x
staleness:
  write: soon
policies:
  - name: p
    agent: "*"
    rules:
      - tools: ["*"]
        action: alow
"#;

/// Where each mistake of [`WRONG`] is, what is wrong, and what was meant.
const MISTAKES: [(&str, &str, &str); 5] = [
    (":1:1 ", "prot", "port"),
    (":4:16 ", "carrier-pigeon", "streamable-http"),
    (":5:5 ", "comand", "command"),
    (":7:10 ", "soon", "4m30s"),
    (":13:17 ", "alow", "allow"),
];

const OPEN: &str = r#"
policies:
  - name: open
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
"#;

/// The lines of standard error that are not the log's.
fn complaints(ran: &Ran) -> Vec<&str> {
    ran.stderr
        .lines()
        .filter(|line| !line.contains(" WARN ") && !line.contains(" INFO ") && !line.contains("WARN\u{1b}"))
        .collect()
}

fn says_every_mistake(ran: &Ran, file: &str) {
    assert_eq!(ran.code, 2, "{ran:?}");
    for (place, what, meant) in MISTAKES {
        let line = ran.stderr.lines().find(|line| line.contains(place));
        let line = line.unwrap_or_else(|| panic!("nothing at {place}: {}", ran.stderr));
        assert!(
            line.contains(file) && line.contains(what) && line.contains(meant),
            "{line}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_configuration_names_every_mistake_at_once_and_starts_nothing() {
    let folder = folder();
    let file = folder.path().join("wrong.yaml");
    std::fs::write(&file, WRONG).unwrap();
    let state = folder.path().join("state");

    let mut checked = toolgate(&["config", "check"]);
    checked.arg(&file);
    says_every_mistake(&output(checked, "").await, "wrong.yaml");
    let mut up = toolgate(&["up", "--config"]);
    up.arg(&file).arg("--data-dir").arg(&state);
    says_every_mistake(&output(up, "").await, "wrong.yaml");
    for program in ["toolgate-control-plane", "toolgate-sidecar"] {
        let mut command = Command::new(built(program));
        command
            .args(["run", "--config"])
            .arg(&file)
            .env("TOOLGATE_DATA_DIR", &state);
        says_every_mistake(&output(command, "").await, "wrong.yaml");
    }
    assert!(!state.exists(), "something was started");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_policy_names_every_mistake_at_once_and_changes_nothing() {
    let up = Up::start(OPEN).await;
    let good = up.folder.path().join("good.yaml");
    std::fs::write(
        &good,
        "name: good\nagent: x\nrules:\n  - tools: [\"*\"]\n    action: allow\n",
    )
    .unwrap();
    let wrong = up.folder.path().join("policy.yaml");
    std::fs::write(
        &wrong,
        "name: p\nagent: \"*\"\nrules:\n  - tools: [\"*\"]\n    action: deny\n    mesage: no\n  - tools: [\"x.*\"]\n    action: alow\n",
    )
    .unwrap();
    let before = up.operator().get("/policies").await;
    let pushed = up
        .toolgate(&["policy", "push", good.to_str().unwrap(), wrong.to_str().unwrap()])
        .await;
    assert_eq!(pushed.code, 2, "{pushed:?}");
    for expected in [
        ("policy.yaml:6:5 ", "mesage", "message"),
        ("policy.yaml:8:13 ", "alow", "allow"),
    ] {
        let (place, what, meant) = expected;
        let line = pushed.stderr.lines().find(|line| line.contains(place));
        assert!(
            line.is_some_and(|line| line.contains(what) && line.contains(meant)),
            "{expected:?}: {}",
            pushed.stderr
        );
    }
    let text = std::fs::read_to_string(&wrong).unwrap();
    let operator = up.operator();
    let request = operator
        .request(Method::PUT, "/policies/p")
        .header("Content-Type", "application/yaml")
        .body(text);
    let (status, answer) = operator.try_send(request).await;
    assert_eq!(status, 422, "{answer}");
    assert_eq!(answer["problems"].as_array().unwrap().len(), 2, "{answer}");
    assert_eq!(up.operator().get("/policies").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reached_bound_or_used_is_one_clear_line() {
    let folder = folder();
    let file = folder.path().join("toolgate.yaml");
    let write = |yaml: &str| std::fs::write(&file, yaml).unwrap();
    let run = async |program: &str, variables: &[(&str, &str)]| {
        let mut command = Command::new(built(program));
        if program == "toolgate" {
            command.arg("up");
        } else {
            command.arg("run");
        }
        command.arg("--config").arg(&file);
        command.env("TOOLGATE_DATA_DIR", folder.path().join("state"));
        command.envs(variables.iter().copied());
        output(command, "").await
    };
    let said = |ran: &Ran, words: &[&str]| {
        assert!(ran.code > 0, "{ran:?}");
        let lines = complaints(ran);
        assert_eq!(lines.len(), 1, "{ran:?}");
        for word in words {
            assert!(lines[0].contains(word), "{word:?} is not in {lines:?}");
        }
    };

    let (operator, grpc) = (free_port(), free_port());
    write(&format!(
        "listen:\n  operator: 127.0.0.1:{operator}\n  grpc: 127.0.0.1:{grpc}\n"
    ));
    let nowhere = format!("postgres://someone:s3cret@127.0.0.1:{}/none", free_port());
    let ran = run(
        "toolgate-control-plane",
        &[
            ("TOOLGATE_DATABASE_URL", &nowhere),
            ("TOOLGATE_MASTER_KEY", &"00".repeat(32)),
        ],
    )
    .await;
    said(&ran, &["cannot open the database", "database_url"]);
    assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    write(&format!("port: {port}\n"));
    said(&run("toolgate", &[]).await, &["in use", &port.to_string()]);
    said(
        &run("toolgate-sidecar", &[]).await,
        &["in use", &port.to_string()],
    );
    write(&format!(
        "listen:\n  operator: 127.0.0.1:{port}\n  grpc: 127.0.0.1:{grpc}\n"
    ));
    let ran = run(
        "toolgate-control-plane",
        &[("TOOLGATE_MASTER_KEY", &"00".repeat(32))],
    )
    .await;
    said(&ran, &["in use", &port.to_string()]);

    let long_ago = 1_000_000_000_000_000;
    let expired = net::tls::self_signed_between(&["localhost"], long_ago, long_ago + 1_000_000).unwrap();
    let (_, files) = expired.write(folder.path()).unwrap();
    write(&format!(
        "port: {}\ntls:\n  cert_file: {}\n  key_file: {}\n",
        free_port(),
        files.cert_file.display(),
        files.key_file.display()
    ));
    said(&run("toolgate", &[]).await, &["expired"]);
    said(&run("toolgate-sidecar", &[]).await, &["expired"]);
}

/// A sidecar process of the fleet that joins with whatever its token file holds.
struct Joining {
    process: Process,
    token: std::path::PathBuf,
    url: String,
}

impl Joining {
    fn with(fleet: &Fleet, name: &str, token: &str) -> Self {
        let folder = fleet.folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let (file, port) = (folder.join("token"), free_port());
        let yaml = format!(
            "listen:\n  agent: 127.0.0.1:{port}\ncontrol_plane:\n  url: {}\n  ca_cert: {}\n  token_file: {}\ndata_dir: {}\n",
            fleet.grpc_url(0),
            fleet.ca_file().display(),
            file.display(),
            folder.display(),
        );
        std::fs::write(folder.join("sidecar.yaml"), yaml).unwrap();
        std::fs::write(&file, token).unwrap();
        let mut command = Command::new(built("toolgate-sidecar"));
        command.args(["run", "--config"]).arg(folder.join("sidecar.yaml"));
        Self {
            process: Process::spawn(command, &folder.join("log")),
            token: file,
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    async fn is_ready(&self) -> bool {
        let http = tests::operator::client(None);
        let answer = http.get(format!("{}/readyz", self.url)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    async fn ready(&self) {
        wait::until("a valid token is enough", || async {
            self.is_ready().await.then_some(())
        })
        .await;
    }

    /// Waits for one line about the token, which says what to do.
    async fn says(&self, words: &str) {
        wait::until(words, || async {
            let log = self.process.log();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains(words)).collect();
            assert!(lines.len() <= 1, "{lines:?}");
            let line = lines.first()?;
            assert!(line.contains("toolgate sidecars tokens create"), "{line}");
            Some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_or_used_up_join_token_is_said_once_and_a_valid_one_mends_it() {
    let fleet = Fleet::on_sqlite("").await;
    let for_one = fleet
        .operator()
        .post("/sidecars/tokens", serde_json::json!({"uses": 1}))
        .await;
    let for_one = for_one["token"].as_str().unwrap();
    Joining::with(&fleet, "first", for_one).ready().await;
    let second = Joining::with(&fleet, "second", "0123456789abcdef");
    second.says("the join token is not known").await;
    std::fs::write(&second.token, for_one).unwrap();
    second.says("the join token is used up").await;
    assert!(!second.is_ready().await);
    let valid = fleet.join_token("default", &["*".to_owned()]).await;
    std::fs::write(&second.token, valid).unwrap();
    second.ready().await;
}

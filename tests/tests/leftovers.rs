//! Nothing of a program outlives its call or the sidecar, whatever it does: processes that left their group, their session and their
//! parent are ended and reaped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is a failed test"
)]

use std::fmt::Write as _;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::agent::Agent;
use tests::mischief::{self, id_in, running_in};
use tests::programs::built;
use tests::up::{Up, children, folder, is_alive, keeper};
use tests::wait;

const POLICY: &str = "policies: [{name: all, agent: '*', rules: [{tools: ['*'], action: allow}]}]\n";

fn configured(folder: &Path) -> String {
    format!(
        "drain: {{seconds: 1}}\nloop: {{max: 1000}}\ncli_tools:\n{}{POLICY}",
        mischief::tool(folder)
    )
}

async fn up() -> (Up, tempfile::TempDir) {
    let folder = folder();
    let yaml = format!("mcp_servers: []\n{}", configured(folder.path()));
    (Up::start(&yaml).await, folder)
}

/// Has an agent of this name call the script's command.
async fn called(up: &Up, doing: &str) -> (u16, Value) {
    Agent::new(&up.url, doing, None)
        .rest(&format!("mischief.{doing}"), json!({}))
        .await
}

/// What a program answered.
async fn ran(up: &Up, doing: &str) -> Value {
    let (status, body) = called(up, doing).await;
    assert_eq!(status, 200, "{doing}: {body}");
    body["result"]["structuredContent"].clone()
}

/// The children of a process that have ended and were not reaped, by name.
fn zombies(parent: u32) -> Vec<String> {
    children(parent)
        .into_iter()
        .filter(|id| !is_alive(*id))
        .map(|id| std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default())
        .collect()
}

/// The process of which the script wrote the id ends.
async fn gone(folder: &Path, file: &str) {
    let id = id_in(&folder.join(file)).await;
    wait::until(&format!("the process of {file} ends"), || async {
        (!is_alive(id)).then_some(())
    })
    .await;
}

async fn nothing_is_left(up: &Up, folder: &Path, after: &str) {
    wait::until_equal(&format!("nothing runs after {after}"), Vec::new(), || async {
        running_in(folder)
    })
    .await;
    wait::until_equal(&format!("no zombie after {after}"), Vec::new(), || async {
        zombies(up.process.id())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_what_left_its_group_and_session() {
    let (up, folder) = up().await;
    let folder = folder.path();
    for doing in ["daemon", "nameless", "swarm"] {
        let (status, body) = called(&up, doing).await;
        assert_eq!(status, 200, "{doing}: {body}");
        assert_eq!(
            running_in(folder),
            Vec::<u32>::new(),
            "the call of {doing} has ended"
        );
        nothing_is_left(&up, folder, doing).await;
    }
    let (status, body) = called(&up, "run-away").await;
    assert_eq!(status, 200, "{body}");
    nothing_is_left(&up, folder, "run-away").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_reaped_while_their_call_runs_and_go_on_until_it_ends() {
    let folder = folder();
    let folder = folder.path();
    let yaml = configured(folder).replace("max_calls: 2", "max_calls: 3");
    let up = Up::start(&format!("mcp_servers: []\n{yaml}")).await;
    let looking = async {
        id_in(&folder.join("short-lived.pid")).await;
        wait::until_equal("no zombie while the call runs", Vec::new(), || async {
            zombies(up.process.id())
        })
        .await;
        // Another call's end concerns what it started, and nothing else.
        let family = async {
            let id = id_in(&folder.join("family.pid")).await;
            assert_eq!(called(&up, "echo").await.0, 200);
            assert!(is_alive(id), "its call runs");
            stop(&up, "family").await;
            id
        };
        let (answer, id) = tokio::join!(called(&up, "family"), family);
        assert_eq!(answer.0, 403, "{answer:?}");
        assert!(!is_alive(id), "its call has ended");
        stop(&up, "short-lived").await;
    };
    let (answer, ()) = tokio::join!(called(&up, "short-lived"), looking);
    assert_eq!(answer.0, 403, "{answer:?}");
    nothing_is_left(&up, folder, "a stop").await;
}

/// Ends what this agent does.
async fn stop(up: &Up, agent: &str) {
    let stop = json!({"scope": format!("agent:{agent}"), "reason": "enough", "by": "alice"});
    up.operator().post("/stops?wait=applied", stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_is_killed_leaves_nothing_running() {
    let (mut up, folder) = up().await;
    let folder = folder.path();
    let caller = Agent::new(&up.url, "a", None);
    let calling = async move { caller.rest("mischief.family", json!({})).await };
    let killing = async {
        let id = id_in(&folder.join("family.pid")).await;
        up.process.kill();
        id
    };
    let (_, id) = tokio::join!(tokio::time::timeout(wait::PATIENCE, calling), killing);
    wait::until_equal("nothing runs after the kill", Vec::new(), || async {
        running_in(folder)
    })
    .await;
    assert!(!is_alive(id));

    // Its keeper is killed too: the next start ends what is left.
    std::fs::remove_file(folder.join("family.pid")).unwrap();
    up.restart().await;
    let caller = Agent::new(&up.url, "a", None);
    let calling = async move { caller.rest("mischief.family", json!({})).await };
    let killing = async {
        let id = id_in(&folder.join("family.pid")).await;
        let keeper = keeper(up.process.id()).expect("a keeper runs beside programs");
        kill(Pid::from_raw(i32::try_from(keeper).unwrap()), Signal::SIGKILL).unwrap();
        up.process.kill();
        id
    };
    let (_, id) = tokio::join!(tokio::time::timeout(wait::PATIENCE, calling), killing);
    assert!(is_alive(id), "nobody is there who could end it");
    up.restart().await;
    assert_eq!(running_in(folder), Vec::<u32>::new(), "the start ended it");
    assert!(up.process.log().contains("outlived an earlier sidecar"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_ends_takes_its_keeper_and_what_servers_started_along() {
    let folder = folder();
    let path = folder.path();
    let yaml = format!(
        "mcp_servers:\n  - name: fixture\n    transport: stdio\n    command: bash\n    args: [-c, \"cd {0}; (setsid sleep 300 &); setsid sleep 300 & exec {1} stdio {0}/ran\"]\n{2}",
        path.display(),
        built("fixture-mcp").display(),
        configured(path)
    );
    let mut up = Up::start(&yaml).await;
    assert_eq!(called(&up, "daemon").await.0, 200);
    // Without a mark it may come from the server as well.
    assert_eq!(called(&up, "nameless").await.0, 200);
    assert!(is_alive(id_in(&path.join("nameless.pid")).await));
    let kept = running_in(path).len();
    assert!(kept >= 4, "the server and what it started go on: {kept}");
    let keeper = keeper(up.process.id()).expect("a keeper runs beside programs");
    up.process.terminate();
    assert!(!is_alive(keeper));
    assert_eq!(running_in(path), Vec::<u32>::new());

    up.restart().await;
    up.process.kill();
    wait::until_equal("nothing runs after the kill", Vec::new(), || async {
        running_in(path)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_program_does_its_call_is_bounded_and_leaves_nothing_behind() {
    let (up, folder) = up().await;
    let folder = folder.path();
    let agent = Agent::new(&up.url, "a", None);
    let flood = ran(&up, "flood").await;
    let stdout = flood["stdout"].as_str().unwrap();
    assert!(stdout.len() < 1_100_000 && stdout.ends_with("[stdout was cut after 1048576 bytes]"));
    assert_eq!(
        (&flood["truncated"], &flood["stderr"]),
        (&json!(true), &json!("end\n"))
    );
    let bytes = ran(&up, "bytes").await;
    assert_eq!(
        (&bytes["stdout"], &bytes["invalid_utf8"]),
        (&json!("a\u{fffd}b"), &json!(true))
    );
    let (status, failed) = agent.rest("mischief.fail", json!({})).await;
    assert_eq!(
        (status, &failed["result"]["isError"]),
        (200, &json!(true)),
        "{failed}"
    );
    assert_eq!(
        (
            &failed["result"]["structuredContent"]["exit_code"],
            &failed["result"]["structuredContent"]["stderr"]
        ),
        (&json!(3), &json!("no\n"))
    );
    assert_eq!(ran(&up, "signal").await["exit_code"], 139);
    let records = up.operator().records("tool=mischief.fail", 1).await;
    assert_eq!(
        (&records[0]["exit_code"], &records[0]["outcome"]),
        (&json!(3), &json!("error"))
    );

    for (tool, file) in [("mischief.deaf", "deaf.pid"), ("mischief.closes", "closes.pid")] {
        let (status, body) = agent.rest(tool, json!({})).await;
        assert_eq!(status, 504, "{body}");
        gone(folder, file).await;
        let records = up.operator().records(&format!("tool={tool}"), 1).await;
        assert_eq!(records[0]["outcome"], "timeout");
    }
    let forked = ran(&up, "forks").await;
    assert_eq!(forked["stdout"], "parent\n");
    gone(folder, "forks.pid").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_a_full_house_and_the_end_of_the_sidecar_end_programs() {
    let (mut up, folder) = up().await;
    let folder = folder.path();
    let call = |url: String| async move {
        Agent::new(&url, "slow", None)
            .rest("mischief.slow", json!({}))
            .await
    };
    let stopped = tokio::join!(call(up.url.clone()), async {
        wait::until("it runs", || async {
            folder.join("slow.pid").exists().then_some(())
        })
        .await;
        let body = json!({"scope": "agent:slow", "reason": "enough", "by": "alice"});
        up.operator().post("/stops?wait=applied", body).await
    });
    assert_eq!(stopped.0.0, 403, "{:?}", stopped.0);
    gone(folder, "slow.pid").await;
    let id = stopped.1["id"].as_str().unwrap().to_owned();
    up.operator().delete(&format!("/stops/{id}")).await;
    std::fs::remove_file(folder.join("slow.pid")).unwrap();

    let agents: Vec<_> = (0..3)
        .map(|number| {
            let agent = Agent::new(&up.url, &format!("a{number}"), None);
            async move {
                agent
                    .rest("mischief.slow", json!({"args": [number.to_string()]}))
                    .await
            }
        })
        .collect();
    let everybody = futures_util::future::join_all(agents);
    let ending = async {
        wait::until("two run", || async {
            folder.join("slow.pid").exists().then_some(())
        })
        .await;
        let records = up.operator().records("tool=mischief.slow&outcome=error", 1).await;
        assert_eq!(
            records[0]["reason"], "upstream_unavailable",
            "one more than max_calls: {records:?}"
        );
    };
    let mut text = String::new();
    tokio::select! {
        done = everybody => write!(text, "{done:?}").unwrap(),
        () = ending => {}
    }
    assert_eq!(text, "", "two of three go on");
    up.process.terminate();
    gone(folder, "slow.pid").await;
}

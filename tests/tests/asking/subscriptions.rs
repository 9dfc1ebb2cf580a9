//! What a session wants to hear of is heard of again when its upstream was restarted.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tests::agent::{Agent, LEGACY, messages};
use tests::process::Process;
use tests::programs::npm;
use tests::up::{Up, children, folder};
use tests::wait;

use super::{connected, http, over_http, stdio};

const URI: &str = "all.demo://resource/dynamic/text/1";

async fn subscribe(agent: &Agent) {
    let message = json!({"jsonrpc": "2.0", "id": 5, "method": "resources/subscribe", "params": {"uri": URI}});
    let answer = tests::agent::answer(agent.legacy(&message)).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
}

/// Has the server tell of changes, and waits until the session hears of one.
async fn hears_of_changes(agent: &Agent) {
    let stream = agent
        .request(reqwest::Method::GET, "/mcp")
        .header("MCP-Protocol-Version", LEGACY)
        .header("Mcp-Session-Id", agent.session().unwrap());
    let mut heard = stream.send().await.unwrap();
    let toggled = agent.call("all.toggle-subscriber-updates", json!({})).await;
    assert!(toggled.text().starts_with("Started"), "{}", toggled.answer);
    let mut text = String::new();
    let hearing = async {
        loop {
            let chunk = heard.chunk().await.unwrap().expect("the stream ended");
            text.push_str(&String::from_utf8_lossy(&chunk));
            let found = messages(&text);
            let is_update =
                |message: &&serde_json::Value| message["method"] == "notifications/resources/updated";
            if let Some(update) = found.iter().find(is_update) {
                return update["params"]["uri"].clone();
            }
        }
    };
    let uri = tokio::time::timeout(wait::PATIENCE, hearing)
        .await
        .expect("an update comes");
    assert_eq!(uri, URI);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_outlives_a_restart_of_a_server_over_http() {
    let place = folder();
    let (server, port) = over_http(place.path()).await;
    let up = Up::start(&http(port, "")).await;
    let anna = connected(&up, "anna", json!({})).await;
    subscribe(&anna).await;
    drop(server);
    let mut command = Command::new(npm("mcp-server-everything"));
    command.arg("streamableHttp").env("PORT", port.to_string());
    let again = Process::spawn(command, &place.path().join("again.log"));
    // The shared connection, and the session's own: nobody asked for anything.
    wait::until("both connections are there again", || async {
        let sessions = again.log().matches("Session initialized").count();
        (sessions >= 2).then_some(())
    })
    .await;
    hears_of_changes(&anna).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_outlives_the_process_of_a_session() {
    let up = Up::start(&stdio(", share: false")).await;
    let anna = connected(&up, "anna", json!({})).await;
    let shared = children(up.process.id());
    subscribe(&anna).await;
    let own: Vec<u32> = children(up.process.id())
        .into_iter()
        .filter(|process| !shared.contains(process))
        .collect();
    assert!(!own.is_empty());
    for process in &own {
        kill(Pid::from_raw(i32::try_from(*process).unwrap()), Signal::SIGKILL).ok();
    }
    wait::until("another process of the session", || async {
        let now = children(up.process.id());
        let another = now
            .iter()
            .any(|process| !shared.contains(process) && !own.contains(process));
        another.then_some(())
    })
    .await;
    hears_of_changes(&anna).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_asks_for_so_many_resources_and_no_more_are_decided() {
    let place = folder();
    let (_server, port) = over_http(place.path()).await;
    let up = Up::start(&http(port, "")).await;
    let anna = connected(&up, "anna", json!({})).await;
    for (unknown, is_heard) in [(999, true), (1000, false)] {
        let mut uris: Vec<_> = (0..unknown).map(|number| format!("none://{number}")).collect();
        uris.push(URI.to_owned());
        let filter = json!({"resourceSubscriptions": uris});
        let honoured = anna.honoured(json!({}), filter).await;
        let heard = honoured["resourceSubscriptions"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        assert_eq!(heard.contains(&json!(URI)), is_heard, "{unknown}");
        assert!(heard.len() <= 1000, "{}", heard.len());
    }
}

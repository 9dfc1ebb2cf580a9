//! Sessions leave nothing behind: files, memory, connections, processes.

use serde_json::json;
use tests::process::Process;
use tests::up::{Up, folder};
use tests::wait;

use super::{ALLOW, before, connected, everything, fixture, stdio};

/// Open files, threads, and memory in KiB.
fn usage(process: &Process) -> (usize, usize, usize) {
    let place = format!("/proc/{}", process.id());
    let files = std::fs::read_dir(format!("{place}/fd")).unwrap().count();
    let status = std::fs::read_to_string(format!("{place}/status")).unwrap();
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    (files, number("Threads:"), number("VmRSS:"))
}

/// The processes that a process has started and not reaped.
fn children(of: u32) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{of}/task")).unwrap();
    let started = threads.map(|thread| {
        let listed = std::fs::read_to_string(thread.unwrap().path().join("children"));
        listed.unwrap_or_default().split_whitespace().count()
    });
    started.sum()
}

/// Opens sessions that call once, and ends them: some by DELETE, some by nothing at all.
async fn come_and_go(up: &Up, name: &str, count: usize) {
    for chunk in 0..count / 20 {
        let visits = (0..20).map(|number| async move {
            let agent = connected(up, name, everything()).await;
            let called = agent
                .call(
                    "f.test_simple_text",
                    json!({"visit": format!("{chunk}.{number}")}),
                )
                .await;
            assert!(called.is_ok(), "{}", called.answer);
            let ending = agent
                .request(reqwest::Method::DELETE, "/mcp")
                .header("Mcp-Session-Id", agent.session().unwrap());
            let ended = ending.send().await.unwrap();
            assert!(ended.status().is_success(), "{chunk} {number}");
        });
        futures_util::future::join_all(visits).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_sessions_leave_nothing_behind() {
    let place = folder();
    let (server, url) = fixture(place.path(), "legacy").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    come_and_go(&up, "anna", 200).await;
    let settled = || async {
        let (files, threads, memory) = usage(&up.process);
        let (of_server, _, _) = usage(&server);
        (files, threads, memory, of_server)
    };
    wait::until("the first sessions' connections are gone", || async {
        (usage(&server).0 < 100).then_some(())
    })
    .await;
    let before = settled().await;
    come_and_go(&up, "anna", 2_000).await;
    wait::until("everything is as it was", || async {
        let (files, threads, _, of_server) = settled().await;
        (files <= before.0 + 8 && threads <= before.1 + 4 && of_server <= before.3 + 8).then_some(())
    })
    .await;
    let after = settled().await;
    // Records of the calls are kept in memory up to a bound; sessions and connections must not be.
    assert!(after.2 < before.2 + 24 * 1024, "{before:?} KiB became {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_of_a_session_ends_with_it() {
    let up = Up::start(&stdio(", share: false")).await;
    let alone = children(up.process.id());
    let anna = connected(&up, "anna", everything()).await;
    assert!(anna.call("all.echo", json!({"message": "x"})).await.is_ok());
    assert!(children(up.process.id()) > alone);
    let ending = anna
        .request(reqwest::Method::DELETE, "/mcp")
        .header("Mcp-Session-Id", anna.session().unwrap());
    ending.send().await.unwrap();
    wait::until("its process is gone", || async {
        (children(up.process.id()) == alone).then_some(())
    })
    .await;
}

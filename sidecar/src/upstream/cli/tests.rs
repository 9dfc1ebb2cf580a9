//! Programs as upstreams, without a gate before them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use policy::document::Action;
use tokio_util::sync::CancellationToken;
use tools::json::{Document, Limits};
use tools::program::{Command, Program, ProgramCall, RUN, Shape};

use super::CliSpec;
use crate::upstream::{Connection, SourceSpec, UpstreamAnswer, UpstreamError, UpstreamRequest, Upstreams};

fn shell() -> CliSpec {
    CliSpec {
        name: "sh".into(),
        bin: PathBuf::from("/bin/sh"),
        program: Program {
            shape: Shape::Bare(Command::default()),
            rejects_metacharacters: false,
        },
        default_action: Action::Allow,
        working_dir: None,
        env: Vec::new(),
        max_output_bytes: 1024,
        answer_bytes: 1 << 20,
        max_calls: 1,
    }
}

fn upstreams(spec: CliSpec) -> Upstreams {
    Upstreams::start([SourceSpec::Cli(spec)])
}

fn script(text: &str) -> Arc<ProgramCall> {
    let arguments = serde_json::json!({"args": ["-c", text]}).to_string();
    let document = Document::parse(arguments.as_bytes(), Limits::ARGUMENTS).unwrap();
    Arc::new(shell().program.call(RUN, Some(document.root())).unwrap())
}

async fn run(
    upstreams: &Upstreams,
    text: &str,
    cancel: &CancellationToken,
) -> Result<UpstreamAnswer, UpstreamError> {
    let request = UpstreamRequest {
        program: Some(script(text)),
        cancel: cancel.clone(),
        ..UpstreamRequest::default()
    };
    upstreams.get("sh").unwrap().call(request).await
}

/// The id that a script wrote to a file.
async fn id_in(file: &std::path::Path) -> i32 {
    for _ in 0..1000 {
        if let Some(id) = std::fs::read_to_string(file)
            .ok()
            .and_then(|text| text.trim().parse().ok())
        {
            return id;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} was not written", file.display());
}

fn is_alive(id: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/status"))
        .is_ok_and(|status| !status.lines().any(|line| line.starts_with("State:\tZ")))
}

#[tokio::test]
async fn an_answer_stays_within_its_bound_whatever_a_program_writes() {
    let spec = CliSpec {
        max_output_bytes: usize::MAX,
        answer_bytes: 100_000,
        ..shell()
    };
    let upstreams = upstreams(spec);
    for source in ["/dev/zero", "/dev/urandom"] {
        let text = format!("head -c 300000 {source}; head -c 300000 {source} >&2");
        let answer = run(&upstreams, &text, &CancellationToken::new()).await.unwrap();
        assert!(
            (90_000..=100_000).contains(&answer.raw.len()),
            "{source}: {}",
            answer.raw.len()
        );
        let result: serde_json::Value = serde_json::from_slice(&answer.raw).unwrap();
        let content = &result["structuredContent"];
        assert_eq!(content["truncated"], true);
        for output in ["stdout", "stderr"] {
            assert!(
                content[output].as_str().unwrap().ends_with(" bytes]"),
                "{output} of {source}"
            );
        }
    }
    upstreams.shutdown().await;
}

#[tokio::test]
async fn what_the_sidecar_has_open_is_closed_for_a_program() {
    // A descriptor that the sidecar was itself started with.
    let inherited = nix::unistd::dup(std::io::stderr()).unwrap();
    let upstreams = upstreams(shell());
    let answer = run(&upstreams, "ls /proc/self/fd | wc -l", &CancellationToken::new())
        .await
        .unwrap();
    let result: serde_json::Value = serde_json::from_slice(&answer.raw).unwrap();
    // Its own three, and the folder that `ls` reads.
    assert_eq!(
        result["structuredContent"]["stdout"].as_str().unwrap().trim(),
        "4"
    );
    assert_eq!(answer.exit_code, Some(0));
    drop(inherited);
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_a_dropped_and_a_late_call_leave_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let upstreams = upstreams(shell());
    let waits = |file: &std::path::Path| format!("echo $$ > {}; sleep 300 & wait", file.display());

    let (file, cancel) = (folder.path().join("cancelled"), CancellationToken::new());
    let text = waits(&file);
    let (outcome, id) = tokio::join!(run(&upstreams, &text, &cancel), async {
        let id = id_in(&file).await;
        cancel.cancel();
        id
    });
    assert!(
        matches!(outcome, Err(UpstreamError::Cancelled { .. })),
        "{outcome:?}"
    );
    assert!(!is_alive(id), "the call ended when its program had");

    let file = folder.path().join("dropped");
    let (text, never) = (waits(&file), CancellationToken::new());
    let id = tokio::select! {
        outcome = run(&upstreams, &text, &never) => panic!("{outcome:?}"),
        id = id_in(&file) => id,
    };
    // Its place is taken until it has ended.
    while matches!(
        run(&upstreams, "exit 0", &never).await,
        Err(UpstreamError::Busy { limit: 1, .. })
    ) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!is_alive(id));

    let file = folder.path().join("late");
    let text = waits(&file);
    let (outcome, id) = tokio::join!(run(&upstreams, &text, &never), async {
        let id = id_in(&file).await;
        upstreams.shutdown().await;
        id
    });
    assert!(matches!(outcome, Err(UpstreamError::Lost { .. })), "{outcome:?}");
    assert!(!is_alive(id));
}

#[tokio::test]
async fn a_program_that_is_removed_is_ended_and_answers_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let upstreams = upstreams(shell());
    let upstream = upstreams.get("sh").unwrap();
    let (file, never) = (folder.path().join("removed"), CancellationToken::new());
    let text = format!("echo $$ > {}; sleep 300", file.display());
    let (outcome, id) = tokio::join!(run(&upstreams, &text, &never), async {
        let id = id_in(&file).await;
        upstreams.apply(Vec::<SourceSpec>::new());
        id
    });
    assert!(matches!(outcome, Err(UpstreamError::Lost { .. })), "{outcome:?}");
    assert!(!is_alive(id));
    let late = upstream.call(UpstreamRequest {
        program: Some(script("exit 0")),
        ..UpstreamRequest::default()
    });
    let outcome = late.await;
    assert!(
        matches!(outcome, Err(UpstreamError::Unavailable { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_has_no_tools_and_answers_nothing() {
    for spec in [
        CliSpec {
            bin: "no-such-program".into(),
            ..shell()
        },
        CliSpec {
            bin: "/etc/passwd".into(),
            ..shell()
        },
        CliSpec {
            bin: "/etc".into(),
            ..shell()
        },
        CliSpec {
            working_dir: Some("/no/such/folder".into()),
            ..shell()
        },
    ] {
        let upstreams = upstreams(spec);
        let upstream = upstreams.get("sh").unwrap();
        assert_eq!(upstream.state().connection, Connection::Failed);
        assert!(upstream.state().last_error.is_some());
        assert!(upstream.catalogue().borrow().tools.is_empty());
        let outcome = run(&upstreams, "exit 0", &CancellationToken::new()).await;
        assert!(
            matches!(outcome, Err(UpstreamError::Unavailable { .. })),
            "{outcome:?}"
        );
    }
}

//! The tasks that a sidecar runs, without the calls that they are.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use net::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::mailbox::Mailbox;
use super::own::{Beginnings, MAX_OF_AGENT, Outcome, OwnTask, OwnTasks, Owner, Phase};
use super::words;
use crate::upstream::AnswerKind;

fn owner(agent: &str, session: Option<&str>) -> Owner {
    Owner::new(agent.parse().unwrap(), None, session.map(str::to_owned))
}

fn begin(tasks: &OwnTasks, owner: &Owner, cancel: &CancellationToken) -> Option<Arc<OwnTask>> {
    tasks.begin(Beginnings {
        owner,
        ended: None,
        ttl: None,
        patience: Duration::from_secs(300),
        cancel,
        questions: None,
        phase: Phase::Working,
        message: None,
    })
}

fn result(raw: &'static str) -> Outcome {
    Outcome {
        kind: AnswerKind::Result,
        raw: Bytes::from_static(raw.as_bytes()),
    }
}

fn error(raw: &'static str) -> Outcome {
    Outcome {
        kind: AnswerKind::Error,
        ..result(raw)
    }
}

fn read(raw: Vec<u8>) -> Value {
    serde_json::from_slice(&raw).unwrap()
}

#[test]
fn a_task_belongs_to_the_identity_and_session_that_began_it() {
    let tasks = OwnTasks::new(Clock::manual());
    let of_one = owner("a", Some("one"));
    let task = begin(&tasks, &of_one, &CancellationToken::new()).unwrap();
    assert!(tasks.find(&task.id, &of_one).is_some());
    for other in [owner("a", Some("two")), owner("a", None), owner("b", Some("one"))] {
        assert!(tasks.find(&task.id, &other).is_none());
    }
}

#[test]
fn a_task_whose_time_is_over_is_forgotten_and_its_call_ended() {
    let clock = Clock::manual();
    let tasks = OwnTasks::new(clock.clone());
    let (me, cancel) = (owner("a", None), CancellationToken::new());
    let task = begin(&tasks, &me, &cancel).unwrap();
    clock.advance(Duration::from_secs(3599));
    tasks.sweep();
    assert!(tasks.find(&task.id, &me).is_some() && !cancel.is_cancelled());
    clock.advance(Duration::from_secs(1));
    tasks.sweep();
    assert!(tasks.is_empty() && cancel.is_cancelled());
}

#[test]
fn the_time_that_a_client_asks_for_is_kept_within_bounds() {
    let tasks = OwnTasks::new(Clock::manual());
    let ttl = |asked: u64| {
        let begun = tasks.begin(Beginnings {
            owner: &owner("a", None),
            ended: None,
            ttl: Some(Duration::from_secs(asked)),
            patience: Duration::from_secs(300),
            cancel: &CancellationToken::new(),
            questions: None,
            phase: Phase::Working,
            message: None,
        });
        begun.unwrap().ttl.as_secs()
    };
    assert_eq!([ttl(1), ttl(1800), ttl(u64::MAX)], [900, 1800, 86_400]);
}

#[test]
fn a_session_that_ends_takes_its_tasks_with_it() {
    let tasks = OwnTasks::new(Clock::manual());
    let (session, cancel) = (CancellationToken::new(), CancellationToken::new());
    tasks.begin(Beginnings {
        owner: &owner("a", Some("one")),
        ended: Some(session.clone()),
        ttl: None,
        patience: Duration::ZERO,
        cancel: &cancel,
        questions: None,
        phase: Phase::Working,
        message: None,
    });
    session.cancel();
    tasks.sweep();
    assert!(tasks.is_empty() && cancel.is_cancelled());
}

#[test]
fn an_agent_has_a_bounded_number_of_tasks_and_those_that_ended_give_way() {
    let tasks = OwnTasks::new(Clock::manual());
    let (me, cancel) = (owner("a", None), CancellationToken::new());
    let begun: Vec<_> = (0..MAX_OF_AGENT)
        .map(|_| begin(&tasks, &me, &cancel).unwrap())
        .collect();
    assert!(!tasks.has_room(&me) && begin(&tasks, &me, &cancel).is_none());
    assert!(begin(&tasks, &owner("b", None), &cancel).is_some());
    tasks.end(&begun[7], result("{}"), None);
    assert!(begin(&tasks, &me, &cancel).is_some());
    assert!(tasks.find(&begun[7].id, &me).is_none());
    assert_eq!(tasks.len(), MAX_OF_AGENT + 1);
}

#[test]
fn a_question_is_new_once_and_one_with_a_huge_key_is_not_remembered() {
    let tasks = OwnTasks::new(Clock::manual());
    assert!(tasks.is_new("one", b"name") && !tasks.is_new("one", b"name"));
    let huge = vec![b'x'; 1 << 20];
    assert!(tasks.is_new("one", &huge) && tasks.is_new("one", &huge));
}

#[test]
fn the_bytes_of_outcomes_are_bounded() {
    let tasks = OwnTasks::new(Clock::manual());
    let me = owner("a", None);
    let large = Bytes::from(vec![b' '; 15 << 20]);
    let begun: Vec<_> = (0..4)
        .map(|_| {
            let task = begin(&tasks, &me, &CancellationToken::new()).unwrap();
            let outcome = Outcome {
                kind: AnswerKind::Result,
                raw: large.clone(),
            };
            tasks.end(&task, outcome, None);
            task
        })
        .collect();
    assert_eq!(tasks.len(), 2);
    assert!(tasks.find(&begun[3].id, &me).is_some());
}

#[test]
fn a_task_that_was_cancelled_stays_that() {
    let tasks = OwnTasks::new(Clock::manual());
    let cancel = CancellationToken::new();
    let task = begin(&tasks, &owner("a", None), &cancel).unwrap();
    assert!(tasks.cancel(&task) && cancel.is_cancelled());
    assert!(!tasks.cancel(&task));
    assert_eq!(read(words::legacy(&task))["status"], "cancelled");
    tasks.end(&task, result(r#"{"content":[]}"#), None);
    assert_eq!(read(words::legacy(&task))["status"], "cancelled");
    assert_eq!(read(words::modern(&task))["status"], "cancelled");
    let handed = begin(&tasks, &owner("a", None), &cancel).unwrap();
    tasks.cancel(&handed);
    tasks.hand_on(&handed, "notes".parse().unwrap(), "theirs".to_owned());
    assert_eq!(read(words::legacy(&handed))["status"], "cancelled");
}

#[test]
fn each_era_has_its_own_words() {
    let tasks = OwnTasks::new(Clock::manual());
    let task = begin(&tasks, &owner("a", None), &CancellationToken::new()).unwrap();
    let legacy = read(words::created(&task, false));
    assert_eq!(legacy["task"]["status"], "working");
    assert_eq!(
        (&legacy["task"]["ttl"], &legacy["task"]["pollInterval"]),
        (&json!(3_600_000), &json!(2000))
    );
    let modern = read(words::created(&task, true));
    assert_eq!(
        (&modern["resultType"], &modern["taskId"]),
        (&json!("task"), &json!(task.id))
    );
    assert_eq!(modern["ttlMs"], 3_600_000);
    assert_eq!(read(words::modern(&task))["resultType"], "complete");

    let failed = r#"{"content":[{"type":"image"},{"type":"text","text":"no"}],"isError":true}"#;
    tasks.end(
        &task,
        result(failed),
        words::complaint(&result(failed)).map(Arc::from),
    );
    let legacy = read(words::legacy(&task));
    assert_eq!(
        (&legacy["status"], &legacy["statusMessage"]),
        (&json!("failed"), &json!("no"))
    );
    let modern = read(words::modern(&task));
    assert_eq!(
        (&modern["status"], &modern["result"]["isError"]),
        (&json!("completed"), &json!(true))
    );

    let task = begin(&tasks, &owner("a", None), &CancellationToken::new()).unwrap();
    tasks.end(&task, error(r#"{"code":-32603,"message":"m"}"#), None);
    let modern = read(words::modern(&task));
    assert_eq!(
        (&modern["status"], &modern["error"]["code"]),
        (&json!("failed"), &json!(-32603))
    );
    assert_eq!(
        words::complaint(&error(r#"{"code":1,"message":"m"}"#)).unwrap(),
        "m"
    );
}

#[test]
fn a_result_keeps_its_bytes_and_says_which_task_it_is_of() {
    let text = |raw: &[u8]| String::from_utf8(words::related(raw, "t")).unwrap();
    assert_eq!(
        text(br#"{"n":1.00,"_meta":{"x":1e2}}"#),
        r#"{"n":1.00,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"},"x":1e2}}"#
    );
    assert_eq!(
        text(br#"{"n":1.00}"#),
        r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}},"n":1.00}"#
    );
    assert_eq!(
        text(br#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"theirs"}}}"#),
        r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#
    );
}

#[tokio::test]
async fn who_listens_is_told_of_each_change() {
    let tasks = OwnTasks::new(Clock::manual());
    let task = begin(&tasks, &owner("a", None), &CancellationToken::new()).unwrap();
    let (legacy, modern): (Arc<Mailbox>, Arc<Mailbox>) = (Arc::default(), Arc::default());
    assert!(task.tell(&legacy, None) && task.tell(&modern, Some(r#"{"s":1}"#.to_owned())));
    tasks.end(&task, result("{}"), None);
    let heard = async |mailbox: &Mailbox| {
        let (_, event) = mailbox.next().await.unwrap();
        String::from_utf8(event.to_vec()).unwrap()
    };
    let told = heard(&legacy).await;
    assert!(
        told.contains("notifications/tasks/status") && told.contains("completed"),
        "{told}"
    );
    let told = heard(&modern).await;
    assert!(
        told.contains(r#""method":"notifications/tasks""#) && told.contains(r#""_meta":{"s":1}"#),
        "{told}"
    );
    assert!(task.settled().await.phase.is_over());
}

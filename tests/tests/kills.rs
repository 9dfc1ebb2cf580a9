//! Processes are killed, as a crash kills them, at the points that matter and at random ones; afterwards the chain and what upstreams
//! really ran agree.
//!
//! `TOOLGATE_SEED=7` repeats one of the random rounds.

#![allow(clippy::disallowed_methods, reason = "tests own their tasks by joining them")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tests::agent::Agent;
use tests::fleet::{Fleet, Sidecar, SidecarOptions};
use tests::ledger::{self, Record};
use tests::operator::Operator;
use tests::wait;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const POLICY: &str = "\
agent: \"*\"
rules:
  - {tools: [fixture.get_item, fixture.slow], action: allow}
  - {tools: [fixture.write_item], action: human_approval}
  - {tools: [\"*\"], action: deny}
";

async fn with_policy(fleet: &Fleet) {
    fleet
        .operator()
        .put_policy("kills", &format!("name: kills\n{POLICY}"))
        .await;
}

/// The records of calls so far, once there are `count` of them.
async fn recorded(operator: &Operator, count: usize) -> Vec<Record> {
    wait::until(&format!("{count} records"), || async {
        let records = ledger::calls_from(operator, 1).await;
        (records.len() >= count).then_some(records)
    })
    .await
}

fn of<'r>(records: &'r [Record], call: &str) -> &'r Record {
    let mut found = records.iter().filter(|record| record.call() == call);
    let first = found.next().unwrap_or_else(|| panic!("no record of {call}"));
    assert!(found.next().is_none(), "two records of {call}");
    first
}

async fn approve(operator: &Operator, tool: &str) -> Value {
    let approval = operator.pending(tool).await;
    let id = approval["id"].as_str().unwrap();
    operator
        .post(&format!("/approvals/{id}/approve"), json!({}))
        .await
}

#[tokio::test]
async fn a_sidecar_that_dies_before_it_forwards_has_run_nothing_and_says_that_the_call_was_cut_off() {
    let fleet = Fleet::on_sqlite("").await;
    with_policy(&fleet).await;
    let operator = fleet.operator();
    let mut sidecar = fleet.sidecar(&SidecarOptions::named("one")).await;
    let agent = sidecar.stateless_agent("agent");

    sidecar.restart_to_crash_at("intent-kept:3");
    sidecar.ready().await;
    for n in 1..=2 {
        let (status, answer) = agent.rest("fixture.get_item", json!({"n": n})).await;
        assert_eq!(status, 200, "{answer}");
    }
    let (status, _) = agent.rest("fixture.get_item", json!({"n": 3})).await;
    assert_eq!(status, 0);
    sidecar.process.crashed();

    sidecar.restart_to_crash_at("approval-claimed");
    sidecar.ready().await;
    let write = json!({"n": 4});
    let ((status, _), approved) = tokio::join!(
        agent.rest("fixture.write_item", write.clone()),
        approve(&operator, "fixture.write_item")
    );
    assert_eq!(status, 0);
    sidecar.process.crashed();

    sidecar.restart();
    sidecar.ready().await;
    let records = recorded(&operator, 4).await;
    for cut in [r#"get_item {"n":3}"#, r#"write_item {"n":4}"#] {
        assert_eq!(of(&records, cut).outcome(), "interrupted");
    }
    let approval = operator
        .get(&format!("/approvals/{}", approved["id"].as_str().unwrap()))
        .await;
    assert_eq!(
        approval["consumed_by"],
        of(&records, r#"write_item {"n":4}"#).id()
    );

    // What was claimed is used up: the same call asks again.
    let (again, asked) = tokio::join!(
        agent.rest("fixture.write_item", write),
        approve(&operator, "fixture.write_item")
    );
    assert_eq!(again.0, 200, "{}", again.1);
    assert_ne!(asked["id"], approved["id"]);
    let records = recorded(&operator, 5).await;
    let ran = ledger::ran(&sidecar);
    assert_eq!(
        ran,
        [
            r#"get_item {"n":1}"#,
            r#"get_item {"n":2}"#,
            r#"write_item {"n":4}"#
        ]
    );
    assert_eq!(records.len(), 5);
    ledger::assert_no_hole(&records);
    ledger::assert_whole(&operator).await;
}

#[tokio::test]
async fn a_control_plane_that_dies_within_a_batch_or_before_it_answers_has_every_record_once() {
    let mut fleet = Fleet::on_postgres(1, "").await;
    with_policy(&fleet).await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("one")).await;
    let agent = sidecar.stateless_agent("agent");
    let operator = fleet.operator();

    let mut made = 0;
    for (point, stays) in [("batch-written", false), ("batch-committed", true)] {
        // Calls go on without a control plane; their records are one batch when it is back.
        fleet.planes[0].process.kill();
        for n in made..made + 40 {
            let (status, answer) = agent.rest("fixture.get_item", json!({"n": n})).await;
            assert_eq!(status, 200, "{answer}");
        }
        fleet.restart_plane_to_crash_at(0, point);
        fleet.planes[0].process.crashed();
        let kept = stored(&fleet);
        if stays {
            assert!(kept > made, "{point}: nothing of the batch is in the database");
        } else {
            assert_eq!(kept, made, "{point}: a part of the batch is in the database");
        }
        made += 40;
        fleet.restart_plane(0).await;
        let records = recorded(&operator, made).await;
        assert_eq!(records.len(), made);
        ledger::assert_ran_as_recorded(&records, &ledger::ran(&sidecar));
        ledger::assert_no_hole(&records);
    }
    ledger::assert_whole(&operator).await;
}

/// How many records of calls are committed.
fn stored(fleet: &Fleet) -> usize {
    let sql = "SELECT count(*) FROM records WHERE kind = 'call'";
    let cluster = fleet.cluster.as_ref().unwrap();
    let printed = cluster.tool("psql", &["-d", "toolgate", "-tAc", sql]).unwrap();
    String::from_utf8(printed).unwrap().trim().parse().unwrap()
}

/// Calls per sidecar and round.
const CALLS: usize = 110;
/// Callers per sidecar.
const CALLERS: usize = 4;
const KILLS: usize = 2;
const SEEDS: u64 = 20;

#[derive(Clone, Copy, Debug)]
enum Victim {
    Plane,
    Sidecar(usize),
    PlaneAndSidecar(usize),
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

/// Who dies before which call of a round.
fn plan(seed: u64) -> Vec<(usize, Victim)> {
    let mut random = Random(seed);
    let mut plan: Vec<_> = (0..KILLS)
        .map(|_| {
            let at = 1 + random.below(2 * CALLS * 9 / 10);
            let victim = match random.below(5) {
                0 => Victim::Plane,
                1 => Victim::PlaneAndSidecar(random.below(2)),
                _ => Victim::Sidecar(random.below(2)),
            };
            (at, victim)
        })
        .collect();
    plan.sort_by_key(|(at, _)| *at);
    plan.dedup_by_key(|(at, _)| *at);
    plan
}

/// The `n`th call of a sidecar in a round: its tool and its arguments.
fn nth_call(seed: u64, sidecar: usize, n: usize) -> (&'static str, Value) {
    let mut random = Random(seed << 32 | (sidecar << 16 | n) as u64);
    match random.below(20) {
        0..9 => (
            "fixture.get_item",
            json!({"n": n, "seed": seed, "sidecar": sidecar}),
        ),
        9..13 => (
            "fixture.slow",
            json!({"ms": random.below(30), "n": n, "seed": seed, "sidecar": sidecar}),
        ),
        13..17 => (
            "fixture.delete_item",
            json!({"n": n, "seed": seed, "sidecar": sidecar}),
        ),
        _ => (
            "fixture.write_item",
            json!({"n": n, "seed": seed, "sidecar": sidecar}),
        ),
    }
}

/// Whether people say yes to a call of `write_item`.
fn is_welcome(arguments: &Value) -> bool {
    !arguments["n"].as_u64().unwrap().is_multiple_of(3)
}

/// What callers of a round share.
struct Round {
    seed: u64,
    made: AtomicUsize,
    next: [AtomicUsize; 2],
    plan: Vec<(usize, Victim)>,
    due: mpsc::Sender<Victim>,
    answers: Mutex<Vec<(u16, Value)>>,
}

async fn caller(round: Arc<Round>, sidecar: usize, agent: Agent) {
    loop {
        let n = round.next[sidecar].fetch_add(1, Ordering::SeqCst);
        if n >= CALLS {
            return;
        }
        let made = round.made.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some((_, victim)) = round.plan.iter().find(|(at, _)| *at == made) {
            round.due.send(*victim).await.unwrap();
        }
        let (tool, arguments) = nth_call(round.seed, sidecar, n);
        let answer = agent.rest(tool, arguments).await;
        let is_gone = answer.0 == 0;
        round.answers.lock().await.push(answer);
        if is_gone {
            back(&agent).await;
        }
    }
}

async fn back(agent: &Agent) {
    wait::until("the sidecar is back with its tools", || async {
        let answer = agent.request(Method::GET, "/mcp-servers").send().await.ok()?;
        let servers: Value = answer.json().await.ok()?;
        (servers[0]["state"] == "connected").then_some(())
    })
    .await;
}

/// Answers questions until it is told to end.
async fn answer_questions(operator: Operator, end: CancellationToken) {
    while !end.is_cancelled() {
        let pending = operator.request(Method::GET, "/approvals?status=pending&limit=1000");
        let (_, pending) = operator.try_send(pending).await;
        for approval in pending.as_array().into_iter().flatten() {
            let verdict = if is_welcome(&approval["params"]) {
                "approve"
            } else {
                "deny"
            };
            let path = format!("/approvals/{}/{verdict}", approval["id"].as_str().unwrap());
            operator.try_send(operator.request(Method::POST, &path)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn kill(fleet: &mut Fleet, sidecars: &mut [Sidecar], victim: Victim) {
    match victim {
        Victim::Plane => fleet.restart_plane(0).await,
        Victim::Sidecar(index) => {
            sidecars[index].restart();
            sidecars[index].ready().await;
        }
        Victim::PlaneAndSidecar(index) => {
            fleet.planes[0].process.kill();
            sidecars[index].restart();
            fleet.restart_plane(0).await;
            sidecars[index].ready().await;
        }
    }
}

async fn play(fleet: &mut Fleet, sidecars: &mut [Sidecar], seed: u64) {
    let plan = plan(seed);
    eprintln!("TOOLGATE_SEED={seed}: {plan:?}");
    let operator = fleet.operator();
    let from = ledger::next_seq(&operator).await;
    let (due, mut victims) = mpsc::channel(KILLS);
    let round = Arc::new(Round {
        seed,
        made: AtomicUsize::new(0),
        next: [AtomicUsize::new(0), AtomicUsize::new(0)],
        plan: plan.clone(),
        due,
        answers: Mutex::default(),
    });
    let mut callers = JoinSet::new();
    for (index, sidecar) in sidecars.iter().enumerate() {
        for _ in 0..CALLERS {
            callers.spawn(caller(
                Arc::clone(&round),
                index,
                sidecar.stateless_agent("agent"),
            ));
        }
    }
    let end = CancellationToken::new();
    let questions = tokio::spawn(answer_questions(operator.clone(), end.clone()));
    for _ in &plan {
        let victim = victims.recv().await.unwrap();
        kill(fleet, sidecars, victim).await;
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    end.cancel();
    questions.await.unwrap();
    let answers = round.answers.lock().await;
    assert_eq!(answers.len(), 2 * CALLS);
    check(&operator, sidecars, &round, from, &answers).await;
}

/// Compares what was answered and what ran in a round with the chain.
async fn check(
    operator: &Operator,
    sidecars: &[Sidecar],
    round: &Round,
    from: u64,
    answers: &[(u16, Value)],
) {
    let mark = format!("\"seed\":{},", round.seed);
    let ran: Vec<String> = sidecars
        .iter()
        .flat_map(ledger::ran)
        .filter(|call| call.contains(&mark))
        .collect();
    let answered: Vec<(&str, u16)> = answers
        .iter()
        .filter(|(status, _)| *status != 0)
        .map(|(status, answer)| {
            let trace = answer["trace_id"]
                .as_str()
                .unwrap_or_else(|| panic!("{status} without a trace: {answer}"));
            (trace, *status)
        })
        .collect();
    let records = wait::until("every answered and every cut-off call is recorded", || async {
        let records = ledger::calls_from(operator, from).await;
        let has_answered = answered
            .iter()
            .all(|(trace, _)| records.iter().any(|record| record.text("trace_id") == *trace));
        let has_ran = ran
            .iter()
            .all(|call| records.iter().any(|record| record.call() == *call));
        (has_answered && has_ran).then_some(records)
    })
    .await;
    for (trace, status) in answered {
        let record = records
            .iter()
            .find(|record| record.text("trace_id") == trace)
            .unwrap();
        assert_eq!(
            status == 200,
            record.outcome() == "ok",
            "answered {status}: {record:?}"
        );
    }
    let of_round: Vec<Record> = records
        .into_iter()
        .filter(|record| record.arguments["seed"] == round.seed)
        .collect();
    ledger::assert_ran_as_recorded(&of_round, &ran);
    for call in &ran {
        assert!(
            !call.starts_with("delete_item"),
            "ran although it is denied: {call}"
        );
        if let Some(arguments) = call.strip_prefix("write_item ") {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            assert!(is_welcome(&arguments), "ran although somebody refused it: {call}");
            approved_once(operator, of(&of_round, call)).await;
        }
    }
}

/// The call's approval was approved, and claimed by no other.
async fn approved_once(operator: &Operator, record: &Record) {
    let id = record.header["approval"]["id"].as_str().unwrap();
    let approval = operator.get(&format!("/approvals/{id}")).await;
    assert_eq!(approval["status"], "approved", "{approval}");
    assert_eq!(approval["consumed_by"], record.id(), "{approval}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_killed_at_random_lose_no_record_and_run_nothing_that_may_not_run() {
    let seeds = match std::env::var("TOOLGATE_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=SEEDS).collect::<Vec<u64>>(),
    };
    let mut fleet = Fleet::on_postgres(1, "").await;
    with_policy(&fleet).await;
    let mut sidecars = Vec::new();
    for name in ["one", "two"] {
        sidecars.push(fleet.sidecar(&SidecarOptions::named(name)).await);
    }
    for seed in seeds {
        let began = std::time::Instant::now();
        play(&mut fleet, &mut sidecars, seed).await;
        eprintln!("seed {seed} took {:?}", began.elapsed());
    }
    let operator = fleet.operator();
    ledger::assert_whole(&operator).await;
    let records = ledger::calls_from(&operator, 1).await;
    let ran: Vec<String> = sidecars.iter().flat_map(ledger::ran).collect();
    ledger::assert_ran_as_recorded(&records, &ran);
    ledger::assert_no_hole(&records);
    let cut = records.iter().filter(|record| record.outcome() == "interrupted");
    eprintln!(
        "{} records, {} calls ran, {} were cut off",
        records.len(),
        ran.len(),
        cut.count()
    );
}

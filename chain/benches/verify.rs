//! How fast a chain is linked and verified, in records per second of one core.

#![allow(clippy::expect_used, reason = "a benchmark that cannot set up must stop")]

use std::hint::black_box;

use chain::hash::Hash;
use chain::link::{ChainWriter, Head, Linked, MacKey};
use chain::payload::Payload;
use chain::record::{FloorHit, Revision, SourceRecord};
use chain::source::SourceChain;
use chain::timestamp::Timestamp;
use chain::verify::{Options, RecordLine, Verifier, verify_lines};
use chain::vocabulary::{Action, IdentityStrength, Outcome, RecordKind};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const RECORDS: u64 = 10_000;

fn record(number: u64) -> SourceRecord {
    let time = Timestamp::from_micros(1_800_000_000_000_000);
    let id = format!("019c0f3e-0000-7000-8000-{number:012}");
    let mut record = SourceRecord::new(id, time, RecordKind::Call, "team-a".to_owned(), Outcome::Ok);
    record.agent = Some("support-agent-1".to_owned());
    record.identity = Some(IdentityStrength::Bound);
    record.session = Some("0123456789abcdef0123456789abcdef".to_owned());
    record.tool = Some("github.list_issues".into());
    record.upstream = Some("github".to_owned());
    record.fingerprint = Some(Hash::ZERO);
    record.action = Some(Action::Allow);
    record.rule = Some("support-agent".to_owned());
    record.rule_index = Some(3);
    record.revision = Some(Revision {
        generation: 1,
        number: 42,
    });
    record.floors = vec![FloorHit {
        name: "pin_changed".into(),
        action: Action::HumanApproval,
    }];
    record.risk = Some("READ".into());
    record.risks = vec!["READ".into()];
    record.side_effect = Some("read".into());
    record.latency_ms = Some(12);
    record.upstream_ms = Some(11);
    record.decision_us = Some(3);
    record.request_bytes = Some(300);
    record.response_bytes = Some(4000);
    record.trace_id = Some("0123456789abcdef0123456789abcdef".to_owned());
    record.span_id = Some("0123456789abcdef".to_owned());
    record
}

fn sources() -> Vec<String> {
    let mut chain = SourceChain::new("5e4e9d0c1b7a4b0f9d8c7b6a59483726", 1);
    let digest = Payload::new([7; 16]).seal().expect("payload").digest;
    (1..=RECORDS)
        .map(|number| {
            let mut record = record(number);
            record.payload_digest = Some(digest);
            chain.seal(&mut record).expect("record").text
        })
        .collect()
}

fn linked(sources: &[String], key: Option<MacKey>) -> Vec<Linked> {
    let mut writer = ChainWriter::new(Head::GENESIS, key);
    sources
        .iter()
        .map(|text| writer.append(text).expect("link"))
        .collect()
}

fn line<'a>(linked: &'a Linked, key_id: &'a str) -> RecordLine<'a> {
    RecordLine {
        header: &linked.header,
        payload: None,
        hash: linked.hash,
        mac: linked.mac,
        key_id: linked.mac.map(|_| key_id),
    }
}

fn chain(c: &mut Criterion) {
    let sources = sources();
    let key = MacKey::new("k1", &[1; 32]).expect("key");
    let mut group = c.benchmark_group("chain");
    group.throughput(Throughput::Elements(RECORDS)).sample_size(20);
    group.bench_function("link", |b| b.iter(|| linked(black_box(&sources), None)));
    group.bench_function("seal", |b| {
        let mut source = SourceChain::new("5e4e9d0c1b7a4b0f9d8c7b6a59483726", 1);
        let mut one = record(1);
        b.iter(|| (0..RECORDS).for_each(|_| drop(black_box(source.seal(&mut one)))));
    });
    for (name, key, skip_source_links) in [
        ("all links", None, false),
        ("all links and macs", Some(key.clone()), false),
        ("chain only", None, true),
    ] {
        let records = linked(&sources, key.clone());
        group.bench_function(format!("verify from memory, {name}"), |b| {
            b.iter(|| {
                let mut verifier = Verifier::new(Options {
                    keys: key.clone().into_iter().collect(),
                    skip_source_links,
                    ..Options::default()
                });
                records
                    .iter()
                    .for_each(|record| verifier.record(&line(record, "k1")));
                assert!(verifier.finish().is_intact());
            });
        });
    }
    let text: String = linked(&sources, None)
        .iter()
        .map(|record| line(record, "").to_line().expect("line"))
        .collect();
    for (name, skip_source_links) in [("all links", false), ("chain only", true)] {
        group.bench_function(format!("verify from lines, {name}"), |b| {
            b.iter(|| {
                let verifier = Verifier::new(Options {
                    skip_source_links,
                    ..Options::default()
                });
                let report = verify_lines(black_box(text.as_bytes()), verifier, |_| {}).expect("read");
                assert!(report.is_intact());
            });
        });
    }
    group.finish();
}

criterion_group!(benches, chain);
criterion_main!(benches);

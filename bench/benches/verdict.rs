//! From the bytes of a `tools/call` to a verdict: envelope, duplicate-key check, argument digest, decision.
//!
//! Target (NUMBERS.md): 3 us at p50 for a call of 300 bytes.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hmac::{Hmac, Mac as _};
use policy::document::{Lists, Source};
use policy::{Call, Policy, PolicySet};
use sha2::Sha256;
use tools::classify::Classification;
use tools::id::{AgentId, Namespace, ToolName};
use tools::json::{Document, Limits, canonical_into};
use tools::targets::Targets;

const CALL: &str = r#"{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"fs.write","arguments":{"path":"/data/reports/2026/week-31.txt","amount":120,"mode":"w","to":["ana@example.com","bo@example.com"],"content":"What the weather was like in Lisbon last week"},"_meta":{"progressToken":7,"session":"5e4e9d0c1b7a"}}}"#;

fn policies() -> PolicySet {
    let mut text = "name: p\nagent: claude\nrules:\n".to_owned();
    for number in 0..1_000 {
        text.push_str(&format!("  - {{tools: [\"up{number}.*\"], action: allow}}\n"));
    }
    text.push_str(
        "  - {tools: ['fs.*'], action: allow, condition: {all: [\
         {field: path, operator: starts_with, value: /data}, {field: amount, operator: '<', value: 500}]}}\n",
    );
    let parsed = Policy::parse_all("bench.yaml", &text, &Source::Api, &Lists::none());
    let parsed = parsed.unwrap_or_else(|problems| unreachable!("{problems:?}"));
    PolicySet::compile(parsed.into_iter().map(Arc::new).collect::<Vec<_>>())
}

struct Caller {
    namespace: Namespace,
    agent: AgentId,
    tool: ToolName,
    classification: Classification,
    key: Hmac<Sha256>,
}

impl Caller {
    fn new() -> Option<Self> {
        let tool: ToolName = "fs.write".parse().ok()?;
        Some(Self {
            namespace: Namespace::default(),
            agent: "claude".parse().ok()?,
            classification: Classification::unknown(tool.clone()),
            tool,
            key: Hmac::new_from_slice(&[7; 32]).ok()?,
        })
    }

    /// Whether the message may pass, and its arguments' digest.
    fn verdict(&self, set: &PolicySet, message: &[u8], scratch: &mut Vec<u8>) -> Option<(bool, [u8; 32])> {
        let document = Document::parse(message, Limits::MESSAGE).ok()?;
        let root = document.root();
        let is_call = root.get("method")?.as_str()? == "tools/call";
        root.get("id")?;
        let params = root.get("params")?;
        let is_known = params.get("name")?.as_str()? == self.tool.as_str();
        let arguments = params.get("arguments")?;
        scratch.clear();
        canonical_into(arguments, scratch);
        let mut digest = self.key.clone();
        digest.update(scratch);
        let decision = set.decide(&Call {
            namespace: &self.namespace,
            agent: &self.agent,
            user: None,
            session: None,
            tool: &self.tool,
            classification: &self.classification,
            targets: &Targets::UNKNOWN,
            arguments: Some(arguments),
            floors: &[],
        });
        let may_run = is_call && is_known && decision.action == policy::Action::Allow;
        Some((may_run, digest.finalize().into_bytes().into()))
    }
}

fn verdict(criterion: &mut Criterion) {
    let Some(caller) = Caller::new() else { return };
    let set = policies();
    let mut scratch = Vec::new();
    let may_run = caller.verdict(&set, CALL.as_bytes(), &mut scratch);
    assert!(may_run.is_some_and(|(may_run, _)| may_run), "the call is allowed");
    let mut group = criterion.benchmark_group("bytes to verdict");
    group.throughput(Throughput::Bytes(CALL.len() as u64));
    group.bench_function(format!("{} bytes", CALL.len()), |bencher| {
        bencher.iter(|| black_box(caller.verdict(&set, black_box(CALL.as_bytes()), &mut scratch)));
    });
    group.bench_function("parse and duplicate keys alone", |bencher| {
        bencher.iter(|| black_box(Document::parse(black_box(CALL.as_bytes()), Limits::MESSAGE).is_ok()));
    });
    group.finish();
}

criterion_group!(benches, verdict);
criterion_main!(benches);

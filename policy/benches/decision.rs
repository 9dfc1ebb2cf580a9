//! How fast a decision is, warm and for a new (agent, tool), and how long compiling takes.
//!
//! Targets (NUMBERS.md): decision p50 <= 250 ns with 1,000 rules and no slower with 10,000; resolution with 10,000
//! policies <= 50 us; compiling 10,000 policies <= 1 s, from their text or as sent; after one changed <= 20 ms.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use policy::document::{Lists, Source};
use policy::{Call, Policy, PolicySet};
use tools::classify::Classification;
use tools::id::{AgentId, Namespace, ToolName};
use tools::json::{Document, Limits};
use tools::targets::Targets;

const ARGUMENTS: &str = r#"{"path": "/data/report.txt", "amount": 120, "mode": "r", "to": ["a@corp.com"]}"#;

fn parse(text: &str) -> Vec<Arc<Policy>> {
    let policies = Policy::parse_all("bench.yaml", text, &Source::Api, &Lists::none());
    policies
        .unwrap_or_else(|problems| unreachable!("{problems:?}"))
        .into_iter()
        .map(Arc::new)
        .collect()
}

/// One policy whose rules name other tools, until the last two.
fn rules(count: usize, conditional: bool) -> PolicySet {
    let mut text = "name: p\nagent: claude\nrules:\n".to_owned();
    for number in 0..count.saturating_sub(2) {
        text.push_str(&format!(
            "  - {{tools: [\"up{number}.*\", \"*.verb{number}_*\"], action: allow}}\n"
        ));
    }
    if conditional {
        text.push_str(
            "  - {tools: ['fs.*'], action: allow, condition: {all: [\
             {field: path, operator: starts_with, value: /data}, {field: amount, operator: '<', value: 500}]}}\n",
        );
    } else {
        text.push_str("  - {tools: ['fs.*'], action: allow}\n");
    }
    text.push_str("  - {tools: ['*'], action: deny}\n");
    PolicySet::compile(parse(&text))
}

/// Policies for as many agents, some by pattern, and a guardrail.
fn policies(count: usize) -> Vec<Arc<Policy>> {
    documents(count).iter().flat_map(|text| parse(text)).collect()
}

/// Their texts, each a document.
fn documents(count: usize) -> Vec<String> {
    text_of(count).split("---\n").map(str::to_owned).collect()
}

fn text_of(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let agent = match number % 4 {
            0 => format!("agent-{number}"),
            1 => format!("team{number}-*"),
            2 => format!("*-role{number}"),
            _ => format!("svc{number}-?*"),
        };
        text.push_str(&format!(
            "name: p{number}\nagent: \"{agent}\"\nrules:\n  - {{tools: [\"*.read_*\", \"*.list_*\"], action: allow}}\n  \
             - {{tools: [fs.write], action: allow, condition: {{field: path, operator: starts_with, value: /data}}}}\n  \
             - {{tools: [\"*\"], action: deny}}\n---\n"
        ));
    }
    text.push_str(
        "name: all\nagent: \"*\"\nrules: [{action: human_approval}]\n---\n\
         name: guard\nagent: \"*\"\nkind: guardrail\nrules: [{tools: [bank.*], action: deny}]\n",
    );
    text
}

struct Caller {
    namespace: Namespace,
    agent: AgentId,
    tool: ToolName,
    classification: Classification,
}

impl Caller {
    fn new(agent: &str, tool: &str) -> Option<Self> {
        let tool: ToolName = tool.parse().ok()?;
        Some(Self {
            namespace: Namespace::default(),
            agent: agent.parse().ok()?,
            classification: Classification::unknown(tool.clone()),
            tool,
        })
    }

    fn call<'a>(&'a self, document: &'a Document<'a>) -> Call<'a> {
        Call {
            namespace: &self.namespace,
            agent: &self.agent,
            user: None,
            session: None,
            tool: &self.tool,
            classification: &self.classification,
            targets: &Targets::UNKNOWN,
            arguments: Some(document.root()),
            floors: &[],
        }
    }
}

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    let (Some(caller), Ok(document)) = (
        Caller::new("claude", "fs.write"),
        Document::parse(ARGUMENTS.as_bytes(), Limits::ARGUMENTS),
    ) else {
        return;
    };
    for count in [10, 100, 1_000, 10_000] {
        for (name, conditional) in [("unconditional", false), ("conditional", true)] {
            let set = rules(count, conditional);
            let call = caller.call(&document);
            group.bench_function(format!("{name}/{count}"), |bencher| {
                bencher.iter(|| black_box(set.decide(black_box(&call))));
            });
        }
    }
    group.finish();
}

fn resolution(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("resolve");
    let Ok(document) = Document::parse(ARGUMENTS.as_bytes(), Limits::ARGUMENTS) else {
        return;
    };
    let set = PolicySet::compile(policies(10_000));
    let mut number = 0_u64;
    group.bench_function("new agent and tool/10000 policies", |bencher| {
        bencher.iter_batched(
            || {
                number += 1;
                Caller::new(
                    &format!("team{}-{number}", 1 + 4 * (number % 2_500)),
                    &format!("fs.write_{number}"),
                )
            },
            |caller| caller.map(|caller| set.decide(&caller.call(&document))),
            BatchSize::SmallInput,
        );
    });
    let rules_10_000 = rules(10_000, true);
    group.bench_function("new tool/10000 rules of one policy", |bencher| {
        bencher.iter_batched(
            || {
                number += 1;
                Caller::new("claude", &format!("fs.write_{number}"))
            },
            |caller| caller.map(|caller| rules_10_000.decide(&caller.call(&document))),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn compiling(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    group.sample_size(20);
    let all = policies(10_000);
    group.bench_function("10000 policies", |bencher| {
        bencher.iter(|| black_box(PolicySet::compile(all.iter().cloned())));
    });
    let texts = documents(10_000);
    group.bench_function("10000 policies from their text", |bencher| {
        bencher.iter(|| black_box(PolicySet::compile(texts.iter().flat_map(|text| parse(text)))));
    });
    let sent: Vec<Vec<u8>> = all.iter().filter_map(|policy| policy.to_sent().ok()).collect();
    group.bench_function("10000 policies as sent", |bencher| {
        bencher.iter(|| {
            let read = sent.iter().filter_map(|bytes| Policy::from_sent(bytes).ok());
            black_box(PolicySet::compile(read.map(Arc::new)))
        });
    });
    let set = PolicySet::compile(all.iter().cloned());
    group.bench_function("one changed of 10000", |bencher| {
        bencher.iter(|| black_box(set.with_changes(all.first().cloned(), &[], Vec::new())));
    });
    if let Some(sent) = all.first().and_then(|policy| policy.to_sent().ok()) {
        group.bench_function("decode one sent policy", |bencher| {
            bencher.iter(|| black_box(Policy::from_sent(black_box(&sent))));
        });
    }
    group.finish();
}

criterion_group!(benches, decisions, resolution, compiling);
criterion_main!(benches);

//! What it costs to classify one call, and one tool.
#![allow(missing_docs, reason = "the macros of criterion make undocumented functions")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use tools::classify::classify_call;
use tools::id::UpstreamName;
use tools::json::{Document, Limits};
use tools::model::Tool;

fn tool(declaration: &serde_json::Value) -> Tool {
    let upstream = UpstreamName::try_from("bench").unwrap_or_else(|_| unreachable!("a valid name"));
    let raw = serde_json::value::to_raw_value(declaration).unwrap_or_else(|_| unreachable!("JSON"));
    Tool::mcp(&upstream, raw.into()).unwrap_or_else(|_| unreachable!("a valid declaration"))
}

fn host(name: &str) -> Tool {
    Tool::named(name).unwrap_or_else(|_| unreachable!("a valid name"))
}

fn calls(criterion: &mut Criterion) {
    let shell_text = "git status --short && grep -rn 'TODO' src tests | sort | uniq -c | head -50; \
         find . -name '*.rs' -newer Cargo.lock | xargs wc -l; curl -s https://api.example.com/v1/items?page=2 | \
         jq '.items[] | .name' > names";
    let subjects = [
        (
            "named, no argument matters",
            tool(
                &json!({"name": "get_issue", "annotations": {"readOnlyHint": true},
                "inputSchema": {"properties": {"owner": {}, "repo": {}, "number": {"type": "integer"}}}}),
            ),
            json!({"owner": "a", "repo": "b", "number": 12}),
        ),
        (
            "named, with an action",
            tool(&json!({"name": "issues", "inputSchema": {"properties": {
                "action": {"enum": ["list", "get", "create", "delete"]}, "id": {}}}})),
            json!({"action": "create", "id": 12}),
        ),
        (
            "named, mapped, with a path",
            host("Read"),
            json!({"file_path": "/srv/data/report.txt", "limit": 20}),
        ),
        (
            "shell text of 200 bytes",
            host("Bash"),
            json!({"command": shell_text}),
        ),
        (
            "SQL of 100 bytes",
            host("pg.query"),
            json!({"sql": "SELECT u.id, u.name, o.total FROM users u JOIN orders o ON o.user_id = u.id WHERE o.total > 10"}),
        ),
    ];
    for (name, tool, arguments) in &subjects {
        let text = arguments.to_string();
        let Ok(document) = Document::parse(text.as_bytes(), Limits::ARGUMENTS) else {
            continue;
        };
        criterion.bench_function(&format!("classify one call: {name}"), |bencher| {
            bencher.iter(|| black_box(classify_call(black_box(tool), Some(document.root()))));
        });
    }
}

fn tools(criterion: &mut Criterion) {
    let declaration = json!({"name": "get_issue", "description": "Gets an issue of a repository.",
        "annotations": {"readOnlyHint": true}, "inputSchema": {"properties": {"owner": {}, "repo": {}, "number": {}}}});
    criterion.bench_function("classify one tool", |bencher| {
        bencher.iter(|| black_box(tool(black_box(&declaration))));
    });
}

criterion_group!(benches, calls, tools);
criterion_main!(benches);

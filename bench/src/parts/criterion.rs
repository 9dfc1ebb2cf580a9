//! What the criterion benchmarks of this run found: their medians, from the files they leave.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::report::{Report, say, short};

/// Benchmarks with a target in NUMBERS.md; the others are reported without.
const TARGETS: [(&str, &str); 7] = [
    ("decide/unconditional/1000", "<= 250 ns"),
    ("decide/conditional/1000", "<= 250 ns"),
    ("decide/unconditional/10000", "<= 250 ns"),
    ("decide/conditional/10000", "<= 250 ns"),
    ("resolve/new agent and tool/10000 policies", "<= 50 us"),
    ("compile/one changed of 10000", "<= 20 ms"),
    ("bytes to verdict/307 bytes", "<= 3 us"),
];

/// Reports every benchmark found below a folder.
pub fn run(folder: &Path, report: &mut Report) {
    let mut found = Vec::new();
    collect(folder, &mut found);
    found.sort();
    if found.is_empty() {
        say("no criterion results; bench/run.sh makes them");
    }
    for (name, nanos) in found {
        let target = TARGETS.iter().find(|(prefix, _)| name.starts_with(prefix));
        let target = target.map_or("-", |(_, target)| target);
        report.add(&name, target, time(nanos), "criterion, median; one core");
    }
}

fn collect(folder: &Path, found: &mut Vec<(String, u64)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        if path.ends_with("new") {
            found.extend(read(&path));
        } else {
            collect(&path, found);
        }
    }
}

/// A benchmark's name, and its median in nanoseconds.
fn read(folder: &Path) -> Option<(String, u64)> {
    let json = |name| serde_json::from_slice::<Value>(&fs::read(folder.join(name)).ok()?).ok();
    let (benchmark, estimates) = (json("benchmark.json")?, json("estimates.json")?);
    let name = benchmark.get("full_id")?.as_str()?.to_owned();
    let median = estimates.get("median")?.get("point_estimate")?.as_f64()?;
    Some((name, median.round() as u64))
}

fn time(nanos: u64) -> String {
    let nanos = nanos as f64;
    match nanos {
        nanos if nanos < 1e4 => format!("{} ns", short(nanos)),
        nanos if nanos < 1e7 => format!("{} us", short(nanos / 1e3)),
        nanos => format!("{} ms", short(nanos / 1e6)),
    }
}

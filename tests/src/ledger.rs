//! The chain as a test reads it, and what must hold between it and what upstreams really ran.

use std::collections::{BTreeMap, HashMap, HashSet};

use reqwest::Method;
use serde_json::Value;

use crate::fleet::Sidecar;
use crate::operator::Operator;

/// One call's record.
#[derive(Clone, Debug)]
pub struct Record {
    /// Everything in its header.
    pub header: Value,
    /// The arguments as recorded.
    pub arguments: Value,
}

impl Record {
    /// A text of the header.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.header[key].as_str().unwrap_or_default()
    }

    /// The record's id, which is the call's.
    #[must_use]
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// How the call ended.
    #[must_use]
    pub fn outcome(&self) -> &str {
        self.text("outcome")
    }

    /// The call, as the fixture server writes it.
    #[must_use]
    pub fn call(&self) -> String {
        let tool = self.text("tool");
        let local = tool.split_once('.').map_or(tool, |(_, local)| local);
        format!("{local} {}", self.arguments)
    }
}

/// The records of calls from a number of the chain on, in the chain's order. While nobody answers: none.
pub async fn calls_from(operator: &Operator, seq: u64) -> Vec<Record> {
    let request = operator.request(Method::GET, &format!("/traces/export?from={seq}"));
    let Ok(response) = request.send().await else {
        return Vec::new();
    };
    let text = response.text().await.unwrap_or_default();
    text.lines().filter_map(call).collect()
}

fn call(line: &str) -> Option<Record> {
    let line: Value = serde_json::from_str(line).unwrap();
    let header: Value = serde_json::from_str(line["header"].as_str()?).unwrap();
    if header["kind"] != "call" {
        return None;
    }
    let payload: Value = serde_json::from_str(line["payload"].as_str().unwrap_or("null")).unwrap();
    let arguments = payload["params"].clone();
    Some(Record { header, arguments })
}

/// The number that the next record gets.
pub async fn next_seq(operator: &Operator) -> u64 {
    operator.get("/traces/verify").await["head"]["seq"]
        .as_u64()
        .unwrap()
        + 1
}

/// The calls that really ran, without the word `ran`; each is there as often as it ran.
#[must_use]
pub fn ran(sidecar: &Sidecar) -> Vec<String> {
    let lines = sidecar.ran();
    lines
        .iter()
        .filter_map(|line| line.strip_prefix("ran "))
        .map(str::to_owned)
        .collect()
}

/// Every call that ran has exactly one record, `ok` or, where the sidecar was killed, `interrupted`; every record that says `ok` is of
/// a call that ran exactly once; no id and no number is there twice.
pub fn assert_ran_as_recorded(records: &[Record], ran: &[String]) {
    let mut ids = HashSet::new();
    let mut by_call: HashMap<String, Vec<&Record>> = HashMap::new();
    for record in records {
        assert!(
            ids.insert(record.id().to_owned()),
            "twice in the chain: {record:?}"
        );
        by_call.entry(record.call()).or_default().push(record);
    }
    let mut times: HashMap<&str, usize> = HashMap::new();
    for call in ran {
        *times.entry(call).or_default() += 1;
    }
    for (call, times) in &times {
        let of_it = by_call.get(*call).map_or(&[][..], Vec::as_slice);
        assert_eq!(
            (*times, of_it.len()),
            (1, 1),
            "ran {times} times, recorded as {of_it:?}: {call}"
        );
        let outcome = of_it[0].outcome();
        assert!(
            ["ok", "interrupted"].contains(&outcome),
            "ran, and recorded as {outcome}: {call}"
        );
    }
    for record in records.iter().filter(|record| record.outcome() == "ok") {
        let call = record.call();
        assert!(
            times.contains_key(call.as_str()),
            "recorded, and never ran: {record:?}"
        );
    }
}

/// The numbers of every epoch of every sidecar begin with 1 and have no hole.
pub fn assert_no_hole(records: &[Record]) {
    let mut numbers: BTreeMap<(String, u64), Vec<u64>> = BTreeMap::new();
    for record in records {
        let epoch = record.header["epoch"].as_u64().unwrap();
        let n = record.header["n"].as_u64().unwrap();
        let source = (record.text("sidecar").to_owned(), epoch);
        numbers.entry(source).or_default().push(n);
    }
    for (source, numbers) in numbers {
        let whole: Vec<u64> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, whole, "numbers of {source:?}");
    }
}

/// The chain verifies, and knows of no record that never came. Epochs that were cut off are closed by and by.
pub async fn assert_whole(operator: &Operator) {
    let report = operator.get("/traces/verify").await;
    assert_eq!(report["valid"], true, "{report}");
    crate::wait::until_equal("gaps", Value::Array(Vec::new()), || async {
        operator.get("/traces/gaps").await
    })
    .await;
}

use super::*;

mod bounds;
mod properties;
mod targets;

const TABLE: &str = include_str!("table.txt");
const ATTACKS: &str = include_str!("attacks.txt");

/// The rows of a table: classes and a command.
fn rows(table: &'static str) -> impl Iterator<Item = (RiskSet, String)> {
    table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (classes, command) = line.split_once(" ::").unwrap();
            let classes = classes
                .split('+')
                .map(|name| Risk::from_name(name).unwrap())
                .collect();
            (classes, unescape(command.strip_prefix(' ').unwrap_or(command)))
        })
}

fn unescape(text: &str) -> String {
    let mut out = text
        .replace("\\n", "\n")
        .replace("\\t", "\t")
        .replace("\\0", "\0")
        .replace("\\r\u{20}", "\r ");
    if let Some(start) = out.strip_suffix("\\r") {
        out = format!("{start}\r");
    }
    while let Some((before, rest)) = out.clone().split_once("\\u{") {
        let (digits, after) = rest.split_once('}').unwrap();
        let c = char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap();
        out = format!("{before}{c}{after}");
    }
    out
}

#[test]
fn the_table_of_the_specification_holds_row_by_row() {
    let wrong: Vec<String> = rows(TABLE)
        .filter_map(|(expected, command)| {
            let reading = read(&command);
            (reading.risks != expected).then(|| format!("{command:?}: {expected:?} but {reading:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_attack_is_a_plain_read_and_each_has_its_classes() {
    let rows: Vec<_> = rows(ATTACKS).collect();
    assert!(rows.len() >= 200, "{} attacks", rows.len());
    let wrong: Vec<String> = rows
        .into_iter()
        .filter_map(|(expected, command)| {
            let reading = read(&command);
            let is_right = expected.is_subset_of(reading.risks) && reading.risks != RiskSet::of(Risk::Read);
            (!is_right).then(|| format!("{command:?}: {expected:?} but {reading:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_plain_read_is_complete_and_says_so() {
    for (expected, command) in rows(TABLE) {
        let reading = read(&command);
        if expected == RiskSet::of(Risk::Read) {
            assert!(reading.complete, "{command:?}: {reading:?}");
            assert_eq!(reading.capability, Some("shell.read"));
        }
        assert!(!reading.reasons.is_empty(), "{command:?}");
    }
}

#[test]
fn every_row_of_the_vocabulary_is_read() {
    for line in table::VOCABULARY
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        assert!(table::parse(line).is_some(), "{line}");
    }
    assert!(table::names().count() > 250);
}

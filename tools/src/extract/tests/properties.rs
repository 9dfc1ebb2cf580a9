//! What holds for every text.

use proptest::prelude::*;

use super::read;
use crate::extract::{Dialect, Extraction};
use crate::targets::Extent;

fn dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL.to_vec())
}

/// Words that make up SQL, and signs that are meant to confuse.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "SELECT",
        "FROM",
        "WHERE",
        "users",
        "u",
        "ssn",
        "*",
        "u.*",
        ",",
        ";",
        "(",
        ")",
        "JOIN",
        "ON",
        "USING",
        "NATURAL",
        "WITH",
        "AS",
        "RECURSIVE",
        "UNION",
        "ALL",
        "INSERT",
        "INTO",
        "VALUES",
        "UPDATE",
        "SET",
        "DELETE",
        "RETURNING",
        "MERGE",
        "WHEN",
        "MATCHED",
        "THEN",
        "=",
        "+",
        "||",
        "::",
        "1",
        "'x'",
        "\"q\"",
        "`b`",
        "[c]",
        "$$",
        "--",
        "/*",
        "*/",
        "/*!",
        "#",
        "\n",
        "\\",
        "E'\\''",
        "ORDER",
        "BY",
        "GROUP",
        "HAVING",
        "CASE",
        "END",
        "IN",
        "EXISTS",
        "LATERAL",
        "count",
        "f",
        ".",
        "@x",
        ":=",
        "?",
        "$1",
        "NULL",
        "TABLE",
        "EXPLAIN",
        "ANALYZE",
        "FOR",
        "LIMIT",
        "|>",
        "PIVOT",
        "UNNEST",
        "INTERVAL",
        "CAST",
        "CREATE",
        "DROP",
        "COPY",
        "TO",
        "DO",
        "BEGIN",
        "PRAGMA",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 0..40).prop_map(|words| words.join(" "))
}

/// Whether everything that is known of `more` is at least as grave as what is known of `less`.
fn is_no_milder(more: &Extraction, less: &Extraction) -> bool {
    let grows = |more: &Extent, less: &Extent| match (more, less) {
        (Extent::Unknown, _) => true,
        (Extent::Known(_), Extent::Unknown) => false,
        (Extent::Known(more), Extent::Known(less)) => less.iter().all(|member| more.contains(member)),
    };
    let risks = match (more.risks, less.risks) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(more), Some(less)) => less.is_subset_of(more),
    };
    risks && grows(&more.resources, &less.resources) && grows(&more.columns, &less.columns)
}

/// A query over tables that are named in it, and those names.
fn query() -> impl Strategy<Value = (String, Vec<String>)> {
    let table = prop::sample::select(vec!["t1", "t2", "t3", "t4", "t5", "t6"]);
    let leaf = (table, prop::sample::select(vec!["a", "b", "c"]))
        .prop_map(|(table, column)| (format!("SELECT {column} FROM {table}"), vec![table.to_owned()]));
    leaf.prop_recursive(4, 24, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            pair.clone().prop_map(|((one, mut names), (other, more))| {
                names.extend(more);
                (
                    format!("SELECT x.a FROM ({one}) x JOIN ({other}) y ON x.a = y.b"),
                    names,
                )
            }),
            pair.clone().prop_map(|((one, mut names), (other, more))| {
                names.extend(more);
                (format!("({one}) UNION ALL ({other})"), names)
            }),
            pair.clone().prop_map(|((one, mut names), (other, more))| {
                names.extend(more);
                (format!("SELECT a FROM ({one}) z WHERE a IN ({other})"), names)
            }),
            pair.prop_map(|((one, mut names), (other, more))| {
                names.extend(more);
                (
                    format!(
                        "WITH t1x AS ({one}) SELECT (SELECT max(a) FROM t1x) FROM ({other}) q ORDER BY 1"
                    ),
                    names,
                )
            }),
            inner.prop_map(|(one, names)| (
                format!("SELECT CASE WHEN EXISTS ({one}) THEN 1 END AS a, 2 AS b"),
                names
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_panics(dialect in dialect(), text in any::<String>(), words in text()) {
        read(dialect, &text);
        read(dialect, &words);
    }

    #[test]
    fn a_further_statement_never_makes_a_text_milder(dialect in dialect(), one in text(), other in text()) {
        let both = read(dialect, &format!("{one}\n;{other}"));
        let (one_alone, other_alone) = (read(dialect, &one), read(dialect, &other));
        // One that is not parsed alone can hold the other inside: an open comment or string, say.
        if one_alone.risks.is_some() && other_alone.risks.is_some() {
            for alone in [one_alone, other_alone] {
                prop_assert!(is_no_milder(&both, &alone), "{:?} {:?}\n{:?}\n{:?}", one, other, both, alone);
            }
        }
    }

    #[test]
    fn every_table_of_a_query_is_found(dialect in dialect(), (text, names) in query()) {
        let extraction = read(dialect, &text);
        let Extent::Known(found) = &extraction.resources else {
            return Err(TestCaseError::fail(format!("{text}: {:?}", extraction.reasons)));
        };
        for name in &names {
            prop_assert!(found.iter().any(|uri| uri.ends_with(name.as_str())), "{} in {}", name, text);
        }
        prop_assert_eq!(super::risks(&extraction), "READ");
    }
}

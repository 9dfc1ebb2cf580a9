//! Texts that are made to be read otherwise, or to take long.

use std::time::{Duration, Instant};

use super::{read, risks};
use crate::classify::Risk;
use crate::extract::Dialect;
use crate::targets::Extent;

/// Runs on a stack as small as a worker's.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn signs_that_databases_read_differently_leave_everything_unknown() {
    for text in [
        "SELECT 1 -- \r, ssn FROM users",
        "SELECT a\u{a0}ssn FROM users",
        "SELECT 1\u{0}; DROP TABLE users",
        "SELECT 1\u{b}FROM users",
        "SELECT n\u{200b}ame FROM users",
        "SELECT name /* /* */ , ssn */ FROM users",
        "SELECT 'x\u{202e}' FROM users",
    ] {
        for dialect in Dialect::ALL {
            let extraction = read(dialect, text);
            assert_eq!(extraction.columns, Extent::Unknown, "{dialect:?} {text:?}");
            assert_eq!(extraction.risks, None, "{dialect:?} {text:?}");
            assert_eq!(extraction.risk(), Risk::Execution);
        }
    }
}

#[test]
fn what_comes_after_a_stray_end_is_not_lost() {
    for dialect in Dialect::ALL {
        let extraction = read(dialect, "SELECT 1 END; DROP TABLE users");
        assert!(
            extraction.risks.is_none_or(|risks| risks.contains(Risk::Delete)),
            "{dialect:?} {extraction:?}"
        );
    }
}

#[test]
fn letters_that_fold_to_ascii_are_not_other_columns() {
    for dialect in [Dialect::MySql, Dialect::Generic, Dialect::Snowflake] {
        let extraction = read(dialect, "SELECT \u{17f}\u{17f}n FROM users");
        assert_eq!(extraction.columns, Extent::Unknown, "{dialect:?}");
    }
}

#[test]
fn names_cannot_forge_other_names() {
    let columns = read(Dialect::Postgres, r#"SELECT "a.b", "*", "x[y" FROM "s.t""#);
    assert_eq!(
        columns.columns,
        Extent::Known(vec![
            "s%2Et.%2A".into(),
            "s%2Et.a%2Eb".into(),
            "s%2Et.x%5By".into()
        ])
    );
    assert_eq!(
        columns.resources,
        Extent::Known(vec!["table://public.s%2Et".into()])
    );
    let long = read(Dialect::Postgres, &format!("SELECT {} FROM t", "a".repeat(64)));
    assert_eq!(long.columns, Extent::Unknown, "the database would cut this name");
}

#[test]
fn a_text_beyond_the_bounds_is_not_read_and_takes_no_time() {
    on_a_small_stack(|| {
        let size = 1 << 20;
        let repeated = |unit: &str| unit.repeat(size / unit.len());
        let texts = [
            repeated("("),
            repeated("SELECT ("),
            format!("SELECT {}", repeated("1+")),
            format!("SELECT '{}", repeated("a")),
            repeated("/*"),
            repeated("$a$"),
            repeated("SELECT 1;"),
            format!("\u{0}{}", repeated("a")),
        ];
        let started = Instant::now();
        for text in &texts {
            for dialect in Dialect::ALL {
                assert_eq!(read(dialect, text).resources, Extent::Unknown);
            }
        }
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{:?}",
            started.elapsed()
        );
    });
}

#[test]
fn texts_as_large_as_is_read_stay_within_stack_and_time() {
    on_a_small_stack(|| {
        let chain = |unit: &str, links: usize| unit.repeat(links);
        let texts = [
            format!("SELECT 1 {}", chain("+1", 4000)),
            format!("SELECT a {} FROM t", chain("::int", 1900)),
            format!("SELECT a {} FROM t", chain("IS NULL ", 1900)),
            format!("SELECT 1 {}", chain(" UNION SELECT 1", 1300)),
            format!("SELECT 1 WHERE {}1", chain("NOT ", 3000)),
            format!("SELECT {}1{}", chain("(", 40), chain(")", 40)),
            format!("SELECT {}1{}", chain("(SELECT ", 40), chain(")", 40)),
            format!("SELECT {}1{}", chain("abs(", 40), chain(")", 40)),
            format!("SELECT * FROM {}t{}", chain("(", 40), chain(")", 40)),
            format!("SELECT {}1", chain("CASE WHEN ", 40)),
            format!("SELECT 1 IN ({}1{}", chain("1 IN (", 40), chain(")", 41)),
            format!("SELECT {}", chain("[", 60)),
            format!("SELECT {}", chain("- ", 3000)),
            format!("SELECT {}", chain("a,", 60000)),
            format!("INSERT INTO t VALUES (1){}", chain(",(1)", 24000)),
            format!("SELECT CAST(1 AS {}int{})", chain("ARRAY<", 60), chain(">", 60)),
            format!("SELECT {}'1'", chain("INTERVAL ", 3000)),
            format!("SELECT {}", chain("EXISTS (SELECT 1 WHERE ", 40)),
            format!("WITH {} SELECT 1", chain("a AS (WITH ", 40)),
            format!("SELECT * FROM t {}", chain("JOIN t ON 1=1 ", 900)),
            chain("EXPLAIN ", 3000),
            chain("BEGIN ", 3000),
        ];
        for text in &texts {
            assert!(text.len() <= crate::extract::MAX_SQL);
            for dialect in Dialect::ALL {
                let started = Instant::now();
                let extraction = read(dialect, text);
                assert_ne!(risks(&extraction), "");
                let took = started.elapsed();
                let start: String = text.chars().take(40).collect();
                assert!(took < Duration::from_secs(5), "{dialect:?} {start}: {took:?}");
            }
        }
    });
}

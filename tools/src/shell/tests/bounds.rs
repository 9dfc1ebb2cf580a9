use std::time::Duration;

use super::*;

/// Of the processor's time: on a busy machine the clock says nothing.
const LIMIT: Duration = Duration::from_secs(10);

/// How long this thread has run.
fn spent() -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran = schedule.split(' ').next().and_then(|ran| ran.parse().ok());
    Duration::from_nanos(ran.unwrap_or_default())
}

fn is_bounded(name: &str, text: &str) {
    let start = spent();
    let reading = read(text);
    let took = spent().saturating_sub(start);
    assert!(took < LIMIT, "{name} took {took:?}");
    assert!(reading.risks != RiskSet::of(Risk::Read), "{name} is a plain read");
}

#[test]
fn hostile_text_of_any_size_is_answered_in_bounded_time() {
    let openers = [
        "(",
        "((",
        "( (",
        "$(",
        "$((",
        "${a:-",
        "\"$(",
        "`",
        "{ ",
        "[[ (",
        "[[ a =~ (",
        "if ",
        "while ",
        "for x in ",
        "case x in a) ",
        "f() ",
        "function f() { ",
        "coproc ",
        "! ",
        "time ",
        "<<E ",
        "<(",
        "a=(",
        "$[",
        "\\`",
        "'",
        "\"",
        "$'",
        "\\",
        "<<E\n",
        "|",
        "&&",
        ";",
        "x=",
        "a[",
        "{a,",
        "~",
        "9999999999>",
        ">",
        "if (",
        "( if ",
        "while ( ",
        "case x in (a) ( ",
        "[ ",
        "&",
        "\n",
    ];
    for opener in openers {
        for length in [10, 100, 4096, MAX_TEXT - 10] {
            let text: String = opener
                .repeat(length / opener.len() + 1)
                .chars()
                .take(length)
                .collect();
            is_bounded(opener, &text);
            is_bounded(opener, &format!("{text}x;y"));
        }
        is_bounded(opener, &opener.repeat((1 << 20) / opener.len()));
    }
}

#[test]
fn balanced_nesting_is_answered_in_bounded_time() {
    let pairs = [
        ("( ", " )"),
        ("(", ";a)"),
        ("{ ", "; }"),
        ("$(", ")"),
        ("\"$(", ")\""),
        ("${a:-", "}"),
        ("if ", "; then a; fi"),
        ("if a; then ", "; fi"),
        ("while ", "; do a; done"),
        ("case x in a) ", " esac"),
        ("case x in a) ", ";; esac"),
        ("f() { ", "; }"),
        ("for x in a; do ", "; done"),
        ("sh -c '", "'"),
        ("eval ", ""),
        ("sudo --what ", ""),
        ("coproc ", ""),
        ("! ", ""),
        ("<(", ")"),
        ("[[ ( ", " ) ]]"),
        ("cat <<E\n$(", ")\nE\n"),
        ("`", "`"),
        ("xargs --what ", ""),
    ];
    for (open, close) in pairs {
        for depth in [2, 8, 12, 24, 39, 60, 2000] {
            is_bounded(
                open,
                &format!("{}ls; rm x{}", open.repeat(depth), close.repeat(depth)),
            );
            is_bounded(
                open,
                &format!("{}ls; rm x{}", open.repeat(depth), close.repeat(depth - 1)),
            );
        }
    }
}

#[test]
fn text_over_the_bound_is_execution() {
    let text = format!("ls {}", "x".repeat(MAX_TEXT));
    let reading = read(&text);
    assert_eq!(reading.risks, RiskSet::of(Risk::Execution));
    assert!(!reading.complete);
    assert_eq!(reading.paths, Extent::Unknown);
}

#[test]
fn many_words_and_members_are_bounded() {
    is_bounded("words", &format!("rm {}", "a ".repeat(MAX_TEXT / 2 - 10)));
    is_bounded(
        "paths",
        &format!("rm {}", (0..9000).map(|i| format!("f{i} ")).collect::<String>()),
    );
    is_bounded("commands", &"rm a;".repeat(MAX_TEXT / 5 - 1));
    is_bounded(
        "documents",
        &format!("cat {}\n{}", "<<E ".repeat(2000), "a\nE\n".repeat(2000)),
    );
    is_bounded(
        "one document",
        &format!("cat <<E\n{}E\nrm x", "line\n".repeat(10_000)),
    );
    is_bounded("backslashes", &format!("cat <<E\n{}", "\\\n".repeat(30_000)));
}

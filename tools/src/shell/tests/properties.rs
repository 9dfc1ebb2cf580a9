use proptest::prelude::*;

use super::*;

const COMMANDS: [&str; 14] = [
    "ls",
    "cat f",
    "rm x",
    "git status",
    "git push",
    "chmod +x f",
    "curl -d x https://a.b",
    "mail a@b.c",
    "make",
    "sort -o f g",
    "uniq a b",
    "ls | grep x",
    "sed -n 1p f",
    "find . -delete",
];

const SIMPLE_WRAPPERS: [&str; 17] = [
    "sudo ",
    "env ",
    "timeout 5 ",
    "nice ",
    "nice -n 3 ",
    "nohup ",
    "ionice -c 2 ",
    "stdbuf -oL ",
    "setsid ",
    "command ",
    "exec ",
    "busybox ",
    "doas ",
    "env A=b ",
    "sudo --what ",
    "strace ",
    "xargs ",
];

const FRAMES: [(&str, &str); 21] = [
    ("( ", " )"),
    ("{ ", "; }"),
    ("ls; ", ""),
    ("ls && ", ""),
    ("ls || ", ""),
    ("ls & ", ""),
    ("ls\n", ""),
    ("echo $( ", " )"),
    ("echo \"$( ", " )\""),
    ("echo `", "`"),
    ("if ", "; then ls; fi"),
    ("while ", "; do ls; done"),
    ("for i in a; do ", "; done"),
    ("case x in a) ", ";; esac"),
    ("f() { ", "; }; f"),
    ("cat <(", ")"),
    ("cat <<E\n$( ", " )\nE\n"),
    ("x=${y:-$( ", " )}"),
    ("x=($( ", " ))"),
    ("! ", ""),
    ("", " | cat"),
];

/// Printable text, shell's own characters, and what is hard to read.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(COMMANDS.to_vec()).prop_map(str::to_owned),
        prop::sample::select(vec![
            "$(",
            ")",
            "`",
            "\"",
            "'",
            "${",
            "}",
            "((",
            "))",
            "<<E\n",
            "\nE\n",
            "\\",
            "\n",
            ";",
            "&",
            "|",
            ">",
            "<",
            "#",
            "[[",
            "]]",
            "if ",
            "then ",
            "fi",
            "case x in ",
            "esac",
            "do ",
            "done",
            "{ ",
            "}",
            "$'",
            "a=(",
            "!",
            "~",
            "{a,b}",
            "*",
            " ",
            "\0",
            "\r",
            "\u{202e}",
            "\u{a0}",
            "\u{e000}",
            "2>&1",
            "-o",
            "--",
            "=",
            "x",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,8}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn gravest_is_kept(inner: &str, outer: &str) -> Result<(), TestCaseError> {
    let (inner, reading) = (read(inner), read(outer));
    prop_assert!(
        reading.risks.gravest() >= inner.risks.gravest(),
        "{outer:?}: {reading:?}"
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whatever_the_text_a_reading_is_never_empty_and_a_plain_read_is_complete(text in text()) {
        let reading = read(&text);
        prop_assert!(!reading.risks.is_empty());
        prop_assert!(reading.complete || reading.risks.contains(Risk::Execution), "{:?}", reading);
        if !reading.complete {
            prop_assert_eq!(&reading.hosts, &Extent::Unknown);
            prop_assert_eq!(&reading.paths, &Extent::Unknown);
        }
        prop_assert_eq!(&reading, &read(&text));
    }

    #[test]
    fn wrapping_never_makes_the_risk_milder(
        command in prop::sample::select(COMMANDS.to_vec()),
        wrappers in prop::collection::vec(prop::sample::select(SIMPLE_WRAPPERS.to_vec()), 0..4),
        frames in prop::collection::vec(prop::sample::select(FRAMES.to_vec()), 0..3),
    ) {
        let mut outer = command.to_owned();
        for wrapper in wrappers {
            let wrapped = format!("{wrapper}{outer}");
            gravest_is_kept(&outer, &wrapped)?;
            outer = wrapped;
        }
        for (before, after) in frames {
            // Back-quotes in back-quotes, and an end word within a here-document of the same end word, are another text.
            let is_another = |sign: &str| before.contains(sign) && outer.contains(sign);
            if is_another("`") || is_another("<<") {
                continue;
            }
            let framed = format!("{before}{outer}{after}");
            gravest_is_kept(&outer, &framed)?;
            outer = framed;
        }
        if !outer.contains('\'') {
            gravest_is_kept(&outer, &format!("sh -c '{outer}'"))?;
            gravest_is_kept(&outer, &format!("eval '{outer}'"))?;
        }
    }

    #[test]
    fn what_is_appended_is_never_lost(text in text()) {
        let both = read(&format!("{text}\nrm x"));
        let alone = read(&text);
        // A backslash at the end joins the lines.
        prop_assume!(!text.ends_with('\\'));
        // Text that does not end may swallow what follows: then it is not complete.
        prop_assert!(both.risks.contains(Risk::Delete) || !both.complete, "{:?}", both);
        prop_assert!(both.risks != RiskSet::of(Risk::Read), "{:?}", both);
        if alone.complete {
            let wrong = read(&format!("{text}\n; rm x"));
            prop_assert!(wrong.risks.gravest() >= Risk::Execution);
        }
    }

    #[test]
    fn every_command_with_rm_after_it_deletes(
        command in prop::sample::select(COMMANDS.to_vec()),
        frame in prop::sample::select(FRAMES.to_vec()),
        joint in prop::sample::select(vec!["; ", " && ", " || ", "\n", " & ", " | "]),
    ) {
        let text = format!("{}{command}{}", frame.0, frame.1);
        let joint = if text.ends_with('\n') { "" } else { joint };
        let whole = format!("{text}{joint}rm x");
        let reading = read(&whole);
        prop_assert!(reading.risks.contains(Risk::Delete), "{:?}: {:?}", whole, reading);
    }
}

use super::*;
use crate::testing::{catalogue, policies, programs};

fn found(text: &str) -> Vec<Finding> {
    lint(&policies(text), Some(&catalogue()))
}

fn of_rules(rules: &str) -> Vec<Finding> {
    found(&format!("name: p\nagent: a\nrules: [{rules}]"))
}

#[track_caller]
fn only(rules: &str, lint: Lint) -> Finding {
    let mut findings = of_rules(rules);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let finding = findings.remove(0);
    assert_eq!(finding.lint, lint, "{finding:?}");
    finding
}

#[test]
fn a_sound_policy_has_no_findings() {
    let sound = "{tools: [mail.list_mails], action: allow}, {tools: [mail.send_mail], action: human_approval}, \
                 {tools: ['mail.resource:*'], action: allow}, {tools: ['*'], action: deny}";
    assert_eq!(of_rules(sound), []);
}

#[test]
fn rules_behind_one_that_decides_all_their_calls_are_dead() {
    for (rules, is_dead) in [
        ("{action: deny}, {tools: [mail.*], action: human_approval}", true),
        (
            "{tools: [mail.*], action: deny}, {tools: [mail.send_mail], action: human_approval}",
            true,
        ),
        (
            "{tools: [mail.*], except: [mail.s*], action: human_approval}, {tools: [mail.send_mail], action: deny}",
            false,
        ),
        (
            "{tools: ['mail.send*'], action: human_approval}, {tools: [mail.*], action: deny}",
            false,
        ),
        ("{tools: [mail.*], except: ['*'], action: deny}", true),
        (
            "{risk: [DELETE], action: deny}, {tools: [mail.*], action: human_approval}",
            false,
        ),
    ] {
        let findings = of_rules(rules);
        let dead = findings.iter().any(|one| one.lint == Lint::NeverMatches);
        assert_eq!(dead, is_dead, "{rules}: {findings:?}");
    }
    let two = "name: a\nagent: x\nrules: [{action: deny}]\n---\nname: b\nagent: x\nrules: [{tools: [mail.*], action: deny}]";
    let findings = found(two);
    assert_eq!(
        (findings[0].policy.as_str(), findings[0].lint),
        ("b", Lint::NeverMatches)
    );
}

#[test]
fn an_allow_that_contradicts_itself_is_dead() {
    let test = |operator: &str, value: &str| format!("{{field: n, operator: '{operator}', value: {value}}}");
    for (one, other, is_dead) in [
        (test("<", "5"), test(">", "10"), true),
        (test("<", "5"), test(">", "1"), false),
        (test("==", "a"), test("==", "b"), true),
        (test("in", "[a, b]"), test("==", "b"), false),
        (test("contains", "x"), test("not_contains", "x"), true),
        (test("<=", "5"), test(">=", "5"), false),
    ] {
        let rules =
            format!("{{tools: [mail.send_mail], action: allow, condition: {{all: [{one}, {other}]}}}}");
        let dead = of_rules(&rules)
            .iter()
            .any(|found| found.lint == Lint::NeverMatches);
        assert_eq!(dead, is_dead, "{rules}");
        let denies = rules.replace("allow", "deny");
        assert!(
            !of_rules(&denies)
                .iter()
                .any(|found| found.lint == Lint::NeverMatches),
            "an undecided deny holds"
        );
    }
    let finding = only(
        "{tools: [mail.*], risk: [FINANCIAL], access: read, action: allow}",
        Lint::NeverMatches,
    );
    assert_eq!(finding.tools, ["mail.list_mails", "mail.send_mail"]);
}

#[test]
fn a_pattern_that_covers_nothing_names_the_nearest() {
    let finding = only(
        "{tools: [mail.send_mial], action: human_approval}",
        Lint::NoSuchTool,
    );
    assert_eq!(finding.hint.as_deref(), Some("did you mean \"mail.send_mail\"?"));
    let finding = only("{tools: ['mial.*'], action: human_approval}", Lint::NoSuchTool);
    assert_eq!(finding.hint.as_deref(), Some("did you mean \"mail.*\"?"));
    let finding = only("{tools: [send_mail], action: human_approval}", Lint::NoSuchTool);
    assert_eq!(finding.hint.as_deref(), Some("did you mean \"mail.send_mail\"?"));
}

fn of_programs(rules: &str) -> Vec<Finding> {
    let text = format!("name: p\nagent: a\nrules: [{rules}]");
    lint(&policies(&text), Some(&programs()))
}

#[test]
fn a_pattern_of_more_words_than_are_decided_is_told() {
    for dead in [
        "gh.q.r.s.t.u",
        "gh.q.r.s.t.u*",
        "gh.q.r.s.t.*",
        "gh.*.*.*.*.*",
        "gh.pr.list.q.r.s.t.u",
    ] {
        let findings = of_programs(&format!("{{tools: ['{dead}'], action: deny}}"));
        assert_eq!(findings.len(), 1, "{dead}: {findings:#?}");
        let found = &findings[0];
        assert_eq!((found.lint, found.rule), (Lint::NoSuchTool, Some(0)), "{found:?}");
        assert!(
            found.message.contains("covers no call") && found.message.contains("4 words at most"),
            "{found}"
        );
    }
    for live in [
        "gh.*",
        "gh.q",
        "gh.q.r.s.t",
        "gh.q.r.s.*",
        "gh.q.r.s.t*",
        "gh.*.*.*.*",
        "gh.resource:a.b.c.d.e.f",
        "*",
        "*.*.*.*.*.*.*",
    ] {
        let rules = format!("{{tools: ['{live}'], action: deny}}");
        let findings = of_programs(&rules);
        assert!(
            findings.iter().all(|one| !one.message.contains("words at most")),
            "{live}: {findings:#?}"
        );
    }
    // Tools of others may have as many dots as they like, and a program without commands has none.
    for other in ["mail.q.r.s.t.u", "jq.q.r.s.t.u"] {
        let findings = of_programs(&format!("{{tools: [{other}], action: deny}}"));
        assert!(
            findings.iter().all(|one| !one.message.contains("words at most")),
            "{other}: {findings:#?}"
        );
    }
}

#[test]
fn a_pattern_of_too_many_words_says_what_to_write() {
    let hint = |rules: &str| {
        let findings = of_programs(rules);
        let about = findings
            .iter()
            .find(|one| one.message.contains("names 5 words of a command of gh"));
        about.and_then(|one| one.hint.clone()).unwrap()
    };
    let shorter = "name at most 4 words: \"gh.q.r.s.t\" holds for everything beneath it too";
    assert_eq!(hint("{tools: [gh.q.r.s.t.u, gh.pr.list], action: deny}"), shorter);
    assert_eq!(hint("{tools: [gh.q.r.s.t.u], action: human_approval}"), shorter);
    assert_eq!(
        hint("{tools: ['gh.*'], except: [gh.q.r.s.t.u], action: allow}"),
        shorter
    );
    // A shorter allow of what is not declared, or exception to a deny, would allow nothing.
    let declare = "declare the command";
    assert!(hint("{tools: [gh.q.r.s.t.u], action: allow}").starts_with(declare));
    assert!(hint("{tools: ['gh.*'], except: [gh.q.r.s.t.u], action: deny}").starts_with(declare));
}

#[test]
fn tools_of_an_agents_host_are_in_no_catalogue() {
    assert_eq!(of_rules("{tools: [Bash], action: human_approval}"), []);
}

/// The last row of the decision table.
#[test]
fn a_deny_says_how_many_tools_without_the_field_it_hits() {
    let finding = only(
        "{tools: ['*'], action: deny, condition: {field: command, operator: contains, value: mkfs}}",
        Lint::MissingField,
    );
    assert!(
        finding.message.contains("4 tools without `command`"),
        "{}",
        finding.message
    );
    assert!(
        finding
            .hint
            .as_deref()
            .unwrap()
            .contains("{all: [{field: \"command\", operator: exists}, …]}")
    );
    assert_eq!(
        finding.tools,
        [
            "db.query",
            "files.delete_file",
            "mail.list_mails",
            "mail.send_mail"
        ]
    );
    let guarded = "{tools: ['*'], action: deny, condition: {all: [{field: command, operator: exists}, \
                   {field: command, operator: contains, value: mkfs}]}}";
    assert_eq!(of_rules(guarded), []);
}

#[test]
fn an_allow_by_pattern_names_what_is_no_plain_read() {
    let finding = only("{tools: ['mail.*'], action: allow}", Lint::AllowsMore);
    assert_eq!(finding.tools, ["mail.send_mail"]);
    let finding = only("{tools: [box.run], action: allow}", Lint::AllowsMore);
    assert!(finding.message.contains("whatever their argument says"));
}

#[test]
fn resources_without_an_extractor_are_told() {
    let finding = only(
        "{tools: [db.query], columns: ['users.*'], action: deny}",
        Lint::NoExtractor,
    );
    assert!(
        finding.message.contains("it holds for every call"),
        "{}",
        finding.message
    );
}

#[test]
fn agents_that_only_shadow_policies_match_are_told() {
    let shadow = "name: s\nagent: ['a*', b]\nmode: shadow\nrules: [{tools: [box.run], action: deny}]\n---\n\
                  name: e\nagent: b\nrules: [{action: deny}]";
    let findings = found(shadow);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].lint, Lint::ShadowOnly);
    assert!(findings[0].message.contains("a*") && !findings[0].message.contains("b,"));
}

#[test]
fn characters_that_are_not_what_they_look_like_are_told() {
    for text in ["mаil.*", "mail\u{200b}.*", "mail.\u{202e}x", "ｍail.*"] {
        let findings = of_rules(&format!("{{tools: [\"{text}\"], action: deny}}"));
        assert!(
            findings.iter().any(|one| one.lint == Lint::Confusable),
            "{text:?} {findings:?}"
        );
    }
    for text in ["почта.*", "größe.*", "メール.*", "mail.*"] {
        assert_eq!(strange_characters(text), [], "{text}");
    }
    assert_eq!(plain_form("mаil\u{200b}"), "mail");
}

use proptest::prelude::*;

use super::*;

fn glob(text: &str) -> Glob {
    text.parse().unwrap()
}

fn tool(text: &str) -> ToolGlob {
    text.parse().unwrap()
}

/// Straight from the definition, exponential and obvious.
fn obvious(pattern: &[char], text: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some(('*', rest)), None) => obvious(rest, text),
        (Some(('*', rest)), Some((_, tail))) => obvious(rest, text) || obvious(pattern, tail),
        (Some(_), None) => false,
        (Some(('?', rest)), Some((_, tail))) => obvious(rest, tail),
        (Some((one, rest)), Some((other, tail))) => one == other && obvious(rest, tail),
    }
}

#[test]
fn every_shape_matches_what_it_says() {
    for (pattern, yes, no) in [
        ("*", "", ""),
        ("a.b", "a.b", "a.bc"),
        ("a.*", "a.b.c", "b.a."),
        ("*.read", "x.y.read", "read"),
        ("*mid*", "amidb", "mi"),
        ("a?c", "aéc", "ac"),
        ("*.read_*", "fs.read_file", "fs.write_file"),
        ("**a**", "bab", "bb"),
    ] {
        assert!(glob(pattern).matches(yes), "{pattern} {yes}");
        assert!(no.is_empty() || !glob(pattern).matches(no), "{pattern} {no}");
    }
}

#[test]
fn richer_patterns_are_refused() {
    for text in ["a[bc]", "{a,b}", "a\\*", ""] {
        assert!(text.parse::<Glob>().is_err(), "{text}");
    }
}

#[test]
fn an_exact_name_is_most_specific_then_literal_length_then_fewer_wildcards() {
    let order = ["ab", "support-*", "supp*rt", "su*p*", "su*", "*", "?*"];
    for pair in order.windows(2) {
        assert!(
            glob(pair[0]).specificity() > glob(pair[1]).specificity(),
            "{pair:?}"
        );
    }
}

#[test]
fn only_the_star_and_patterns_that_name_a_kind_match_resources_prompts_and_methods() {
    let resource = "fs.resource:file:///etc/passwd";
    assert!(tool("*").matches(resource));
    assert!(!tool("fs.*").matches(resource));
    assert!(!tool("**").matches(resource));
    assert!(tool("fs.resource:*").matches(resource));
    assert!(tool("*.resource:file:*").matches(resource));
    assert!(!tool("*.prompt:*").matches(resource));
    assert!(tool("fs.*").matches("fs.read"));
    assert!(!tool("fs.*").matches("fs.method:sampling/createMessage"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn matching_agrees_with_the_definition(pattern in "[ab*?]{1,7}", text in "[ab]{0,8}") {
        let expected = obvious(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>());
        prop_assert_eq!(glob(&pattern).matches(&text), expected);
    }

    #[test]
    fn patterns_that_share_a_text_intersect(left in "[ab*?]{1,5}", right in "[ab*?]{1,5}") {
        let (one, other) = (glob(&left), glob(&right));
        let shared = texts(6).any(|text| one.matches(&text) && other.matches(&text));
        prop_assert!(!shared || one.intersects(&other));
        // Texts of ten letters are enough for two patterns of five units.
        let shared_long = texts(10).any(|text| one.matches(&text) && other.matches(&text));
        prop_assert_eq!(one.intersects(&other), shared_long);
    }
}

fn texts(longest: u32) -> impl Iterator<Item = String> {
    (0..=longest).flat_map(|length| {
        (0..1_u32 << length).map(move |bits| {
            (0..length)
                .map(|place| if bits >> place & 1 == 0 { 'a' } else { 'b' })
                .collect()
        })
    })
}

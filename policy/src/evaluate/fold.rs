//! Are two keys equal when letter case is ignored?

/// Whether two texts are equal under Unicode case folding.
///
/// The standard library has no folding table; lower, upper, lower of each character folds at least as much
/// (`ſ` is `s`, the Kelvin sign is `k`, `ẞ` is `ss`, and also the dotless `ı` is `i`). Folding too much only makes
/// a test undecided.
pub fn equal_when_folded(one: &str, other: &str) -> bool {
    // Most keys differ in their first letter. Only between two ASCII letters does that settle it.
    if let (Some(first), Some(second)) = (one.as_bytes().first(), other.as_bytes().first())
        && first.is_ascii()
        && second.is_ascii()
        && !first.eq_ignore_ascii_case(second)
    {
        return false;
    }
    if one.is_ascii() && other.is_ascii() {
        return one.eq_ignore_ascii_case(other);
    }
    fold(one).eq(fold(other))
}

fn fold(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars()
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_some_servers_take_for_one_are_equal() {
        for (one, other) in [
            ("Amount", "aMOUNT"),
            ("passwort_ſ", "PASSWORT_S"),
            ("\u{212a}ey", "key"),
            ("straße", "STRASSE"),
            ("stra\u{1e9e}e", "strasse"),
            ("ΣΑΣ", "σας"),
            ("ﬁle", "FILE"),
            ("\u{fb05}", "ST"),
            ("µ", "μ"),
        ] {
            assert!(equal_when_folded(one, other), "{one} {other}");
        }
        assert!(equal_when_folded("", "") && !equal_when_folded("", "a"));
        assert!(!equal_when_folded("amount", "amounts"));
        assert!(!equal_when_folded("amount", "ámount"));
    }
}

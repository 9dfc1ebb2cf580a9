//! Whether what a sidecar asks for or sends lies inside what it was given.

use policy::glob::Glob;
use tonic::Status;

use super::refusal::Refused;
use crate::auth::Claims;

/// Whether every text that `inner` matches is matched by `outer`.
///
/// Sound, and complete for the patterns that people write; an exotic pattern may be refused although it lies inside.
pub(crate) fn covers(outer: &str, inner: &str) -> bool {
    let outer: Vec<char> = outer.chars().collect();
    let inner: Vec<char> = inner.chars().collect();
    // reach[i]: the outer pattern read so far can have consumed the first i signs of the inner one.
    let mut reach = vec![false; inner.len() + 1];
    if let Some(first) = reach.first_mut() {
        *first = true;
    }
    for sign in outer {
        let mut next = vec![false; inner.len() + 1];
        let mut any_before = false;
        for (at, slot) in next.iter_mut().enumerate() {
            any_before |= reach.get(at).copied().unwrap_or(false);
            let before = at.checked_sub(1);
            let came = before.and_then(|at| reach.get(at)).copied().unwrap_or(false);
            let consumed = before.and_then(|at| inner.get(at)).copied();
            *slot = match sign {
                '*' => any_before,
                '?' => came && consumed.is_some_and(|inner| inner != '*'),
                literal => came && consumed == Some(literal),
            };
        }
        reach = next;
    }
    reach.last().copied().unwrap_or(false)
}

/// Whether each of `asked` lies inside one of `given`.
pub(crate) fn all_covered(given: &[String], asked: &[String]) -> bool {
    asked
        .iter()
        .all(|asked| given.iter().any(|given| covers(given, asked)))
}

/// Globs that are none, by name.
pub(crate) fn check_globs(what: &str, globs: &[String]) -> Result<(), Status> {
    for glob in globs {
        glob.parse::<Glob>()
            .map_err(|error| Status::invalid_argument(format!("{what} `{glob}` is no pattern: {error}")))?;
    }
    Ok(())
}

fn matches_any(globs: &[String], text: &str) -> bool {
    globs
        .iter()
        .filter_map(|glob| glob.parse::<Glob>().ok())
        .any(|glob| glob.matches(text))
}

/// Refuses an agent that the sidecar may not speak for.
pub(crate) fn check_agent(claims: &Claims, agent: &str) -> Result<(), Status> {
    if matches_any(&claims.agents, agent) {
        return Ok(());
    }
    Err(Refused::OutOfScope.status(format!(
        "sidecar {} may not speak for agent `{agent}`; its join token names its agents",
        claims.sidecar
    )))
}

/// Refuses an upstream that the sidecar may not publish.
pub(crate) fn check_upstream(claims: &Claims, upstream: &str) -> Result<(), Status> {
    if matches_any(&claims.upstreams, upstream) {
        return Ok(());
    }
    Err(Refused::OutOfScope.status(format!(
        "sidecar {} may not publish upstream `{upstream}`; its join token names its upstreams",
        claims.sidecar
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_what_lies_inside_it_and_nothing_else() {
        for (outer, inner) in [
            ("*", "*"),
            ("*", ""),
            ("a*", "abc"),
            ("a*", "a?*"),
            ("a*c", "a*bc"),
            ("?", "x"),
            ("*-*", "a-*"),
            ("a", "a"),
        ] {
            assert!(covers(outer, inner), "{outer} covers {inner}");
        }
        for (outer, inner) in [
            ("a*", "*"),
            ("a", "a*"),
            ("?", "*"),
            ("a*c", "a*"),
            ("support-*", "support*"),
            ("", "a"),
            ("a", ""),
        ] {
            assert!(!covers(outer, inner), "{outer} does not cover {inner}");
        }
    }

    #[test]
    fn each_asked_pattern_needs_one_given_pattern() {
        let given = ["a-*".to_owned(), "b".to_owned()];
        assert!(all_covered(&given, &["a-1".to_owned(), "b".to_owned()]));
        assert!(!all_covered(&given, &["a-1".to_owned(), "c".to_owned()]));
        assert!(all_covered(&given, &[]));
    }
}

//! Selectors on a call's classification, caller and targets.

use std::borrow::Cow;

use tools::classify::{Access, Risk, RiskSet};
use tools::targets::Extent;

use super::truth::Truth;
use crate::decide::Call;
use crate::document::{Action, Selector, TargetKind};
use crate::glob::Glob;

/// Whether a selector of a rule with this action holds for a call.
pub(crate) fn selector_truth(selector: &Selector, action: Action, call: &Call<'_>) -> Truth {
    let classification = call.classification;
    match selector {
        Selector::Risk(listed) => risk_truth(*listed, classification.risks, action),
        Selector::Access(listed) => match classification.access {
            access if listed.contains(&access) => Truth::True,
            Access::Unknown => Truth::Undecided,
            Access::Read | Access::Write => Truth::False,
        },
        Selector::Family(listed) => listed.contains(&classification.family).into(),
        Selector::SideEffect(listed) => {
            if listed.contains(&classification.side_effect.kind) {
                Truth::True
            } else if classification.side_effect.is_known() {
                Truth::False
            } else {
                Truth::Undecided
            }
        }
        Selector::Capability(globs) => match &classification.capability {
            Some(capability) => matches_any(globs, capability).into(),
            None => Truth::Undecided,
        },
        Selector::Tags(listed) => classification
            .tags
            .iter()
            .any(|tag| listed.iter().any(|entry| **entry == **tag))
            .into(),
        Selector::User(globs) => call
            .user
            .is_some_and(|user| matches_any(globs, user.as_str()))
            .into(),
        Selector::Targets(kind, globs) => extent_truth(*kind, globs, kind.of(call.targets), action),
    }
}

fn matches_any(globs: &[Glob], text: &str) -> bool {
    globs.iter().any(|glob| glob.matches(text))
}

/// Sets: an `allow` rule needs every member, the others any.
fn over_set(members: impl Iterator<Item = Truth>, action: Action) -> Truth {
    match action {
        Action::Allow => {
            let mut members = members.peekable();
            if members.peek().is_none() {
                Truth::False
            } else {
                Truth::all(members)
            }
        }
        Action::HumanApproval | Action::Deny => Truth::any(members),
    }
}

fn risk_truth(listed: RiskSet, risks: RiskSet, action: Action) -> Truth {
    over_set(
        risks.iter().map(|risk| {
            if listed.contains(risk) {
                Truth::True
            } else if risk == Risk::Unknown {
                Truth::Undecided
            } else {
                Truth::False
            }
        }),
        action,
    )
}

fn extent_truth(kind: TargetKind, globs: &[Glob], extent: &Extent, action: Action) -> Truth {
    match extent {
        Extent::Unknown => Truth::Undecided,
        Extent::Known(members) => over_set(
            members
                .iter()
                .map(|member| member_matches(kind, globs, member, action).into()),
            action,
        ),
    }
}

fn member_matches(kind: TargetKind, globs: &[Glob], member: &str, action: Action) -> bool {
    match kind {
        TargetKind::Paths => matches_any(globs, &normalise_path(member)),
        TargetKind::Hosts => matches_any(globs, member.to_lowercase().trim_end_matches('.')),
        TargetKind::Columns if action != Action::Allow && member.contains('*') => {
            // `users.*` stands for all columns: it reaches whatever the pattern names.
            member
                .parse()
                .is_ok_and(|all: Glob| globs.iter().any(|glob| glob.intersects(&all)))
        }
        TargetKind::Resources | TargetKind::Columns | TargetKind::Recipients => matches_any(globs, member),
    }
}

/// Resolves `.`, `..` and `//` in a path, without looking at any file system.
fn normalise_path(path: &str) -> Cow<'_, str> {
    if !path.contains("//") && !path.split('/').any(|part| part == "." || part == "..") {
        return Cow::Borrowed(path);
    }
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            other => parts.push(other),
        }
    }
    let names_a_folder = matches!(path.rsplit('/').next(), Some("" | "." | ".."));
    let mut normal = String::with_capacity(path.len());
    if absolute {
        normal.push('/');
    }
    normal.push_str(&parts.join("/"));
    if names_a_folder && !parts.is_empty() {
        normal.push('/');
    }
    Cow::Owned(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_so_that_prefix_tricks_do_not_pass() {
        for (path, normal) in [
            ("/data/a", "/data/a"),
            ("/data/../etc/passwd", "/etc/passwd"),
            ("/data//./x", "/data/x"),
            ("/../..", "/"),
            ("a/../../b", "../b"),
            ("/data/", "/data/"),
            ("/data/x/..", "/data/"),
            ("..", "../"),
        ] {
            assert_eq!(normalise_path(path), normal, "{path}");
        }
    }
}

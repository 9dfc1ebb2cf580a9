//! Unified diffs and git diffs.

use super::name::{quoted, side, without_prefix};
use super::{Found, lines};

/// One file's part of a diff.
#[derive(Default)]
struct Part {
    /// The two names of `diff --git`, when they can be told apart.
    git: Option<(String, String)>,
    /// The rest of the `diff --git` line.
    git_line: Option<String>,
    is_deleted: bool,
    has_names: bool,
    has_hunk: bool,
}

/// Reads a diff.
pub(super) fn read(text: &str, found: &mut Found) -> Result<(), &'static str> {
    let mut all = lines(text).peekable();
    let mut part: Option<Part> = None;
    let mut problem = None;
    let mut is_mail_body = true;
    while let Some(line) = all.next() {
        let outcome = if let Some(rest) = line.strip_prefix("diff --git ") {
            let closed = close(part.take(), found);
            part = Some(git_part(rest, found));
            is_mail_body = false;
            closed
        } else if let Some(old) = line.strip_prefix("--- ") {
            match all.peek().and_then(|next| next.strip_prefix("+++ ")) {
                Some(new) => {
                    all.next();
                    is_mail_body = false;
                    // A second pair of names begins another file.
                    let closed = match part.as_ref() {
                        Some(before) if before.has_hunk => close(part.take(), found),
                        _ => Ok(()),
                    };
                    let sides = both_sides(old, new, part.get_or_insert_with(Part::default), found);
                    closed.and(sides)
                }
                None if is_mail_body => Ok(()),
                None => Err("a line that begins with --- and is no header"),
            }
        } else if let Some(header) = line.strip_prefix("@@ ") {
            match part.as_mut() {
                Some(part) if part.has_names => {
                    part.has_hunk = true;
                    hunk(header, &mut all)
                }
                _ => Err("a hunk of no file"),
            }
        } else if line.starts_with("GIT binary patch") {
            binary(&mut all);
            match part.as_ref() {
                Some(part) if part.git_line.is_some() => Ok(()),
                _ => Err("a binary patch of no file"),
            }
        } else {
            other(line, part.as_mut(), found, is_mail_body)
        };
        if let Err(error) = outcome {
            problem.get_or_insert(error);
        }
    }
    let closed = close(part, found);
    problem.map_or(closed, Err)
}

fn git_part(rest: &str, found: &mut Found) -> Part {
    let git = git_names(rest);
    if let Some((old, new)) = &git {
        found.path(without_prefix(old), "changes");
        found.path(without_prefix(new), "changes");
    }
    Part {
        git,
        git_line: Some(rest.to_owned()),
        ..Part::default()
    }
}

/// The names of a `diff --git` line: quoted ones, or two equal ones after their prefixes.
fn git_names(rest: &str) -> Option<(String, String)> {
    if rest.starts_with('"') {
        let (old, rest) = quoted(rest).ok()?;
        let rest = rest.strip_prefix(' ')?;
        let new = match rest.starts_with('"') {
            true => quoted(rest).ok().filter(|(_, end)| end.is_empty())?.0,
            false => rest.to_owned(),
        };
        return Some((old, new));
    }
    if rest.ends_with('"') {
        let (old, start) = rest.split_once(" \"")?;
        let quote = rest.get(rest.len() - start.len() - 1..)?;
        return Some((
            old.to_owned(),
            quoted(quote).ok().filter(|(_, end)| end.is_empty())?.0,
        ));
    }
    // With blanks inside, only equal names can be told apart; a rename says its names in lines of their own.
    let mut blanks = rest.match_indices(' ').map(|(at, _)| at);
    if let (Some(only), None) = (blanks.next(), blanks.next()) {
        let (old, new) = rest.split_at(only);
        return Some((old.to_owned(), new.trim_start().to_owned()));
    }
    let middle = rest.len() / 2;
    let (old, new) = (rest.get(..middle)?, rest.get(middle + 1..)?);
    (without_prefix(old) == without_prefix(new)).then(|| (old.to_owned(), new.to_owned()))
}

fn close(part: Option<Part>, found: &mut Found) -> Result<(), &'static str> {
    let Some(part) = part else { return Ok(()) };
    if part.is_deleted {
        found.deletes = true;
    }
    match (
        part.git.is_some() || part.has_names,
        part.git_line.is_some() || part.has_hunk,
    ) {
        (true, true) => Ok(()),
        (false, _) => Err("the names of a git header cannot be told apart"),
        (_, false) => Err("a file without a hunk"),
    }
}

fn both_sides(old: &str, new: &str, part: &mut Part, found: &mut Found) -> Result<(), &'static str> {
    let (old, new) = (side(old), side(new));
    part.has_names = true;
    // A name is wanted whatever the other one is.
    for (name, other) in [(&old, &new), (&new, &old)] {
        if let Ok(Some(name)) = name {
            found.path(without_prefix(name), "changes");
            // A tool may strip no prefix.
            let has_prefix = without_prefix(name) != name;
            let is_git =
                part.git_line.is_some() || matches!(other, Ok(Some(other)) if without_prefix(other) != other);
            if has_prefix && !is_git && !matches!(other, Ok(None)) {
                found.path(name, "changes");
            }
        }
    }
    let (old, new) = (old?, new?);
    if let (Some((git_old, git_new)), true) = (&part.git, part.git_line.is_some()) {
        let agrees = |name: &Option<String>, git: &str| {
            name.as_ref()
                .is_none_or(|name| without_prefix(name) == without_prefix(git))
        };
        if !agrees(&old, git_old) || !agrees(&new, git_new) {
            return Err("headers of one file that name different files");
        }
    }
    match (old, new) {
        (None, None) => Err("a file that is nowhere"),
        (Some(_), None) => {
            found.deletes = true;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The numbers of `@@ -a,b +c,d @@`, then exactly so many lines.
fn hunk<'t>(
    header: &str,
    all: &mut std::iter::Peekable<impl Iterator<Item = &'t str> + Clone>,
) -> Result<(), &'static str> {
    let (old, new) = counts(header).ok_or("a hunk's header that cannot be read")?;
    let (mut old, mut new) = (old, new);
    while old > 0 || new > 0 {
        let Some(line) = all.peek() else {
            return Err("a hunk with fewer lines than it says");
        };
        match line.chars().next() {
            Some(' ') | None if old > 0 && new > 0 => {
                // The text's last line end is no line of content.
                if line.is_empty() && all.clone().nth(1).is_none() {
                    return Err("a hunk with fewer lines than it says");
                }
                old -= 1;
                new -= 1;
            }
            Some('-') if old > 0 => old -= 1,
            Some('+') if new > 0 => new -= 1,
            Some('\\') => (),
            _ => return Err("a hunk with other lines than it says"),
        }
        all.next();
    }
    Ok(())
}

fn counts(header: &str) -> Option<(usize, usize)> {
    let (ranges, _) = header.split_once(" @@")?;
    let (old, new) = ranges.split_once(' ')?;
    let count = |range: &str| match range.split_once(',') {
        Some((start, count)) => start.parse::<usize>().ok().and(count.parse::<usize>().ok()),
        None => range.parse::<usize>().ok().map(|_| 1),
    };
    Some((count(old.strip_prefix('-')?)?, count(new.strip_prefix('+')?)?))
}

fn binary<'t>(all: &mut std::iter::Peekable<impl Iterator<Item = &'t str>>) {
    let is_data = |line: &&str| {
        line.is_empty()
            || line.starts_with("literal ")
            || line.starts_with("delta ")
            || (line.len() <= 66 && !line.contains([' ', '\t', '/']))
    };
    while all.next_if(is_data).is_some() {}
}

/// Lines between headers.
fn other(
    line: &str,
    part: Option<&mut Part>,
    found: &mut Found,
    is_mail_body: bool,
) -> Result<(), &'static str> {
    let name = |rest: &str| -> Result<String, &'static str> {
        match rest.starts_with('"') {
            true => quoted(rest).map(|(name, _)| name),
            false => Ok(rest.to_owned()),
        }
    };
    let Some(part) = part else {
        return match is_mail_body && !is_suspicious(line) {
            true => Ok(()),
            false => Err("a header of no file"),
        };
    };
    if let Some(rest) = line.strip_prefix("rename from ") {
        part.has_names = true;
        found.path(&name(rest)?, "moves");
    } else if let Some(rest) = ["rename to ", "copy from ", "copy to "]
        .iter()
        .find_map(|start| line.strip_prefix(start))
    {
        part.has_names = true;
        found.path(&name(rest)?, "changes");
    } else if line.starts_with("deleted file mode ") {
        part.is_deleted = true;
        found.deletes = true;
    } else if line.starts_with("new mode ") || line.starts_with("old mode ") {
        found.is_mode_changed = true;
    } else if line.starts_with("new file mode ") {
        found.is_mode_changed |= !line.ends_with("644");
    } else if let Some(rest) = line.strip_prefix("Binary files ") {
        if rest.ends_with(" and /dev/null differ") {
            found.deletes = true;
        }
    } else if is_suspicious(line) {
        return Err("a header that is not known");
    } else if !is_between(line) {
        return Err("text that belongs to no hunk");
    }
    Ok(())
}

fn is_between(line: &str) -> bool {
    let starts = [
        "index ",
        "similarity index ",
        "dissimilarity index ",
        "\\ No newline",
        "Index: ",
        "====",
        "-- ",
        "Only in ",
    ];
    line.is_empty()
        || line == "--"
        || starts.iter().any(|start| line.starts_with(start))
        || line.starts_with(|c: char| c.is_ascii_digit())
}

/// What a program that applies patches could take for a header.
fn is_suspicious(line: &str) -> bool {
    let bare = line.trim_start();
    let starts = [
        "*** ",
        "--- ",
        "+++ ",
        "@@",
        "diff ",
        "rename ",
        "copy ",
        "deleted file",
        "new file",
        "Index:",
        "Prereq:",
        "***************",
    ];
    starts.iter().any(|start| bare.starts_with(start)) && !line.starts_with("Index: ")
}

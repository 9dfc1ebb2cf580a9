//! `git`: its own options, its subcommands, and the forms of those that both read and write.

use super::reader::{Reader, shown};
use super::table::{self, How};
use super::word::Word;
use super::{net, wrap};
use crate::classify::Risk;

/// Reads the arguments of `git`.
pub(super) fn read(reader: &mut Reader, arguments: &[Word]) {
    let mut rest = arguments;
    loop {
        let Some((word, after)) = rest.split_first() else {
            return reader.add(Risk::Read, || "git alone".to_owned());
        };
        let Some(text) = word.certain() else {
            return reader.uncertain(|| "what git does is not certain".to_owned());
        };
        if !text.starts_with('-') {
            return subcommand(reader, text, after);
        }
        rest = after;
        match text {
            "--no-pager"
            | "-P"
            | "--bare"
            | "--no-replace-objects"
            | "--literal-pathspecs"
            | "--no-optional-locks"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs" => (),
            "--version" | "--help" | "-h" | "-v" | "--html-path" | "--man-path" | "--info-path" => {
                reader.add(Risk::Read, || "git alone".to_owned());
                if rest.is_empty() {
                    return;
                }
            }
            "-C" => {
                rest.first().inspect(|directory| reader.path(directory));
                rest = rest.split_first().map_or(rest, |(_, after)| after);
            }
            "-c" | "--config-env" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" => {
                configured(reader, rest.first());
                rest = rest.split_first().map_or(rest, |(_, after)| after);
            }
            _ => {
                configured(reader, Some(word));
                if !text.contains('=') && !matches!(text, "-p" | "--paginate") {
                    return wrap::guess(reader, rest, None);
                }
            }
        }
    }
}

/// An option that lets git run what the configuration says. An alias that begins with `!` is shell text.
fn configured(reader: &mut Reader, value: Option<&Word>) {
    reader.uncertain(|| "git with configuration of its own".to_owned());
    let text = value.map(|word| word.text.as_str()).unwrap_or_default();
    if let Some((_, command)) = text.split_once('=') {
        let command = command.strip_prefix('!').unwrap_or(command).to_owned();
        if !command.is_empty() {
            reader.text(&command);
        }
    }
}

fn subcommand(reader: &mut Reader, verb: &str, arguments: &[Word]) {
    let name = format!("git {verb}");
    let Some(row) = table::row(&name) else {
        return reader.uncertain(|| format!("git {} is not known", shown(verb)));
    };
    match verb {
        "branch" => branch(reader, arguments),
        "tag" => tag(reader, arguments),
        "remote" => remote(reader, arguments),
        "stash" => verbs(
            reader,
            &name,
            arguments,
            &["list", "show"],
            &["drop", "clear", "pop"],
            true,
        ),
        "reflog" => verbs(
            reader,
            &name,
            arguments,
            &["show", "exists"],
            &["delete", "expire"],
            false,
        ),
        "worktree" => verbs(reader, &name, arguments, &["list"], &["remove", "prune"], true),
        "notes" => verbs(
            reader,
            &name,
            arguments,
            &["list", "show"],
            &["remove", "prune"],
            false,
        ),
        "config" => config(reader, arguments),
        _ => {
            let risks = row.risks;
            reader.add_all(risks, || name.clone());
            match (verb, row.how) {
                ("reset", _) => reset(reader, arguments),
                ("push", _) => push(reader, arguments),
                (_, How::Special) => remote_urls(reader, arguments),
                _ => reader.arguments(&name, row, arguments),
            }
            // What is a file and what a revision cannot be told apart without the repository.
            if !arguments.is_empty() {
                reader.paths.lose();
            }
        }
    }
}

/// Letters of clusters and long options (perhaps shortened) among the arguments; `None` when one may be hidden.
fn has_option(arguments: &[Word], letters: &[char], names: &[&str]) -> bool {
    arguments
        .iter()
        .take_while(|word| word.certain() != Some("--"))
        .any(|word| {
            let text = word.text.as_str();
            let name = text.split('=').next().unwrap_or_default();
            match text.strip_prefix("--") {
                Some(_) => name.len() > 2 && names.iter().any(|long| long.starts_with(name)),
                None => text.starts_with('-') && text.chars().skip(1).any(|c| letters.contains(&c)),
            }
        })
}

fn hidden(reader: &mut Reader, name: &str, arguments: &[Word]) {
    if arguments
        .iter()
        .any(|word| word.may_hide_option() || word.may_match_option())
    {
        reader.uncertain(|| format!("an argument of {name} may be any option"));
    }
    reader.paths.lose();
}

fn operands(arguments: &[Word]) -> usize {
    arguments
        .iter()
        .filter(|word| !word.text.starts_with('-'))
        .count()
}

fn branch(reader: &mut Reader, arguments: &[Word]) {
    hidden(reader, "git branch", arguments);
    let deletes = has_option(arguments, &['d', 'D'], &["--delete"]);
    let writes = has_option(
        arguments,
        &['m', 'M', 'c', 'C', 'f', 'u', 't'],
        &[
            "--move",
            "--copy",
            "--force",
            "--set-upstream-to",
            "--unset-upstream",
            "--edit-description",
            "--track",
        ],
    );
    let lists = has_option(
        arguments,
        &['l'],
        &[
            "--list",
            "--contains",
            "--no-contains",
            "--merged",
            "--no-merged",
            "--points-at",
            "--show-current",
        ],
    );
    named(reader, "git branch", arguments, deletes, writes, lists);
}

fn tag(reader: &mut Reader, arguments: &[Word]) {
    hidden(reader, "git tag", arguments);
    let deletes = has_option(arguments, &['d'], &["--delete"]);
    let writes = has_option(
        arguments,
        &['a', 's', 'u', 'f', 'm', 'F', 'e'],
        &[
            "--annotate",
            "--sign",
            "--local-user",
            "--force",
            "--message",
            "--file",
            "--edit",
        ],
    );
    let lists = has_option(
        arguments,
        &['l', 'n'],
        &[
            "--list",
            "--contains",
            "--no-contains",
            "--merged",
            "--no-merged",
            "--points-at",
        ],
    );
    if has_option(
        arguments,
        &['v', 'u', 's'],
        &["--verify", "--sign", "--local-user"],
    ) {
        reader.add(Risk::Execution, || "git tag starts gpg".to_owned());
    }
    named(reader, "git tag", arguments, deletes, writes, lists);
}

fn named(reader: &mut Reader, name: &str, arguments: &[Word], deletes: bool, writes: bool, lists: bool) {
    let is_plain = operands(arguments) == 0 || lists;
    match (deletes, writes || !is_plain) {
        (true, _) => reader.add(Risk::Delete, || format!("{name} -d")),
        (_, true) => reader.add(Risk::LocalWrite, || format!("{name} with a name")),
        _ => reader.add(Risk::Read, || name.to_owned()),
    }
}

fn remote(reader: &mut Reader, arguments: &[Word]) {
    hidden(reader, "git remote", arguments);
    let verb = arguments.iter().find(|word| !word.text.starts_with('-'));
    match verb.map(|word| word.text.as_str()) {
        None | Some("get-url") => reader.add(Risk::Read, || "git remote".to_owned()),
        Some("remove" | "rm" | "prune") => reader.add(Risk::Delete, || "git remote remove".to_owned()),
        Some("add" | "set-url" | "rename" | "set-head" | "set-branches") => {
            reader.add(Risk::LocalWrite, || "git remote add".to_owned());
            remote_urls(reader, arguments);
        }
        Some("show" | "update") => {
            reader.hosts.lose();
            reader.uncertain(|| "git remote connects".to_owned());
        }
        Some(_) => reader.uncertain(|| "git remote with an unknown verb".to_owned()),
    }
}

/// Subcommands whose first argument says what they do. Without one, they read, or write when `bare_writes`.
fn verbs(
    reader: &mut Reader,
    name: &str,
    arguments: &[Word],
    reads: &[&str],
    deletes: &[&str],
    bare_writes: bool,
) {
    hidden(reader, name, arguments);
    let verb = arguments
        .first()
        .map(|word| word.text.as_str())
        .unwrap_or_default();
    if has_option(arguments, &['O'], &["--output", "--ext-diff", "--textconv"]) {
        reader.add(Risk::Execution, || {
            format!("{name} with an option that does more")
        });
    }
    if reads.contains(&verb) || (verb.is_empty() && !bare_writes) {
        reader.add(Risk::Read, || format!("{name} {verb}"));
    } else if deletes.contains(&verb) {
        reader.add(Risk::Delete, || format!("{name} {verb}"));
    } else {
        reader.add_all([Risk::LocalWrite, Risk::Execution].into_iter().collect(), || {
            format!("{name} {verb}")
        });
    }
}

fn config(reader: &mut Reader, arguments: &[Word]) {
    hidden(reader, "git config", arguments);
    let first = arguments
        .first()
        .map(|word| word.text.as_str())
        .unwrap_or_default();
    let is_read = match first {
        "--get" | "--get-all" | "--list" | "-l" | "list" | "get" | "--get-regexp" => !has_option(
            arguments.get(1..).unwrap_or_default(),
            &['e'],
            &["--unset", "--add", "--replace-all", "--edit"],
        ),
        _ => false,
    };
    match is_read {
        true => reader.add(Risk::Read, || "git config --get".to_owned()),
        // Configuration names programs that git starts.
        false => reader.add_all([Risk::LocalWrite, Risk::Execution].into_iter().collect(), || {
            "git config".to_owned()
        }),
    }
}

fn reset(reader: &mut Reader, arguments: &[Word]) {
    hidden(reader, "git reset", arguments);
    if has_option(arguments, &[], &["--hard", "--merge", "--keep"]) {
        reader.add(Risk::Delete, || "git reset --hard".to_owned());
    }
}

fn push(reader: &mut Reader, arguments: &[Word]) {
    hidden(reader, "git push", arguments);
    let removes = |word: &Word| word.text.starts_with(':') || word.text.starts_with("+:");
    if has_option(arguments, &['d'], &["--delete", "--mirror", "--prune"]) || arguments.iter().any(removes) {
        reader.add(Risk::Delete, || "git push --delete".to_owned());
    }
    if has_option(arguments, &[], &["--receive-pack", "--exec"]) {
        reader.uncertain(|| "git push starts a program".to_owned());
    }
    remote_urls(reader, arguments);
}

/// The hosts of URLs; a remote's name hides its host.
fn remote_urls(reader: &mut Reader, arguments: &[Word]) {
    let mut is_found = false;
    for word in arguments.iter().filter(|word| !word.text.starts_with('-')) {
        let Some(text) = word.certain() else { continue };
        if text.starts_with("ext::") || text.starts_with("fd::") {
            reader.uncertain(|| "a git remote that is a program".to_owned());
            reader.text(text.split_once("::").map_or(text, |(_, command)| command));
        } else if text.contains("://") {
            net::url(reader, text);
            is_found = true;
        } else if let Some((host, _)) = text.split_once(':').filter(|(host, _)| host.contains('@')) {
            reader.host(host.rsplit('@').next().unwrap_or_default());
            is_found = true;
        }
    }
    if !is_found {
        reader.hosts.lose();
    }
}

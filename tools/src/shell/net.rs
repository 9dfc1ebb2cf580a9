//! Programs that reach other machines or people: what they do there, and whom they reach.

use super::reader::{Reader, shown};
use super::word::Word;
use super::wrap;
use crate::classify::Risk;

/// Takes the host of a URL; one that cannot be read with certainty leaves the set unknown.
pub(super) fn url(reader: &mut Reader, text: &str) {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let is_odd =
        |c: char| c.is_control() || c.is_whitespace() || matches!(c, '\\' | '%' | '{' | '}' | '*' | '$');
    if rest.chars().any(is_odd) && authority.chars().any(is_odd) || text.contains('\\') {
        return reader.hosts.lose();
    }
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return reader.host(address.0);
    }
    if host.matches(':').count() > 1 {
        return reader.hosts.lose();
    }
    reader.host(host.split(':').next().unwrap_or_default());
}

/// `user@host` or `host`.
fn login(reader: &mut Reader, word: &Word) {
    match word.certain() {
        Some(text) if text.contains("://") => url(reader, text),
        Some(text) => reader.host(text.rsplit('@').next().unwrap_or_default()),
        None => reader.hosts.lose(),
    }
}

const SSH_FLAGS: &str = "46AaCfGgKkMNnqsTtVvXxYy";
const SSH_VALUES: &str = "BbcDEeFIiJLlmOoPpQRSWw";

/// `ssh HOST CMD…`: the words after the host, joined, are text for the shell there.
pub(super) fn ssh(reader: &mut Reader, program: &str, arguments: &[Word], input: Option<&Word>) {
    if program != "ssh" && program != "slogin" {
        reader.hosts.lose();
        return wrap::guess(reader, arguments, input);
    }
    let mut is_host_seen = false;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        if word.may_hide_option() {
            reader.hosts.lose();
            reader.uncertain(|| "an argument of ssh may be any option".to_owned());
            return wrap::guess(reader, after, input);
        }
        let text = word.text.as_str();
        if text == "--" || !text.starts_with('-') {
            if text != "--" {
                if is_host_seen {
                    break;
                }
                is_host_seen = true;
                login(reader, word);
            }
            rest = after;
            continue;
        }
        rest = after;
        for (at, letter) in text.char_indices().skip(1) {
            if SSH_FLAGS.contains(letter) {
                continue;
            }
            let is_last = at + 1 == text.len();
            let value = if is_last {
                rest.first().map(|word| word.text.as_str())
            } else {
                text.get(at + 1..)
            };
            if !SSH_VALUES.contains(letter)
                || matches!(
                    letter,
                    'o' | 'F' | 'J' | 'W' | 'E' | 'D' | 'L' | 'R' | 'w' | 'I' | 'S'
                )
            {
                reader.hosts.lose();
                reader.uncertain(|| format!("ssh -{letter}"));
                if let Some((_, command)) = value.and_then(|value| value.split_once(['=', ' '])) {
                    reader.text(command);
                }
            }
            if is_last {
                rest = rest.split_first().map_or(rest, |(_, after)| after);
            }
            break;
        }
    }
    // What runs there reaches what is there: paths and hosts of it are not of this machine.
    reader.paths.lose();
    if !rest.is_empty() {
        let texts: Option<Vec<&str>> = rest.iter().map(Word::certain).collect();
        match texts {
            Some(texts) => reader.text(&texts.join(" ")),
            None => wrap::guess(reader, rest, input),
        }
    } else if let Some(text) = input.filter(|word| !word.open) {
        reader.text(&text.text);
    }
}

/// `scp`, `rsync`, `sftp`: arguments with a colon name other machines.
pub(super) fn copy(reader: &mut Reader, program: &str, arguments: &[Word]) {
    let mut is_found = false;
    for word in arguments {
        let text = word.text.as_str();
        if word.may_hide_option() || word.may_match_option() {
            reader.uncertain(|| format!("an argument of {program} may be any option"));
        }
        if text.starts_with('-') {
            let is_harmless =
                !text.starts_with("--") && text.chars().skip(1).all(|c| "avzrpqCtln46huP".contains(c));
            if text.starts_with("--del") || text.starts_with("--remove-source") {
                reader.add(Risk::Delete, || format!("{program} {}", shown(text)));
            }
            if !is_harmless {
                reader.hosts.lose();
                reader.uncertain(|| format!("{program} {}", shown(text)));
            }
            continue;
        }
        let Some(text) = word.certain() else {
            reader.hosts.lose();
            reader.paths.lose();
            continue;
        };
        let is_remote = text.split('/').next().is_some_and(|start| start.contains(':')) || program == "sftp";
        if !is_remote {
            reader.path(word);
        } else {
            is_found = true;
            if text.contains("://") {
                url(reader, text);
            } else {
                let host = text.split(':').next().unwrap_or_default();
                reader.host(host.rsplit('@').next().unwrap_or_default());
            }
        }
    }
    if !is_found && program != "rsync" {
        reader.hosts.lose();
    }
}

/// `nc HOST PORT`.
pub(super) fn connect(reader: &mut Reader, program: &str, arguments: &[Word]) {
    let mut operands = 0;
    for word in arguments {
        let text = word.text.as_str();
        if word.may_hide_option()
            || (text.starts_with('-') && !text.chars().skip(1).all(|c| "vnzu46".contains(c)))
        {
            reader.hosts.lose();
            reader.uncertain(|| format!("{program} {}", shown(text)));
        } else if !text.starts_with('-') {
            operands += 1;
            if operands == 1 {
                login(reader, word);
            }
        }
    }
    if operands == 0 {
        reader.hosts.lose();
    }
}

/// `mail ADDRESS…`.
pub(super) fn mail(reader: &mut Reader, program: &str, arguments: &[Word]) {
    reader.hosts.lose();
    let mut words = arguments.iter();
    let mut is_found = false;
    while let Some(word) = words.next() {
        match word.certain() {
            Some("-s") => {
                words.next();
            }
            Some("-c" | "-b") => match words.next().and_then(Word::certain) {
                Some(address) => address
                    .split(',')
                    .for_each(|address| reader.recipients.add(address.trim())),
                None => reader.recipients.lose(),
            },
            Some(text) if text.starts_with('-') => {
                reader.recipients.lose();
                reader.uncertain(|| format!("{program} {}", shown(text)));
            }
            Some(text) => {
                is_found = true;
                text.split(',')
                    .for_each(|address| reader.recipients.add(address.trim()));
            }
            None => reader.recipients.lose(),
        }
    }
    if !is_found {
        reader.recipients.lose();
    }
}

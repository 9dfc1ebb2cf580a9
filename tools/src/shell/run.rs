//! Shells, and programs that hand text or arguments to them.

use super::reader::Reader;
use super::special::replaced;
use super::table::Row;
use super::word::Word;
use crate::classify::Risk;

/// `sh -c TEXT`, a script's file, or a script on the input.
pub(super) fn shell(reader: &mut Reader, program: &str, arguments: &[Word], input: Option<&Word>) {
    let mut words = arguments.iter();
    let mut has_text = false;
    while let Some(word) = words.next() {
        let Some(text) = word.certain() else {
            return reader.uncertain(|| format!("an argument of {program} may be any option"));
        };
        if text.starts_with("--") && text.len() > 2 {
            match text {
                "--login" | "--noprofile" | "--norc" | "--posix" | "--restricted" => continue,
                _ => return unknown_option(reader, program, arguments),
            }
        }
        if (text.starts_with('-') || text.starts_with('+')) && text.len() > 1 && text != "--" {
            let is_known = |c: char| {
                matches!(
                    c,
                    'c' | 'l' | 'i' | 'e' | 'u' | 'x' | 'v' | 'f' | 'n' | 'o' | 'O' | 'p' | 'r' | 's'
                )
            };
            if !text.chars().skip(1).all(is_known) {
                return unknown_option(reader, program, arguments);
            }
            for _ in text.chars().filter(|c| matches!(c, 'o' | 'O')) {
                words.next();
            }
            has_text |= text.starts_with('-') && text.contains('c');
            continue;
        }
        let word = if matches!(text, "--" | "-") {
            words.next()
        } else {
            Some(word)
        };
        return match word {
            Some(word) if has_text => whole_text(reader, program, word),
            Some(word) => {
                reader.path(word);
                reader.uncertain(|| format!("{program} runs a script"));
            }
            None => script_on_input(reader, program, input),
        };
    }
    script_on_input(reader, program, input);
}

fn unknown_option(reader: &mut Reader, program: &str, arguments: &[Word]) {
    reader.uncertain(|| format!("an option of {program} is not known"));
    for word in arguments
        .iter()
        .filter(|word| !word.open && word.text.contains(' '))
    {
        reader.text(&word.text);
    }
}

fn script_on_input(reader: &mut Reader, program: &str, input: Option<&Word>) {
    reader.uncertain(|| format!("{program} runs what it reads"));
    if let Some(word) = input.filter(|word| !word.open) {
        reader.text(&word.text);
    }
}

fn whole_text(reader: &mut Reader, program: &str, word: &Word) {
    match word.certain() {
        Some(text) => {
            let text = text.to_owned();
            reader.text(&text);
        }
        None => reader.uncertain(|| format!("the text that {program} runs is not certain")),
    }
}

/// `eval`: its arguments, joined, are shell text.
pub(super) fn eval(reader: &mut Reader, arguments: &[Word]) {
    run_joined(reader, "eval", arguments);
}

fn run_joined(reader: &mut Reader, program: &str, words: &[Word]) {
    let texts: Option<Vec<&str>> = words.iter().map(Word::certain).collect();
    match texts {
        Some(texts) if !texts.is_empty() => reader.text(&texts.join(" ")),
        _ => {
            reader.uncertain(|| format!("the text that {program} runs is not certain"));
            super::wrap::guess(reader, words, None);
        }
    }
}

/// `watch CMD…`, `parallel CMD…`: what follows the options is given to a shell.
pub(super) fn joined(reader: &mut Reader, program: &str, arguments: &[Word]) {
    let start = arguments.iter().position(|word| !word.text.starts_with('-'));
    let Some(words) = start.and_then(|start| arguments.get(start..)) else {
        return reader.uncertain(|| format!("{program} runs what it reads"));
    };
    if start != Some(0) {
        return super::wrap::guess(reader, words, None);
    }
    if program == "parallel" {
        reader.uncertain(|| "parallel adds what it reads to its commands".to_owned());
        let words: Vec<Word> = words
            .iter()
            .take_while(|word| !word.text.starts_with(":::"))
            .cloned()
            .collect();
        return super::wrap::guess(reader, &words, None);
    }
    run_joined(reader, program, words);
}

/// `xargs CMD…`: the command gets more arguments, about which nothing is known.
pub(super) fn xargs(reader: &mut Reader, row: &Row, arguments: &[Word]) {
    let mut place: Option<String> = None;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        if word.may_hide_option() || word.may_match_option() {
            return super::wrap::guess(reader, rest, None);
        }
        let text = word.text.as_str();
        if !text.starts_with('-') {
            break;
        }
        rest = after;
        let (takes_next, is_place) = match text {
            "--" => break,
            "-I" | "-J" | "--replace" => (text != "--replace", true),
            "-n" | "-L" | "-P" | "-s" | "-d" | "-E" | "--max-args" | "--max-lines" | "--max-procs"
            | "--max-chars" | "--delimiter" => (true, false),
            "-a" | "--arg-file" => {
                rest.first().inspect(|file| reader.path(file));
                (true, false)
            }
            "-0" | "-r" | "-t" | "-x" | "--null" | "--no-run-if-empty" | "--verbose" | "--exit" | "-0r"
            | "-r0" => (false, false),
            "-i" => (false, true),
            _ if is_glued_number(text) => (false, false),
            _ if text.starts_with("-I") || text.starts_with("-i") => {
                place = text.get(2..).map(str::to_owned);
                (false, false)
            }
            _ => {
                reader.uncertain(|| "an option of xargs is not known".to_owned());
                return super::wrap::guess(reader, rest, None);
            }
        };
        if is_place {
            place = Some(match takes_next {
                true => rest.first().map(|word| word.text.clone()).unwrap_or_default(),
                false => "{}".to_owned(),
            });
        }
        if takes_next {
            rest = rest.split_first().map_or(rest, |(_, after)| after);
        }
    }
    debug_assert!(row.is_wrapper, "xargs is a wrapper");
    let mut command: Vec<Word> = match &place {
        Some(place) => rest.iter().map(|word| replaced(word, place)).collect(),
        None => rest.to_vec(),
    };
    reader.paths.lose();
    reader.hosts.lose();
    reader.recipients.lose();
    if command.is_empty() {
        return reader.add(Risk::Read, || "xargs alone".to_owned());
    }
    // What is read becomes arguments: harmless only for a program with no harmful argument.
    if place.is_none() {
        command.push(found());
    }
    reader.command(&command, None);
}

/// Arguments that files or lines become: like names that a pattern finds.
fn found() -> Word {
    Word {
        text: "*".to_owned(),
        glob: true,
        ..Word::default()
    }
}

fn is_glued_number(text: &str) -> bool {
    let mut characters = text.chars().skip(1);
    characters
        .next()
        .is_some_and(|c| matches!(c, 'n' | 'L' | 'P' | 's'))
        && text.len() > 2
        && characters.all(|c| c.is_ascii_digit())
}

/// `su -c TEXT`, `script -c TEXT`, `flock FILE -c TEXT`, or a command among the arguments.
pub(super) fn text_option(reader: &mut Reader, program: &str, arguments: &[Word], input: Option<&Word>) {
    let mut is_found = false;
    if matches!(program, "script" | "flock") {
        reader.add(Risk::LocalWrite, || format!("{program} writes a file"));
    }
    for (at, word) in arguments.iter().enumerate() {
        let text = word.text.as_str();
        let is_cluster = text.starts_with('-') && !text.starts_with("--") && text.contains('c');
        let glued = text
            .strip_prefix("--command=")
            .or_else(|| text.strip_prefix("--session-command="));
        if let Some(glued) = glued {
            is_found = true;
            whole_text(reader, program, &word.tail(text.len() - glued.len()));
        } else if is_cluster || matches!(text, "--command" | "--session-command") {
            is_found = true;
            if let Some(glued) = text.strip_prefix("-c").filter(|glued| !glued.is_empty()) {
                whole_text(reader, program, &word.tail(text.len() - glued.len()));
            }
            match arguments.get(at + 1) {
                Some(next) => whole_text(reader, program, next),
                None => reader.uncertain(|| format!("{program} without its text")),
            }
        }
    }
    if !is_found {
        super::wrap::guess(reader, arguments, input);
    } else if program != "su" {
        reader.paths.lose();
    }
}

/// `docker exec NAME CMD…`, `kubectl exec NAME -- CMD…`.
pub(super) fn container(reader: &mut Reader, program: &str, arguments: &[Word], input: Option<&Word>) {
    let verb = arguments.iter().position(|word| !word.text.starts_with('-'));
    let named = verb
        .and_then(|at| arguments.get(at))
        .map(|word| word.text.as_str())
        .unwrap_or_default();
    match named {
        "rm" | "rmi" | "delete" | "prune" | "down" | "kill" => {
            reader.add(Risk::Delete, || format!("{program} {named}"));
        }
        "push" | "apply" | "create" | "patch" | "replace" | "scale" | "drain" | "cordon" | "edit" | "set"
        | "label" => {
            reader.add(Risk::ExternalWrite, || format!("{program} {named}"));
        }
        _ => (),
    }
    reader.uncertain(|| format!("what {program} reaches is not certain"));
    for (at, word) in arguments.iter().enumerate() {
        if matches!(word.text.as_str(), "exec" | "run" | "rm" | "prune" | "delete") {
            if word.text.as_str() != "exec" && word.text.as_str() != "run" {
                reader.add(Risk::Delete, || format!("{program} {}", word.text));
                continue;
            }
            return super::wrap::guess(reader, arguments.get(at + 1..).unwrap_or_default(), input);
        }
    }
}

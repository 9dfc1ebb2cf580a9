//! `curl` and `wget`: what they send, what they write, and the hosts that they reach.

use super::net::url;
use super::reader::{Reader, shown};
use super::word::{OPEN, Word};
use crate::classify::Risk;

fn url_of(reader: &mut Reader, word: &Word) {
    // The host is certain when it ends before anything that is not.
    let text = word.text.as_str();
    let known = text.split(OPEN).next().unwrap_or_default();
    let after_scheme = known.split_once("://").map_or(known, |(_, rest)| rest);
    let is_host_whole = word.certain().is_some() || (after_scheme.contains('/') && !word.splits);
    if !is_host_whole || after_scheme.starts_with('/') {
        return reader.hosts.lose();
    }
    let authority = after_scheme.split('/').next().unwrap_or_default();
    if text.contains('{') || (text.contains('[') && !authority.starts_with('[')) {
        // Patterns of curl's own, which may be in the host.
        if authority.contains(['{', '[']) {
            return reader.hosts.lose();
        }
    }
    url(reader, known);
}

const CURL_FLAGS: &str = "sSfLkvVi0146IGagqRJNjhMnpZ#l";
const CURL_VALUES: &str = "ouAebcmHwxUyYzrEtCPQDXdFTK";
const CURL_WRITES: [&str; 18] = [
    "--data",
    "--form",
    "--upload-file",
    "--json",
    "--request",
    "--mail-from",
    "--mail-rcpt",
    "--url-query",
    "--quote",
    "--prequote",
    "--postquote",
    "--telnet-option",
    "--ftp-create-dirs",
    "--append",
    "--request-target",
    "--data-raw",
    "--post301",
    "--proto-redir",
];
const CURL_LONG_FLAGS: [&str; 19] = [
    "--silent",
    "--show-error",
    "--fail",
    "--location",
    "--insecure",
    "--verbose",
    "--include",
    "--head",
    "--get",
    "--compressed",
    "--http1.1",
    "--http2",
    "--ipv4",
    "--ipv6",
    "--globoff",
    "--no-progress-meter",
    "--fail-with-body",
    "--no-buffer",
    "--version",
];
const CURL_LONG_VALUES: [&str; 16] = [
    "--user-agent",
    "--header",
    "--max-time",
    "--connect-timeout",
    "--retry",
    "--retry-delay",
    "--write-out",
    "--user",
    "--referer",
    "--range",
    "--cacert",
    "--oauth2-bearer",
    "--max-redirs",
    "--limit-rate",
    "--retry-max-time",
    "--max-filesize",
];

/// `curl`.
pub(super) fn curl(reader: &mut Reader, arguments: &[Word]) {
    let mut words = arguments.iter();
    let mut only_operands = false;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if word.may_hide_option() || word.may_match_option() {
            reader.hosts.lose();
            reader.uncertain(|| "an argument of curl may be any option".to_owned());
        }
        if text == "--" {
            only_operands = true;
        } else if text.starts_with("--") && !only_operands {
            curl_long(reader, text, &mut words);
        } else if text.starts_with('-') && text.len() > 1 && !only_operands {
            curl_short(reader, word, &mut words);
        } else {
            url_of(reader, word);
        }
    }
}

fn sends(reader: &mut Reader, option: &str) {
    reader.add(Risk::ExternalWrite, || format!("curl {}", shown(option)));
}

fn curl_long<'w>(reader: &mut Reader, text: &str, words: &mut impl Iterator<Item = &'w Word>) {
    let (name, glued) = text
        .split_once('=')
        .map_or((text, None), |(name, value)| (name, Some(Word::literal(value))));
    if CURL_LONG_FLAGS.contains(&name) {
        return;
    }
    let value = if glued.is_some() {
        glued.as_ref()
    } else {
        words.next()
    };
    if CURL_LONG_VALUES.contains(&name) {
        return;
    }
    match name {
        "--request" => method(reader, value),
        "--url" => match value {
            Some(word) => url_of(reader, word),
            None => reader.hosts.lose(),
        },
        _ if CURL_WRITES.iter().any(|option| option.starts_with(name))
            || name.starts_with("--data")
            || name.starts_with("--form") =>
        {
            sends(reader, name);
            // Files are named by `@`: which ones is for curl to say.
            reader.paths.lose();
        }
        _ => {
            let writes = ["--out", "--remote-", "--dump", "--cookie-jar"];
            if writes.iter().any(|option| name.starts_with(option)) {
                reader.add(Risk::LocalWrite, || format!("curl {}", shown(name)));
            }
            reader.hosts.lose();
            reader.uncertain(|| format!("curl {} is not known", shown(name)));
        }
    }
}

fn curl_short<'w>(reader: &mut Reader, word: &Word, words: &mut impl Iterator<Item = &'w Word>) {
    let text = word.text.as_str();
    for (at, letter) in text.char_indices().skip(1) {
        let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
        if CURL_FLAGS.contains(letter) {
            continue;
        }
        if letter == 'O' {
            reader.paths.lose();
            reader.add(Risk::LocalWrite, || "curl -O".to_owned());
            continue;
        }
        if !CURL_VALUES.contains(letter) {
            reader.hosts.lose();
            return reader.uncertain(|| format!("curl {} is not known", shown(text)));
        }
        let glued = word.tail(at + letter.len_utf8());
        let value = if rest.is_empty() {
            words.next()
        } else {
            Some(&glued)
        };
        match letter {
            'd' | 'F' | 'T' | 'Q' | 't' => {
                reader.paths.lose();
                sends(reader, text);
            }
            'X' => method(reader, value),
            'o' | 'D' | 'c' => {
                reader.add(Risk::LocalWrite, || format!("curl -{letter}"));
                value.inspect(|file| reader.path(file));
            }
            'x' | 'K' | 'P' => {
                reader.hosts.lose();
                reader.uncertain(|| format!("curl -{letter}"));
            }
            _ => (),
        }
        return;
    }
}

fn method(reader: &mut Reader, value: Option<&Word>) {
    match value.and_then(Word::certain) {
        Some("GET" | "HEAD" | "OPTIONS") => (),
        Some("DELETE") => {
            reader.add(Risk::Delete, || "curl -X DELETE".to_owned());
            sends(reader, "-X");
        }
        _ => sends(reader, "-X"),
    }
}

/// `wget`.
pub(super) fn wget(reader: &mut Reader, arguments: &[Word]) {
    reader.add(Risk::LocalWrite, || "wget writes what it gets".to_owned());
    reader.paths.lose();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if word.may_hide_option() || word.may_match_option() {
            reader.hosts.lose();
            reader.uncertain(|| "an argument of wget may be any option".to_owned());
        }
        let name = text.split('=').next().unwrap_or_default();
        let is_short_of = |long: &str| name.len() > 2 && long.starts_with(name);
        if name.starts_with("--post")
            || name.starts_with("--body")
            || name.starts_with("--method")
            || is_short_of("--post-data")
            || is_short_of("--method")
        {
            reader.add(Risk::ExternalWrite, || format!("wget {}", shown(name)));
            if !text.contains('=') {
                words.next();
            }
        } else if matches!(text, "-O" | "-o" | "-P" | "-a" | "-t" | "-T" | "-U") {
            words.next();
        } else if matches!(
            text,
            "-q" | "-nv" | "-c" | "-N" | "-qO-" | "--quiet" | "-S" | "--spider" | "-4" | "-6"
        ) {
        } else if text.starts_with('-') {
            reader.hosts.lose();
            reader.uncertain(|| format!("wget {} is not known", shown(name)));
        } else {
            url_of(reader, word);
        }
    }
}

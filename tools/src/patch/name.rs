//! Names of files in diffs: C-style quotes, timestamps, prefixes.

/// Reads a name that may be quoted; returns it and what follows.
pub(super) fn quoted(text: &str) -> Result<(String, &str), &'static str> {
    let Some(rest) = text.strip_prefix('"') else {
        return Err("a name without quotes");
    };
    let mut bytes = Vec::new();
    let mut characters = rest.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => {
                let name = String::from_utf8(bytes).map_err(|_| "a quoted name that is not UTF-8")?;
                return Ok((name, rest.get(at + 1..).unwrap_or_default()));
            }
            '\\' => {
                let (_, escaped) = characters.next().ok_or("a quoted name that does not end")?;
                let byte = match escaped {
                    'a' => 7,
                    'b' => 8,
                    't' => b'\t',
                    'n' => b'\n',
                    'v' => 11,
                    'f' => 12,
                    'r' => b'\r',
                    '"' | '\\' => escaped as u8,
                    '0'..='3' => {
                        let digits: String = std::iter::once(escaped)
                            .chain(characters.by_ref().take(2).map(|(_, digit)| digit))
                            .collect();
                        u8::from_str_radix(&digits, 8).map_err(|_| "a quoted name with an unknown escape")?
                    }
                    _ => return Err("a quoted name with an unknown escape"),
                };
                bytes.push(byte);
            }
            c => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Err("a quoted name that does not end")
}

/// The name of `--- NAME` or `+++ NAME`: up to a tab (what follows is a timestamp), perhaps quoted. `None` for `/dev/null`.
pub(super) fn side(text: &str) -> Result<Option<String>, &'static str> {
    let (name, rest) = if text.starts_with('"') {
        let (name, rest) = quoted(text)?;
        (name, rest)
    } else {
        let (name, rest) = text.split_once('\t').unwrap_or((text, ""));
        (name.trim_end_matches(' ').to_owned(), rest)
    };
    if rest.contains(['/', '\\', '"']) && !is_timestamp(rest) {
        return Err("text after a file's name");
    }
    if name == "/dev/null" {
        return Ok(None);
    }
    // Without a tab, a timestamp after blanks cannot be told from a name.
    if !text.contains('\t') && !text.starts_with('"') && looks_dated(&name) {
        return Err("a timestamp without a tab before it");
    }
    if name.is_empty() {
        return Err("an empty name");
    }
    Ok(Some(name))
}

fn is_timestamp(text: &str) -> bool {
    text.trim().chars().all(|c| {
        c.is_ascii_alphanumeric() || matches!(c, ' ' | ':' | '-' | '+' | '.' | '(' | ')' | ',' | '/')
    })
}

fn looks_dated(name: &str) -> bool {
    name.split(' ').skip(1).any(|word| {
        word.len() >= 8
            && word.contains([':', '-'])
            && word
                .bytes()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'-' | b'.'))
    })
}

/// The path without git's `a/` and `b/`.
pub(super) fn without_prefix(name: &str) -> &str {
    name.strip_prefix("a/")
        .or_else(|| name.strip_prefix("b/"))
        .unwrap_or(name)
}

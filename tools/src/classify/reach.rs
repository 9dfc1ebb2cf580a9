//! What the arguments of a call say about whom and what it reaches.

use crate::json::{Kind, Node};
use crate::targets::Extent;

/// More members than these are not listed.
const MAX_MEMBERS: usize = 512;
/// Longer texts are no name of anything.
const MAX_TEXT: usize = 8192;

/// A set of targets that is being collected from several arguments.
#[derive(Debug, Default)]
pub(super) struct Reach {
    members: Vec<String>,
    is_lost: bool,
    is_mentioned: bool,
}

impl Reach {
    /// Adds what one reader found.
    pub(super) fn join(&mut self, extent: Extent) {
        self.is_mentioned = true;
        match extent {
            Extent::Known(members) => members.into_iter().for_each(|member| self.push(member)),
            Extent::Unknown => self.is_lost = true,
        }
    }

    /// Adds the texts of an argument, each read by `read`; what cannot be read leaves the set unknown.
    pub(super) fn add(&mut self, value: Node<'_>, read: fn(&str) -> Option<Vec<String>>) {
        self.is_mentioned = true;
        match value.kind() {
            Kind::String => self.add_text(value, read),
            Kind::Array => value.elements().for_each(|one| self.add_text(one, read)),
            Kind::Null => {}
            Kind::Bool | Kind::Number | Kind::Object => self.is_lost = true,
        }
    }

    fn add_text(&mut self, value: Node<'_>, read: fn(&str) -> Option<Vec<String>>) {
        if self.is_lost {
            return;
        }
        let text = value.as_str().filter(|text| text.len() <= MAX_TEXT);
        match text.and_then(|text| read(&text)) {
            Some(members) => members.into_iter().for_each(|member| self.push(member)),
            None => self.is_lost = true,
        }
    }

    fn push(&mut self, member: String) {
        if self.members.len() >= MAX_MEMBERS {
            self.is_lost = true;
        } else if !self.members.contains(&member) {
            self.members.push(member);
        }
    }

    /// The set; unknown when nothing was said about it or when something could not be read.
    pub(super) fn extent(self) -> Extent {
        if self.is_mentioned && !self.is_lost && !self.members.is_empty() {
            Extent::Known(self.members)
        } else {
            Extent::Unknown
        }
    }
}

/// A file path, as given.
pub(super) fn path(text: &str) -> Option<Vec<String>> {
    let is_one = !text.is_empty() && !text.chars().any(char::is_control);
    is_one.then(|| vec![text.to_owned()])
}

/// A host name, with or without a port.
pub(super) fn host(text: &str) -> Option<Vec<String>> {
    host_of_authority(text).map(|host| vec![host])
}

/// The host of a URL.
pub(super) fn url(text: &str) -> Option<Vec<String>> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    // A backslash is a slash to browsers and is none to others.
    if !is_scheme || scheme.eq_ignore_ascii_case("file") || rest.contains('\\') {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    host_of_authority(host).map(|host| vec![host])
}

fn host_of_authority(text: &str) -> Option<String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, after) = rest.split_once(']')?;
            let is_address = address
                .chars()
                .all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.');
            let port = if after.is_empty() {
                ""
            } else {
                after.strip_prefix(':')?
            };
            return (is_address && !address.is_empty() && is_port(port))
                .then(|| address.to_ascii_lowercase());
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_host = !host.is_empty()
        && host.len() <= 253
        && host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    (is_host && is_port(port)).then(|| host.to_ascii_lowercase())
}

fn is_port(text: &str) -> bool {
    text.len() <= 5 && text.chars().all(|c| c.is_ascii_digit())
}

/// The addresses of somebody: `John <john@example.com>, b@y.com`, `#general`, `+4912345`.
pub(super) fn recipients(text: &str) -> Option<Vec<String>> {
    // Quotes and comments may hide a comma or an address.
    if text.contains(['"', '(', ')', '\\']) || text.chars().any(char::is_control) {
        return None;
    }
    let mut found = Vec::new();
    let lists = text.contains('@');
    let parts = text.split(|c| lists && (c == ',' || c == ';'));
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        found.push(one_recipient(part)?);
    }
    Some(found)
}

fn one_recipient(text: &str) -> Option<String> {
    let address = match text.split_once('<') {
        None if text.contains('>') => return None,
        None => text,
        Some((_, rest)) => {
            let (address, after) = rest.split_once('>')?;
            if !after.trim().is_empty() || address.contains('<') {
                return None;
            }
            address.trim()
        }
    };
    if !address.contains('@') {
        return (!address.is_empty()).then(|| address.to_owned());
    }
    let is_mail = address.starts_with('@') || address.split('@').count() == 2;
    (is_mail && !address.contains(char::is_whitespace)).then(|| address.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_read_with_certainty_or_not_at_all() {
        for (text, expected) in [
            ("https://Example.com/x?y#z", Some("example.com")),
            ("http://user:pw@example.com:8080", Some("example.com")),
            ("https://good.com@evil.com/", Some("evil.com")),
            ("https://example.com.", Some("example.com")),
            ("https://[::1]:80/", Some("::1")),
            ("https://evil.com\\@good.com/", None),
            ("//example.com", None),
            ("example.com", None),
            ("file:///etc/passwd", None),
            ("https://ex%61mple.com", None),
            ("https://ex\u{430}mple.com", None),
            ("https:///x", None),
            ("https://a b.com", None),
            ("https://example.com:x", None),
        ] {
            assert_eq!(url(text), expected.map(|host| vec![host.to_owned()]), "{text}");
        }
    }

    #[test]
    fn recipients_are_taken_out_of_what_mail_programs_accept() {
        for (text, expected) in [
            ("John <john@Example.com>", Some(vec!["john@example.com"])),
            (
                "a@x.com, b@y.com; c@z.com",
                Some(vec!["a@x.com", "b@y.com", "c@z.com"]),
            ),
            ("#general", Some(vec!["#general"])),
            ("@bob", Some(vec!["@bob"])),
            ("+49 123", Some(vec!["+49 123"])),
            ("\"a, b\" <a@x.com>", None),
            ("a@x.com <b@y.com", None),
            ("a@b@c", None),
            ("", Some(vec![])),
        ] {
            let expected = expected.map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(recipients(text), expected, "{text}");
        }
    }
}

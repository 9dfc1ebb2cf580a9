//! A shallow look at raw JSON objects: where each member's value begins and ends, without reading the values.
//!
//! For bytes that need no judgement: putting a field into a result that is passed on as it came, or finding the id and
//! the tool of a message that was refused as malformed. What is decided on is read by `tools::json`.

/// One member of an object: its key's bytes between the quotes, and its value's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// The key, escapes as they came.
    pub(crate) key: &'a [u8],
    /// The value.
    pub(crate) value: &'a [u8],
    /// Where the value begins.
    pub(crate) start: usize,
}

/// The members of the object in `bytes`, as far as they can be told apart.
pub(crate) fn members(bytes: &[u8]) -> Members<'_> {
    let mut scanner = Members { bytes, at: 0 };
    scanner.skip_space();
    if scanner.peek() == Some(b'{') {
        scanner.at += 1;
    } else {
        scanner.at = bytes.len();
    }
    scanner
}

/// The first member called `key`.
pub(crate) fn member<'a>(bytes: &'a [u8], key: &str) -> Option<Member<'a>> {
    members(bytes).find(|member| member.key == key.as_bytes())
}

/// Iterator over members; ends at the object's end or at the first byte that is out of place.
pub(crate) struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        self.skip_space();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_space();
        }
        let key_start = self.at + 1;
        if self.peek() != Some(b'"') || !self.skip_string() {
            return None;
        }
        let key = self.bytes.get(key_start..self.at.checked_sub(1)?)?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return None;
        }
        self.at += 1;
        self.skip_space();
        let start = self.at;
        if !self.skip_value() {
            return None;
        }
        let value = self.bytes.get(start..self.at)?;
        Some(Member { key, value, start })
    }
}

impl Members<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// From an opening quote to behind the closing one.
    fn skip_string(&mut self) -> bool {
        self.at += 1;
        while let Some(rest) = self.bytes.get(self.at..) {
            match memchr::memchr2(b'"', b'\\', rest) {
                Some(found) if rest.get(found) == Some(&b'"') => {
                    self.at += found + 1;
                    return true;
                }
                Some(found) => self.at += found + 2,
                None => return false,
            }
        }
        false
    }

    fn skip_value(&mut self) -> bool {
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'{' | b'[') => self.skip_container(),
            Some(_) => {
                let start = self.at;
                while !matches!(
                    self.peek(),
                    None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
                ) {
                    self.at += 1;
                }
                self.at > start
            }
            None => false,
        }
    }

    fn skip_container(&mut self) -> bool {
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    if !self.skip_string() {
                        return false;
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return true;
            }
        }
        false
    }
}

/// `object` with `"key":value` put in front of its members, unless it has such a member already. `None` when it is no
/// object.
pub(crate) fn with_member(object: &[u8], key: &str, value: &[u8]) -> Option<Vec<u8>> {
    let open = object.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if object.get(open) != Some(&b'{') {
        return None;
    }
    if member(object, key).is_some() {
        return Some(object.to_vec());
    }
    let rest = object.get(open + 1..)?;
    let empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let mut out = Vec::with_capacity(object.len() + key.len() + value.len() + 5);
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(value);
    if !empty {
        out.push(b',');
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// `object` with the value of its member `key` replaced; every other byte stays. `None` without such a member.
pub(crate) fn with_value(object: &[u8], key: &str, value: &[u8]) -> Option<Vec<u8>> {
    let found = member(object, key)?;
    let mut out = Vec::with_capacity(object.len() + value.len());
    out.extend_from_slice(object.get(..found.start)?);
    out.extend_from_slice(value);
    out.extend_from_slice(object.get(found.start + found.value.len()..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(bytes: Option<Vec<u8>>) -> String {
        String::from_utf8(bytes.unwrap()).unwrap()
    }

    #[test]
    fn members_are_found_with_their_exact_bytes() {
        let object = br#" { "a" : [1, {"b":"}"}] , "b\"c":"x\\" ,"n":-1.50 } "#;
        let found: Vec<_> = members(object).map(|member| (member.key, member.value)).collect();
        assert_eq!(
            found,
            [
                (&b"a"[..], &br#"[1, {"b":"}"}]"#[..]),
                (&br#"b\"c"#[..], &br#""x\\""#[..]),
                (&b"n"[..], &b"-1.50"[..]),
            ]
        );
    }

    #[test]
    fn a_member_is_put_in_front_unless_it_is_there() {
        assert_eq!(text(with_member(b"{}", "k", b"1")), r#"{"k":1}"#);
        assert_eq!(text(with_member(b" { \"a\":2}", "k", b"1")), r#"{"k":1, "a":2}"#);
        assert_eq!(text(with_member(br#"{"k":2}"#, "k", b"1")), r#"{"k":2}"#);
        assert_eq!(with_member(b"[1]", "k", b"1"), None);
    }

    #[test]
    fn a_value_is_replaced_and_every_other_byte_stays() {
        let object = br#"{ "title":"x", "name" : "read" , "z":1e2}"#;
        assert_eq!(
            text(with_value(object, "name", br#""fs.read""#)),
            r#"{ "title":"x", "name" : "fs.read" , "z":1e2}"#
        );
        assert_eq!(with_value(object, "missing", b"1"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_scanner_panic_or_run_on(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(members(&bytes).count() <= bytes.len());
            let _ = with_member(&bytes, "k", b"1");
        }

        #[test]
        fn no_braces_make_the_scanner_panic(text in "[\\[\\]{}\":,a\\\\ ]{0,60}") {
            prop_assert!(members(text.as_bytes()).count() <= text.len());
        }
    }
}

//! A scanner over the members of a JSON object that passes over the values, so that they stay the bytes they are.
//!
//! It checks that strings end and brackets pair, which is what makes a value safe to put into another message; the
//! grammar inside nested values is left to whoever reads them.

/// The deepest nesting that is followed.
const MAX_DEPTH: usize = 1024;

/// The text is not a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed JSON at byte {at}")]
pub struct Malformed {
    /// Where reading stopped.
    pub at: usize,
}

/// One member of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The key between its quotes, escapes untouched.
    pub key: &'a [u8],
    /// The value's bytes.
    pub value: &'a [u8],
}

impl Member<'_> {
    /// Whether the key, escapes resolved, is `name`.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        if !self.key.contains(&b'\\') {
            return self.key == name.as_bytes();
        }
        self.unescaped().is_some_and(|key| key == name)
    }

    /// Whether a reader that matches keys without regard to case takes the key for `name`.
    #[must_use]
    pub fn passes_for(&self, name: &str) -> bool {
        if self.key.is_ascii() && name.is_ascii() && !self.key.contains(&b'\\') {
            // Among ASCII texts, folding is about nothing but the case of letters.
            return self.key.eq_ignore_ascii_case(name.as_bytes());
        }
        self.unescaped()
            .is_none_or(|key| policy::evaluate::equal_when_folded(&key, name))
    }

    fn unescaped(&self) -> Option<String> {
        let quoted = [b"\"", self.key, b"\""].concat();
        serde_json::from_slice::<String>(&quoted).ok()
    }
}

/// The members of the object that is the whole of `text`.
#[must_use]
pub fn members(text: &[u8]) -> Members<'_> {
    Members {
        cursor: Cursor { text, at: 0 },
        stage: Stage::Start,
    }
}

/// The value of the first member called `name`; `None` also when the text is malformed before it.
#[must_use]
pub fn member<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    members(text)
        .map_while(Result::ok)
        .find(|member| member.is(name))
        .map(|member| member.value)
}

/// The elements of the array that is the whole of `text`.
///
/// # Errors
/// When the text is not an array whose values can be told apart.
pub fn elements(text: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let mut cursor = Cursor { text, at: 0 };
    let mut found = Vec::new();
    cursor.expect(b'[')?;
    if !cursor.take(b']') {
        loop {
            found.push(cursor.value()?);
            if !cursor.take(b',') {
                break;
            }
        }
        cursor.expect(b']')?;
    }
    cursor.end()?;
    Ok(found)
}

/// Iterator of [`members`]. After an error it ends.
#[derive(Debug)]
pub struct Members<'a> {
    cursor: Cursor<'a>,
    stage: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Inside,
    Done,
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<Member<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.stage == Stage::Done {
            return None;
        }
        let item = self.advance().transpose();
        if !matches!(item, Some(Ok(_))) {
            self.stage = Stage::Done;
        }
        item
    }
}

impl<'a> Members<'a> {
    fn advance(&mut self) -> Result<Option<Member<'a>>, Malformed> {
        let is_first = self.stage == Stage::Start;
        self.stage = Stage::Inside;
        if is_first {
            self.cursor.expect(b'{')?;
        }
        if self.cursor.take(b'}') {
            // INVARIANT: a comma was taken before each later member, so a bracket here closes an empty object or follows a value.
            self.cursor.end()?;
            return Ok(None);
        }
        if !is_first {
            self.cursor.expect(b',')?;
        }
        let key = self.cursor.key()?;
        self.cursor.expect(b':')?;
        let value = self.cursor.value()?;
        Ok(Some(Member { key, value }))
    }
}

#[derive(Debug)]
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn malformed<T>(&self) -> Result<T, Malformed> {
        Err(Malformed { at: self.at })
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                other => return Some(*other),
            }
        }
        None
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.take(byte) { Ok(()) } else { self.malformed() }
    }

    fn end(&mut self) -> Result<(), Malformed> {
        if self.peek().is_none() {
            Ok(())
        } else {
            self.malformed()
        }
    }

    fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        self.text.get(start..end).unwrap_or_default()
    }

    fn key(&mut self) -> Result<&'a [u8], Malformed> {
        self.expect(b'"')?;
        let start = self.at;
        self.string_end()?;
        Ok(self.slice(start, self.at.saturating_sub(1)))
    }

    fn value(&mut self) -> Result<&'a [u8], Malformed> {
        let Some(first) = self.peek() else {
            return self.malformed();
        };
        let start = self.at;
        match first {
            b'"' => {
                self.at += 1;
                self.string_end()?;
            }
            b'{' | b'[' => self.nested()?,
            _ => self.scalar()?,
        }
        Ok(self.slice(start, self.at))
    }

    /// Moves behind the closing quote of a string whose opening quote has been taken.
    fn string_end(&mut self) -> Result<(), Malformed> {
        loop {
            let Some(found) = memchr::memchr2(b'"', b'\\', self.rest()) else {
                self.at = self.text.len();
                return self.malformed();
            };
            let quoted = self.rest().get(found) == Some(&b'\\');
            self.at += found + 1;
            if !quoted {
                return Ok(());
            }
            self.at += 1;
        }
    }

    fn nested(&mut self) -> Result<(), Malformed> {
        let mut open = Brackets::default();
        while let Some(byte) = self.text.get(self.at) {
            self.at += 1;
            let is_paired = match byte {
                b'"' => {
                    self.string_end()?;
                    true
                }
                b'{' => open.push(true),
                b'[' => open.push(false),
                b'}' => open.pop(true),
                b']' => open.pop(false),
                _ => true,
            };
            if !is_paired {
                return self.malformed();
            }
            if open.depth == 0 {
                return Ok(());
            }
        }
        self.malformed()
    }

    fn scalar(&mut self) -> Result<(), Malformed> {
        let rest = self.rest();
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'+' | b'.' | b'E'))
            .unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or_default();
        let is_number = matches!(text, [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..]);
        if !is_number && !matches!(text, b"true" | b"false" | b"null") {
            return self.malformed();
        }
        self.at += length;
        Ok(())
    }
}

/// The brackets that are open, one bit each.
struct Brackets {
    bits: [u64; MAX_DEPTH / 64],
    depth: usize,
}

impl Default for Brackets {
    fn default() -> Self {
        Self {
            bits: [0; MAX_DEPTH / 64],
            depth: 0,
        }
    }
}

impl Brackets {
    fn push(&mut self, is_brace: bool) -> bool {
        let Some(word) = self.bits.get_mut(self.depth / 64) else {
            return false;
        };
        let bit = 1 << (self.depth % 64);
        *word = if is_brace { *word | bit } else { *word & !bit };
        self.depth += 1;
        true
    }

    fn pop(&mut self, is_brace: bool) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else {
            return false;
        };
        self.depth = depth;
        let word = self.bits.get(depth / 64).copied().unwrap_or(0);
        (word >> (depth % 64) & 1 == 1) == is_brace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, Malformed> {
        members(text.as_bytes())
            .map(|member| {
                member.map(|member| {
                    (
                        String::from_utf8(member.key.to_vec()).unwrap(),
                        String::from_utf8(member.value.to_vec()).unwrap(),
                    )
                })
            })
            .collect()
    }

    #[test]
    fn values_are_passed_over_and_stay_the_bytes_they_are() {
        let found =
            read(r#" { "a" : {"x":[1.00,{"]":"}\"{"}]} ,"b\n":"\\", "c": 9223372036854775813,"d":null} "#)
                .unwrap();
        let expected = [
            ("a", r#"{"x":[1.00,{"]":"}\"{"}]}"#),
            ("b\\n", r#""\\""#),
            ("c", "9223372036854775813"),
            ("d", "null"),
        ];
        assert_eq!(
            found,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
        assert_eq!(read("{}").unwrap(), []);
    }

    #[test]
    fn what_does_not_pair_or_end_is_malformed() {
        for text in [
            "",
            "[]",
            "{",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1"#,
            r#"{"a":[}]}"#,
            r#"{"a":"x}"#,
            r#"{"a":1}}"#,
            r#"{"a":1,}"#,
            r#"{"a":NaN}"#,
            r#"{"a":1 "b":2}"#,
            r#"{,"a":1}"#,
            r#"{"a":"\"#,
            "Listening on port 3000",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(2000), "]".repeat(2000));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn an_escaped_key_is_the_key_it_spells() {
        let text = br#"{"art.flux7\/agent":"x"}"#;
        assert_eq!(member(text, "art.flux7/agent"), Some(&b"\"x\""[..]));
    }

    #[test]
    fn elements_of_an_array_are_told_apart() {
        assert_eq!(
            elements(b" [1, {\"a\":[2]},\"],\"] ").unwrap(),
            [&b"1"[..], b"{\"a\":[2]}", b"\"],\""]
        );
        assert!(elements(b"[]").unwrap().is_empty());
        assert!(elements(b"[1,]").is_err());
    }
}

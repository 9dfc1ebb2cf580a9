//! Small changes to raw JSON objects that leave every other byte as it came.

use crate::upstream::mcp::scan;

/// `object` with `"key":value` put in front of its members, unless it has such a member already. `None` when it is no
/// object.
pub(crate) fn with_member(object: &[u8], key: &str, value: &[u8]) -> Option<Vec<u8>> {
    let open = object.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if object.get(open) != Some(&b'{') {
        return None;
    }
    if scan::member(object, key).is_some() {
        return Some(object.to_vec());
    }
    let rest = object.get(open + 1..)?;
    let empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let comma: &[u8] = if empty { b"" } else { b"," };
    Some([b"{\"", key.as_bytes(), b"\":", value, comma, rest].concat())
}

/// `object` with the value of its member `key` replaced. `None` without such a member.
pub(crate) fn with_value(object: &[u8], key: &str, value: &[u8]) -> Option<Vec<u8>> {
    let current = scan::member(object, key)?;
    let start = current.as_ptr().addr().checked_sub(object.as_ptr().addr())?;
    let before = object.get(..start)?;
    let after = object.get(start + current.len()..)?;
    Some([before, value, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Option<Vec<u8>>) -> String {
        String::from_utf8(bytes.unwrap()).unwrap()
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
}

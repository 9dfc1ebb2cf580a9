//! Percent-encoding.

/// A text of which nothing but unreserved characters (RFC 3986, section 2.3) stays as it is.
pub(super) fn encoded(text: &str) -> String {
    kept(text, b"")
}

/// As [`encoded`], but reserved characters stay that cannot end a value, a query or a path.
pub(super) fn reserved(text: &str) -> String {
    kept(text, b":/?@!$'()*,;[]")
}

fn kept(text: &str, kept: &[u8]) -> String {
    const HEX: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    let digit = |value: u8| HEX.get(usize::from(value)).copied().unwrap_or('0');
    let mut out = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}

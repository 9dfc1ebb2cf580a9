//! What a plain scalar means: the core schema of YAML 1.2, without its ambiguities.

use super::value::Node;

/// Reads a plain (unquoted) scalar.
///
/// # Errors
/// A message when the text reads differently in different YAML versions (`0600`).
pub(super) fn resolve(text: &str) -> Result<Node, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Node::Null),
        "true" | "True" | "TRUE" => return Ok(Node::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Node::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Ok(Node::NotFinite(text.to_owned()));
    }
    if let Some(number) = radix(text) {
        return Ok(Node::Number(number));
    }
    let Some((whole, fraction, exponent)) = decimal_parts(unsigned) else {
        return Ok(Node::String(text.to_owned()));
    };
    if whole.len() > 1 && whole.starts_with('0') && fraction.is_none() && exponent.is_none() {
        return Err(format!(
            "the number {text} starts with 0, which is octal to some readers"
        ));
    }
    Ok(Node::Number(json_number(
        text.starts_with('-'),
        whole,
        fraction,
        exponent,
    )))
}

/// `0x1f` and `0o17`, as decimal text.
fn radix(text: &str) -> Option<String> {
    let (digits, base) = match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) => (digits, 8),
        (None, None) => return None,
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u128::from_str_radix(digits, base)
        .ok()
        .map(|number| number.to_string())
}

type Parts<'t> = (&'t str, Option<&'t str>, Option<&'t str>);

/// Splits `12.5e-3` into whole, fraction and exponent; `None` when it is no number.
fn decimal_parts(text: &str) -> Option<Parts<'_>> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let some_digit = !whole.is_empty() || fraction.is_some_and(|part| !part.is_empty());
    let exponent_holds = exponent.is_none_or(|part| {
        let part = part.strip_prefix(['+', '-']).unwrap_or(part);
        !part.is_empty() && digits(part)
    });
    (some_digit && digits(whole) && fraction.is_none_or(digits) && exponent_holds)
        .then_some((whole, fraction, exponent))
}

fn json_number(negative: bool, whole: &str, fraction: Option<&str>, exponent: Option<&str>) -> String {
    let mut number = String::new();
    if negative {
        number.push('-');
    }
    let whole = whole.trim_start_matches('0');
    number.push_str(if whole.is_empty() { "0" } else { whole });
    if let Some(fraction) = fraction.filter(|part| !part.is_empty()) {
        number.push('.');
        number.push_str(fraction);
    }
    if let Some(exponent) = exponent {
        number.push('e');
        number.push_str(exponent);
    }
    number
}

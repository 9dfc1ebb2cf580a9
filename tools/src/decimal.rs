//! Exact decimals from the text of JSON numbers.
//!
//! Values never pass through binary floating point, and exponents are never expanded: `1e999999999` costs as much
//! as `1`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many digits an exponent may have, leading zeros aside; as written, and in the canonical form.
const MAX_EXPONENT_DIGITS: usize = 18;
/// The largest exponent of so many digits.
const MAX_EXPONENT: i64 = 999_999_999_999_999_999;
/// How many leading digits are kept in one machine word.
const HEAD_DIGITS: u32 = 19;

/// A number exactly as it was written: `1e2 == 100`, and 2^53 + 1 differs from 2^53.
///
/// ```
/// use tools::decimal::Decimal;
/// let hundred: Decimal = "1e2".parse().unwrap();
/// assert_eq!(hundred, Decimal::from(100));
/// assert_eq!(hundred.to_string(), "100");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    /// The value is 0.DIGITS * 10^point. Zero has point 0.
    point: i64,
    /// The first 19 digits, filled with zeros on the right; the first digit is not zero, except for zero itself.
    head: u64,
    /// Further digits, without trailing zeros; absent when there are none.
    tail: Option<Box<str>>,
}

/// The text is not a JSON number, or its exponent is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text does not follow the grammar of JSON numbers.
    #[error("not a JSON number")]
    Syntax,
    /// The exponent has more than 18 digits, or would in the canonical form.
    #[error("the exponent has more than {MAX_EXPONENT_DIGITS} digits")]
    Exponent,
}

/// A JSON number cut into its parts, each still text.
pub(crate) struct Parts<'a> {
    pub(crate) negative: bool,
    pub(crate) integer: &'a [u8],
    pub(crate) fraction: &'a [u8],
    pub(crate) exponent: i64,
    /// Bytes of the number.
    pub(crate) length: usize,
}

/// The parts of the JSON number that `bytes` begin with.
pub(crate) fn scan(bytes: &[u8]) -> Result<Parts<'_>, DecimalError> {
    let negative = bytes.first() == Some(&b'-');
    let mut at = usize::from(negative);
    let integer = digits(bytes, at);
    match integer {
        [] => return Err(DecimalError::Syntax),
        [b'0', _, ..] => return Err(DecimalError::Syntax),
        _ => at += integer.len(),
    }
    let mut fraction: &[u8] = &[];
    if bytes.get(at) == Some(&b'.') {
        fraction = digits(bytes, at + 1);
        if fraction.is_empty() {
            return Err(DecimalError::Syntax);
        }
        at += 1 + fraction.len();
    }
    let mut exponent = 0;
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        let sign = bytes.get(at).copied().filter(|b| matches!(b, b'+' | b'-'));
        at += usize::from(sign.is_some());
        let text = digits(bytes, at);
        if text.is_empty() {
            return Err(DecimalError::Syntax);
        }
        at += text.len();
        exponent = exponent_value(text)?;
        if sign == Some(b'-') {
            exponent = -exponent;
        }
        check_canonical_exponent(integer, fraction, exponent)?;
    }
    Ok(Parts {
        negative,
        integer,
        fraction,
        exponent,
        length: at,
    })
}

fn digits(bytes: &[u8], from: usize) -> &[u8] {
    let rest = bytes.get(from..).unwrap_or_default();
    let length = rest
        .iter()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(rest.len());
    rest.get(..length).unwrap_or_default()
}

fn exponent_value(text: &[u8]) -> Result<i64, DecimalError> {
    let zeros = text.iter().take_while(|b| **b == b'0').count();
    let text = text.get(zeros..).unwrap_or_default();
    if text.len() > MAX_EXPONENT_DIGITS {
        return Err(DecimalError::Exponent);
    }
    Ok(text.iter().fold(0, |value, b| value * 10 + i64::from(b - b'0')))
}

/// Refuses an exponent that shifting the point behind the first digit makes too long: the canonical form of what is
/// accepted is accepted.
fn check_canonical_exponent(integer: &[u8], fraction: &[u8], exponent: i64) -> Result<(), DecimalError> {
    let digits = integer.len() + fraction.len();
    if exponent.abs() <= MAX_EXPONENT - as_i64(digits) {
        return Ok(());
    }
    let leading = integer.iter().chain(fraction).take_while(|b| **b == b'0').count();
    let canonical = as_i64(integer.len()) - as_i64(leading) - 1 + exponent;
    if leading == digits || canonical.abs() <= MAX_EXPONENT {
        Ok(())
    } else {
        Err(DecimalError::Exponent)
    }
}

impl Decimal {
    /// Zero.
    pub const ZERO: Self = Self {
        negative: false,
        point: 0,
        head: 0,
        tail: None,
    };

    /// Parses the text of a JSON number.
    ///
    /// # Errors
    /// When the text does not follow the grammar, or the exponent has more than 18 digits, there or in the
    /// canonical form.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let parts = scan(text.as_bytes())?;
        if parts.length != text.len() {
            return Err(DecimalError::Syntax);
        }
        Ok(Self::from_parts(&parts))
    }

    pub(crate) fn from_parts(parts: &Parts<'_>) -> Self {
        let digits = || parts.integer.iter().chain(parts.fraction);
        let leading = digits().take_while(|b| **b == b'0').count();
        let total = parts.integer.len() + parts.fraction.len();
        if leading == total {
            return Self::ZERO;
        }
        let mut significant = digits().skip(leading);
        let mut head: u64 = 0;
        for _ in 0..HEAD_DIGITS {
            let digit = significant.next().map_or(0, |b| u64::from(b - b'0'));
            // INVARIANT: 19 decimal digits fit into 64 bits.
            head = head.wrapping_mul(10).wrapping_add(digit);
        }
        let rest: String = significant.map(|b| char::from(*b)).collect();
        let rest = rest.trim_end_matches('0');
        Self {
            negative: parts.negative,
            point: as_i64(parts.integer.len()) - as_i64(leading) + parts.exponent,
            head,
            tail: (!rest.is_empty()).then(|| rest.into()),
        }
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        self.head == 0
    }

    /// Whether the value has no fraction.
    pub fn is_integer(&self) -> bool {
        self.is_zero() || as_i64(self.digits().len()) <= self.point
    }

    /// Whether [`Self::is_multiple_of`] can say something about this as the step: it has at most 19 digits.
    pub fn can_divide(&self) -> bool {
        !self.is_zero() && self.tail.is_none()
    }

    /// Whether the value is a whole multiple of `step`, exactly. `false` for a step that cannot divide.
    pub fn is_multiple_of(&self, step: &Self) -> bool {
        if self.is_zero() {
            return step.can_divide();
        }
        let (digits, unit) = (self.digits(), step.digits());
        let Some(modulus) = unit.parse::<u128>().ok().filter(|_| step.can_divide()) else {
            return false;
        };
        // Both are whole numbers without trailing zeros, times a power of ten.
        let shift = (self.point - as_i64(digits.len())) - (step.point - as_i64(unit.len()));
        let Ok(shift) = u64::try_from(shift) else {
            return false;
        };
        let digit = |byte: u8| u128::from(byte.wrapping_sub(b'0'));
        // INVARIANT: the modulus has 64 bits, so products of two remainders fit into 128.
        let rest = digits
            .bytes()
            .fold(0, |rest: u128, byte| (rest * 10 + digit(byte)) % modulus);
        (rest * power_of_ten(shift, modulus)).is_multiple_of(modulus)
    }

    /// The significant digits, without zeros at either end.
    fn digits(&self) -> String {
        let head = format!("{:0width$}", self.head, width = HEAD_DIGITS as usize);
        match self.tail.as_deref().unwrap_or_default() {
            "" => head.trim_end_matches('0').to_owned(),
            tail => head + tail,
        }
    }

    /// Appends the canonical text (canonical JSON c1): laid out as RFC 8785 does, with every digit kept.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        if self.is_zero() {
            out.push(b'0');
            return;
        }
        if self.negative {
            out.push(b'-');
        }
        let digits = self.digits();
        let (digits, point) = (digits.as_bytes(), self.point);
        let length = as_i64(digits.len());
        if length <= point && point <= 21 {
            out.extend_from_slice(digits);
            out.extend((length..point).map(|_| b'0'));
        } else if 0 < point && point <= 21 {
            let (integer, fraction) = split_at(digits, point);
            out.extend_from_slice(integer);
            out.push(b'.');
            out.extend_from_slice(fraction);
        } else if -6 < point && point <= 0 {
            out.extend_from_slice(b"0.");
            out.extend((point..0).map(|_| b'0'));
            out.extend_from_slice(digits);
        } else {
            write_scientific(digits, point - 1, out);
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self
                .point
                .cmp(&other.point)
                .then_with(|| self.head.cmp(&other.head))
                .then_with(|| self.tail.cmp(&other.tail)),
        }
    }
}

/// 10 to the power of `exponent`, modulo a number of 64 bits.
fn power_of_ten(mut exponent: u64, modulus: u128) -> u128 {
    let (mut power, mut base) = (1 % modulus, 10 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    power
}

fn write_scientific(digits: &[u8], exponent: i64, out: &mut Vec<u8>) {
    let (first, rest) = split_at(digits, 1);
    out.extend_from_slice(first);
    if !rest.is_empty() {
        out.push(b'.');
        out.extend_from_slice(rest);
    }
    out.extend_from_slice(format!("e{exponent:+}").as_bytes());
}

fn split_at(digits: &[u8], at: i64) -> (&[u8], &[u8]) {
    usize::try_from(at)
        .ok()
        .and_then(|at| digits.split_at_checked(at))
        .unwrap_or((digits, &[]))
}

fn as_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Self {
        // INVARIANT: the text of an integer is a JSON number.
        Self::parse(&value.to_string()).unwrap_or(Self::ZERO)
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        let magnitude = Self::from(value.unsigned_abs());
        Self {
            negative: value < 0,
            ..magnitude
        }
    }
}

impl From<i32> for Decimal {
    fn from(value: i32) -> Self {
        Self::from(i64::from(value))
    }
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        Self::parse(text)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_canonical(&mut text);
        f.pad(&String::from_utf8_lossy(&text))
    }
}

/// As a string holding the canonical text, so that no reader passes it through binary floating point.
impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;

use proptest::prelude::*;

use super::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

#[test]
fn equal_values_are_equal_however_they_are_written() {
    for (left, right) in [
        ("1e2", "100"),
        ("100.000", "1E+2"),
        ("-0", "0.00e7"),
        ("0.001", "1e-3"),
        ("12345678901234567890123", "1234567890123456789012.3e1"),
    ] {
        assert_eq!(decimal(left), decimal(right), "{left} {right}");
        assert_eq!(decimal(left).to_string(), decimal(right).to_string());
    }
}

#[test]
fn neighbours_beyond_binary_floating_point_are_distinct() {
    assert!(decimal("9007199254740993") > decimal("9007199254740992"));
    assert!(decimal("10000000000000000000000000001") > decimal("10000000000000000000000000000"));
    assert!(decimal("-10000000000000000000000000001") < decimal("-10000000000000000000000000000"));
    assert_ne!(decimal("0.1000000000000000000000000001"), decimal("0.1"));
}

#[test]
fn the_canonical_text_of_the_hugest_numbers_is_accepted_again() {
    for text in [
        "1e999999999999999999",
        "10e999999999999999998",
        "0.1e-999999999999999998",
        "0.001e999999999999999999",
        "123e-999999999999999999",
        "0e999999999999999999",
        "0.0e-999999999999999999",
    ] {
        let canonical = decimal(text).to_string();
        assert_eq!(decimal(&canonical), decimal(text), "{text}");
    }
    for text in [
        "10e999999999999999999",
        "0.1e-999999999999999999",
        "-12.5e999999999999999999",
    ] {
        assert_eq!(Decimal::parse(text), Err(DecimalError::Exponent), "{text}");
    }
}

#[test]
fn a_huge_exponent_costs_nothing() {
    assert!(decimal("1e999999999") > decimal("9e999999998"));
    assert_eq!(decimal("1e999999999").to_string(), "1e+999999999");
    assert_eq!(decimal("0.00e999999999999999999"), Decimal::ZERO);
    assert_eq!(
        Decimal::parse("1e9999999999999999999"),
        Err(DecimalError::Exponent)
    );
}

#[test]
fn the_canonical_text_is_laid_out_as_rfc_8785_does() {
    for (text, canonical) in [
        ("-0.0", "0"),
        ("1.50", "1.5"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("-12.5e-9", "-1.25e-8"),
        ("18446744073709551616", "18446744073709551616"),
        ("1234567890123456789012345", "1.234567890123456789012345e+24"),
    ] {
        assert_eq!(decimal(text).to_string(), canonical);
    }
}

#[test]
fn text_that_is_no_json_number_is_refused() {
    for text in [
        "", "-", "01", "1.", ".5", "+1", "1e", "1e+", "0x1", "NaN", "1 ", "--1",
    ] {
        assert_eq!(Decimal::parse(text), Err(DecimalError::Syntax), "{text}");
    }
}

proptest! {
    #[test]
    fn order_agrees_with_exact_integer_order(left: i128, right: i128, scale in 0u32..4) {
        let (a, b) = (decimal(&format!("{left}e-{scale}")), decimal(&format!("{right}e-{scale}")));
        prop_assert_eq!(a.cmp(&b), left.cmp(&right));
        prop_assert_eq!(a == b, left == right);
    }

    #[test]
    fn the_canonical_text_reads_back_as_the_same_value(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?") {
        let value = decimal(&text);
        let canonical = value.to_string();
        prop_assert_eq!(&decimal(&canonical), &value);
        prop_assert_eq!(decimal(&canonical).to_string(), canonical);
    }

    #[test]
    fn the_canonical_text_of_a_double_is_its_shortest_form(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
        let text = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(decimal(&text).to_string().parse::<f64>().unwrap(), if value == 0.0 { 0.0 } else { value });
    }
}

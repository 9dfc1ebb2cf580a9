//! Selectors and conditions that no call can satisfy.

use tools::decimal::Decimal;

use crate::document::{Action, Base, Condition, Field, Rule, Scalar, Selector, Step, TargetKind, Test};

/// Why no call can make an allow rule true; `None` when some can, as far as can be seen. A deny or an approval
/// that can be undecided still tightens, so those are never dead by their condition.
pub(super) fn never_holds(rule: &Rule) -> Option<String> {
    if rule.action != Action::Allow {
        return None;
    }
    rule.selectors
        .iter()
        .find_map(unreachable_selector)
        .or_else(|| rule.condition.as_ref().and_then(contradiction))
}

fn unreachable_selector(selector: &Selector) -> Option<String> {
    let Selector::Targets(TargetKind::Paths, globs) = selector else {
        return None;
    };
    let is_crooked = |text: &str| {
        text.contains("//")
            || text.split('/').any(|part| part == "." || part == "..") && !text.starts_with("..")
    };
    globs
        .iter()
        .all(|glob| is_crooked(glob.as_str()))
        .then(|| "paths are compared without \".\", \"..\" and \"//\", which its patterns need".to_owned())
}

fn contradiction(condition: &Condition) -> Option<String> {
    match condition {
        Condition::All(parts) => parts
            .iter()
            .find_map(contradiction)
            .or_else(|| contradicting_tests(parts)),
        Condition::Any(parts) => {
            let found: Vec<Option<String>> = parts.iter().map(contradiction).collect();
            found.into_iter().collect::<Option<Vec<_>>>()?.into_iter().next()
        }
        Condition::Not(_) | Condition::Test(_) => None,
    }
}

fn contradicting_tests(parts: &[Condition]) -> Option<String> {
    let tests: Vec<&Test> = parts
        .iter()
        .filter_map(|part| match part {
            Condition::Test(test) if is_single(&test.field) => Some(test),
            _ => None,
        })
        .collect();
    for (index, one) in tests.iter().enumerate() {
        for other in tests.iter().skip(index + 1) {
            if one.field == other.field && excludes(one, other) {
                return Some(format!("its tests on \"{}\" exclude each other", one.field));
            }
        }
    }
    None
}

/// Whether the field is one value, not several.
fn is_single(field: &Field) -> bool {
    match field {
        Field::Argument(path) => !path
            .steps()
            .iter()
            .any(|step| matches!(step, Step::Some | Step::Every)),
        Field::Agent | Field::User | Field::Session => true,
    }
}

/// Whether no value passes both tests.
fn excludes(one: &Test, other: &Test) -> bool {
    let (first, second) = (one.operator, other.operator);
    if first.base == second.base && first.negated != second.negated && same_values(one, other) {
        return true;
    }
    let absent = |test: &Test| test.operator.base == Base::Exists && test.operator.negated;
    let needs = |test: &Test| test.operator.base != Base::Exists || !test.operator.negated;
    if absent(one) && needs(other) || absent(other) && needs(one) {
        return true;
    }
    if let (Some(one), Some(other)) = (exact(one), exact(other)) {
        return !one.iter().any(|value| other.contains(value));
    }
    below_above(one, other) || below_above(other, one)
}

fn same_values(one: &Test, other: &Test) -> bool {
    one.values == other.values
}

/// The only values that pass a test.
fn exact(test: &Test) -> Option<&[Scalar]> {
    (matches!(test.operator.base, Base::Equal | Base::In) && !test.operator.negated).then_some(&*test.values)
}

/// `x < a` together with `x > b` where `b >= a`.
fn below_above(upper: &Test, lower: &Test) -> bool {
    let number = |test: &Test| match test.values.as_slice() {
        [Scalar::Number(number)] => Some(number.clone()),
        _ => None,
    };
    let (Some(top), Some(bottom)): (Option<Decimal>, Option<Decimal>) = (number(upper), number(lower)) else {
        return false;
    };
    match (upper.operator.base, lower.operator.base) {
        (Base::Less, Base::Greater | Base::GreaterOrEqual | Base::Equal)
        | (Base::LessOrEqual, Base::Greater) => bottom >= top && !lower.operator.negated,
        (Base::LessOrEqual, Base::GreaterOrEqual | Base::Equal) => bottom > top && !lower.operator.negated,
        (Base::Equal, Base::Greater) => bottom >= top && !upper.operator.negated,
        (Base::Equal, Base::GreaterOrEqual) => bottom > top && !upper.operator.negated,
        _ => false,
    }
}

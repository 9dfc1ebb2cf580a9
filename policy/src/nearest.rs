//! The nearest valid name, for "did you mean" hints.

/// The candidate that a misspelt `name` most likely meant, or `None` when none is near.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let wanted: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    let allowed = (wanted.len() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let letters: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
            let distance = distance(&wanted, &letters);
            let starts = wanted.len() >= 3 && (letters.starts_with(&wanted) || wanted.starts_with(&letters));
            (distance <= allowed || starts).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `did you mean "x"?` for the nearest candidate, else the list of the valid names when it is short.
pub fn hint<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str> + Clone) -> Option<String> {
    if let Some(found) = nearest(name, candidates.clone()) {
        return Some(format!("did you mean \"{found}\"?"));
    }
    let all: Vec<&str> = candidates.into_iter().collect();
    (!all.is_empty() && all.len() <= 24).then(|| format!("valid are {}", all.join(", ")))
}

/// Edits (insert, remove, replace, swap of neighbours) between two words.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous_left = None;
    for (row, &from) in left.iter().enumerate() {
        let mut line = Vec::with_capacity(right.len() + 1);
        line.push(row + 1);
        let mut previous_right = None;
        for (column, &to) in right.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut best = (at(&last, column) + usize::from(from != to))
                .min(at(&last, column + 1) + 1)
                .min(at(&line, column) + 1);
            if column > 0 && previous_left == Some(to) && previous_right == Some(from) {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            line.push(best);
            previous_right = Some(to);
        }
        before_last = std::mem::replace(&mut last, line);
        previous_left = Some(from);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_nearest() {
        let names = ["contains", "not_contains", "starts_with", "in"];
        assert_eq!(nearest("contain", names), Some("contains"));
        assert_eq!(nearest("start_with", names), Some("starts_with"));
        assert_eq!(nearest("cnotains", names), Some("contains"));
        assert_eq!(nearest("frobnicate", names), None);
    }

    #[test]
    fn a_hint_without_a_near_name_lists_the_valid_ones() {
        assert_eq!(
            hint("frob", ["allow", "deny"]).as_deref(),
            Some("valid are allow, deny")
        );
    }
}

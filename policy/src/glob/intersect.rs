//! Do two patterns have a text in common?

use super::Piece;

/// One character of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Any,
    One,
    Literal(char),
}

fn units(pieces: &[Piece]) -> Vec<Unit> {
    let mut units = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Any => units.push(Unit::Any),
            Piece::One => units.push(Unit::One),
            Piece::Text(text) => units.extend(text.chars().map(Unit::Literal)),
        }
    }
    units
}

/// Walks both patterns at once. `reachable[j]` says whether some text is consumed by the left pattern so far
/// and by the first `j` units of the right one.
pub(super) fn intersects(left: &[Piece], right: &[Piece]) -> bool {
    let (left, right) = (units(left), units(right));
    let mut reachable = vec![true];
    for unit in &right {
        let so_far = reachable.last().copied().unwrap_or(false);
        reachable.push(so_far && *unit == Unit::Any);
    }
    for left_unit in &left {
        let mut next = Vec::with_capacity(reachable.len());
        // Nothing of the right pattern is used: only a `*` of the left goes on.
        let mut before = reachable.first().copied().unwrap_or(false);
        next.push(before && *left_unit == Unit::Any);
        for (right_unit, &above) in right.iter().zip(reachable.iter().skip(1)) {
            let beside = next.last().copied().unwrap_or(false);
            let both = match (left_unit, right_unit) {
                (Unit::Any, _) => above || beside,
                (_, Unit::Any) => beside || above,
                (Unit::Literal(one), Unit::Literal(other)) => before && one == other,
                (Unit::One, _) | (_, Unit::One) => before,
            };
            next.push(both);
            before = above;
        }
        reachable = next;
    }
    reachable.last().copied().unwrap_or(false)
}

//! Does one pattern match everything that another matches?

use super::{Glob, ToolGlob};

impl Glob {
    /// Whether every text that `other` matches is matched by this pattern too. Errs on the side of "no".
    pub fn covers(&self, other: &Glob) -> bool {
        if self.is_any() || self == other {
            return true;
        }
        match other.literal() {
            Some(text) => self.matches(text),
            None => {
                let wide: Vec<char> = self.as_str().chars().collect();
                let narrow: Vec<char> = other.as_str().chars().collect();
                walk(&wide, &narrow)
            }
        }
    }
}

/// Matches `wide` against `narrow` as a text in which `*` is matched by `*` only, and `?` by `*` and `?`.
fn walk(wide: &[char], narrow: &[char]) -> bool {
    // reached[i]: the pattern up to i covers what was read of the other.
    let mut reached = vec![false; wide.len() + 1];
    set(&mut reached, 0);
    skip_stars(&mut reached, wide);
    for &letter in narrow {
        let mut next = vec![false; wide.len() + 1];
        for (at, &piece) in wide.iter().enumerate() {
            if !is_set(&reached, at) {
                continue;
            }
            match piece {
                '*' => set(&mut next, at),
                '?' if letter != '*' => set(&mut next, at + 1),
                same if same == letter => set(&mut next, at + 1),
                _ => {}
            }
        }
        skip_stars(&mut next, wide);
        reached = next;
    }
    is_set(&reached, wide.len())
}

fn set(reached: &mut [bool], at: usize) {
    if let Some(place) = reached.get_mut(at) {
        *place = true;
    }
}

fn is_set(reached: &[bool], at: usize) -> bool {
    reached.get(at).copied().unwrap_or(false)
}

fn skip_stars(reached: &mut [bool], wide: &[char]) {
    for (at, &piece) in wide.iter().enumerate() {
        if piece == '*' && is_set(reached, at) {
            set(reached, at + 1);
        }
    }
}

impl ToolGlob {
    /// Whether every governed name that `other` covers is covered by this pattern too. Errs on the side of "no".
    pub fn covers(&self, other: &ToolGlob) -> bool {
        if self.glob().is_any() {
            return true;
        }
        if other.glob().is_any() {
            return false;
        }
        self.glob().covers(other.glob()) && (self.names_a_kind() || !other.names_a_kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_what_is_narrower() {
        for (wide, narrow, expected) in [
            ("*", "a.*", true),
            ("a.*", "a.read_*", true),
            ("a.*", "*.read", false),
            ("*.read_*", "a.read_*", true),
            ("a?c", "abc", true),
            ("a?c", "a*c", false),
            ("a*c", "a?c", true),
            ("*a*", "xa?", true),
            ("a*", "b*", false),
            ("a*b*c", "a*b*b*c", true),
            ("a", "a", true),
            ("a", "a*", false),
        ] {
            let glob = |text: &str| text.parse::<Glob>().unwrap();
            assert_eq!(glob(wide).covers(&glob(narrow)), expected, "{wide} {narrow}");
        }
    }

    #[test]
    fn only_the_star_alone_covers_every_kind() {
        let tool = |text: &str| text.parse::<ToolGlob>().unwrap();
        assert!(tool("*").covers(&tool("x.resource:*")));
        assert!(!tool("x.*").covers(&tool("x.resource:*")));
        assert!(!tool("**").covers(&tool("*")));
        assert!(tool("x.*").covers(&tool("x.read")));
    }
}

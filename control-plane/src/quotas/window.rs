//! One sliding window. Pure: time is an argument.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::store::quotas::{QuotaLot, TakenLot};

/// Lots that one window remembers; beyond that nothing is given out until some are older than the window.
const MOST_LOTS: usize = 100_000;
/// When a window that is full of lots, or empty, is worth another look.
const SOON: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Lot {
    taken_at: Duration,
    granted: u32,
    is_returned: bool,
}

/// The lots that were taken in the last minute.
#[derive(Debug)]
pub(super) struct Window {
    length: Duration,
    lots: HashMap<Arc<str>, Lot>,
    by_age: BTreeSet<(Duration, Arc<str>)>,
    used: u64,
}

impl Window {
    pub(super) fn new(length: Duration) -> Self {
        Self {
            length,
            lots: HashMap::new(),
            by_age: BTreeSet::new(),
            used: 0,
        }
    }

    /// Takes a lot; repeating it takes nothing twice.
    pub(super) fn take(&mut self, now: Duration, lease_id: &str, want: u32, limit: u64) -> QuotaLot {
        self.forget(now);
        let granted = match self.lots.get(lease_id) {
            Some(lot) => lot.granted,
            None => {
                let left = u32::try_from(limit.saturating_sub(self.used)).unwrap_or(u32::MAX);
                let granted = if self.lots.len() < MOST_LOTS {
                    want.min(left)
                } else {
                    0
                };
                if granted == 0 {
                    let retry_after = Some(self.frees_in(now));
                    return QuotaLot { granted, retry_after };
                }
                self.put(lease_id, now, granted);
                granted
            }
        };
        QuotaLot {
            granted,
            retry_after: None,
        }
    }

    /// Gives back what was not used of a lot, once.
    pub(super) fn give_back(&mut self, lease_id: &str, unused: u32) {
        let Some(lot) = self.lots.get_mut(lease_id).filter(|lot| !lot.is_returned) else {
            return;
        };
        let given = unused.min(lot.granted);
        lot.is_returned = true;
        lot.granted -= given;
        self.used = self.used.saturating_sub(given.into());
    }

    /// Counts lots that were given out elsewhere, unless they are known.
    pub(super) fn carry(&mut self, now: Duration, lots: &[TakenLot]) {
        for lot in lots {
            let is_over = lot.age >= self.length || self.lots.len() >= MOST_LOTS;
            if !is_over && !self.lots.contains_key(lot.lease_id.as_str()) {
                self.put(&lot.lease_id, now.saturating_sub(lot.age), lot.granted);
            }
        }
        self.forget(now);
    }

    /// The lots that still count, oldest first.
    pub(super) fn taken(&mut self, now: Duration) -> Vec<TakenLot> {
        self.forget(now);
        self.by_age
            .iter()
            .filter_map(|(taken_at, lease_id)| {
                let lot = self.lots.get(lease_id)?;
                Some(TakenLot {
                    lease_id: lease_id.as_ref().to_owned(),
                    age: now.saturating_sub(*taken_at),
                    granted: lot.granted,
                })
            })
            .collect()
    }

    /// The youngest lot, with its age.
    pub(super) fn youngest(&self, now: Duration) -> Option<(Arc<str>, Duration)> {
        let (taken_at, lease_id) = self.by_age.last()?;
        Some((Arc::clone(lease_id), now.saturating_sub(*taken_at)))
    }

    pub(super) fn used(&mut self, now: Duration) -> u64 {
        self.forget(now);
        self.used
    }

    /// The lots stay known, and count nothing.
    pub(super) fn reset(&mut self) {
        self.lots.values_mut().for_each(|lot| lot.granted = 0);
        self.used = 0;
    }

    /// Nothing would be lost by forgetting it.
    pub(super) fn is_idle(&self, now: Duration) -> bool {
        self.by_age
            .last()
            .is_none_or(|(taken_at, _)| *taken_at + self.length <= now)
    }

    fn put(&mut self, lease_id: &str, taken_at: Duration, granted: u32) {
        let lease_id: Arc<str> = Arc::from(lease_id);
        self.by_age.insert((taken_at, Arc::clone(&lease_id)));
        let lot = Lot {
            taken_at,
            granted,
            is_returned: false,
        };
        self.lots.insert(lease_id, lot);
        self.used += u64::from(granted);
    }

    fn forget(&mut self, now: Duration) {
        while let Some((taken_at, _)) = self.by_age.first() {
            if *taken_at + self.length > now {
                return;
            }
            let Some((_, lease_id)) = self.by_age.pop_first() else {
                return;
            };
            if let Some(lot) = self.lots.remove(&lease_id) {
                self.used = self.used.saturating_sub(lot.granted.into());
            }
        }
    }

    /// When the oldest lot that counts is older than the window.
    fn frees_in(&self, now: Duration) -> Duration {
        self.by_age
            .iter()
            .filter_map(|(_, lease_id)| self.lots.get(lease_id))
            .find(|lot| lot.granted > 0)
            .map_or(SOON, |lot| (lot.taken_at + self.length).saturating_sub(now))
            .max(Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(1000 + seconds)
    }

    fn granted(window: &mut Window, second: u64, lease_id: &str, want: u32) -> u32 {
        window.take(at(second), lease_id, want, 10).granted
    }

    #[test]
    fn what_was_taken_comes_back_a_minute_later_and_not_before() {
        let mut window = Window::new(MINUTE);
        assert_eq!(granted(&mut window, 0, "a", 6), 6);
        assert_eq!(granted(&mut window, 30, "b", 6), 4);
        let none = window.take(at(40), "c", 1, 10);
        assert_eq!(
            (none.granted, none.retry_after),
            (0, Some(Duration::from_secs(20)))
        );
        assert_eq!(granted(&mut window, 60, "d", 9), 6);
        assert_eq!(granted(&mut window, 89, "e", 9), 0);
        assert_eq!(granted(&mut window, 90, "f", 9), 4);
    }

    #[test]
    fn a_lot_is_taken_once_and_given_back_once() {
        let mut window = Window::new(MINUTE);
        assert_eq!(granted(&mut window, 0, "a", 8), 8);
        assert_eq!(granted(&mut window, 1, "a", 8), 8);
        window.give_back("a", 5);
        window.give_back("a", 3);
        window.give_back("unknown", 3);
        assert_eq!(window.used(at(1)), 3);
        window.reset();
        assert_eq!((window.used(at(1)), granted(&mut window, 1, "a", 8)), (0, 0));
        assert_eq!(granted(&mut window, 2, "b", 20), 10);
    }

    #[test]
    fn a_lot_from_elsewhere_counts_once_and_for_the_rest_of_its_minute() {
        let mut window = Window::new(MINUTE);
        let lot = |lease_id: &str, age, granted| TakenLot {
            lease_id: lease_id.to_owned(),
            age: Duration::from_secs(age),
            granted,
        };
        let known = [lot("a", 50, 4), lot("b", 60, 4), lot("c", 1, 2)];
        window.carry(at(0), &known);
        window.carry(at(0), &known);
        assert_eq!(window.used(at(0)), 6);
        assert_eq!(window.taken(at(1)), [lot("a", 51, 4), lot("c", 2, 2)]);
        assert_eq!(window.used(at(10)), 2);
        assert!(!window.is_idle(at(58)) && window.is_idle(at(59)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut window = Window::new(MINUTE);
        for number in 0..MOST_LOTS {
            assert_eq!(window.take(at(0), &number.to_string(), 1, u64::MAX).granted, 1);
        }
        assert_eq!(window.take(at(0), "one more", 1, u64::MAX).granted, 0);
        assert_eq!(window.take(at(60), "later", 1, u64::MAX).granted, 1);
    }
}

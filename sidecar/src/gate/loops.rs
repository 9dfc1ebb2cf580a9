//! Loop detection: the same agent, tool and arguments too often in ten seconds. Local to a sidecar.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tools::id::{AgentId, ToolName};

/// The window, in seconds.
const WINDOW: usize = 10;
/// Distinct calls that one generation remembers; beyond that the older half is forgotten early.
const CAPACITY: usize = 16_384;

/// Counts equal calls.
///
/// Two generations of counters take turns: what was not asked for during a whole window is dropped with its
/// generation, so memory is bounded and no call pays for cleaning up.
pub struct LoopDetector {
    hasher: RandomState,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    young: HashMap<u64, Counter>,
    old: HashMap<u64, Counter>,
    since: u64,
}

/// Calls per second of the last [`WINDOW`] seconds.
#[derive(Clone, Copy, Default)]
struct Counter {
    last: u64,
    per_second: [u32; WINDOW],
}

impl Counter {
    fn add(&mut self, second: u64) -> u64 {
        let passed = second.saturating_sub(self.last).min(WINDOW as u64);
        for step in 1..=passed {
            if let Some(slot) = self.per_second.get_mut(slot(self.last + step)) {
                *slot = 0;
            }
        }
        self.last = self.last.max(second);
        if let Some(count) = self.per_second.get_mut(slot(self.last)) {
            *count = count.saturating_add(1);
        }
        self.per_second.iter().map(|count| u64::from(*count)).sum()
    }
}

fn slot(second: u64) -> usize {
    usize::try_from(second % WINDOW as u64).unwrap_or_default()
}

impl LoopDetector {
    /// A detector that has seen nothing.
    pub fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            state: Mutex::default(),
        }
    }

    /// Counts one call at boot time `now`. Says how often the same call came within the window, this one included.
    pub fn count(&self, agent: &AgentId, tool: &ToolName, arguments: &[u8], now: Duration) -> u64 {
        let key = self.hasher.hash_one((agent, tool, arguments));
        let second = now.as_secs();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if second.saturating_sub(state.since) >= WINDOW as u64 || state.young.len() >= CAPACITY {
            state.old = std::mem::take(&mut state.young);
            state.since = second;
        }
        let kept = state.old.remove(&key);
        state
            .young
            .entry(key)
            .or_insert(kept.unwrap_or_default())
            .add(second)
    }
}

impl Default for LoopDetector {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(detector: &LoopDetector, arguments: &str, second: u64) -> u64 {
        detector.count(
            &"a".parse().unwrap(),
            &"fs.read".parse().unwrap(),
            arguments.as_bytes(),
            Duration::from_secs(second),
        )
    }

    #[test]
    fn equal_calls_are_counted_within_ten_seconds() {
        let detector = LoopDetector::new();
        for (second, expected) in [
            (100, 1),
            (100, 2),
            (105, 3),
            (109, 4),
            (110, 3),
            (118, 3),
            (200, 1),
        ] {
            assert_eq!(count(&detector, "{}", second), expected, "at {second}");
        }
    }

    #[test]
    fn other_arguments_are_another_call() {
        let detector = LoopDetector::new();
        assert_eq!(count(&detector, "{}", 1), 1);
        assert_eq!(count(&detector, "{\"a\":1}", 1), 1);
        assert_eq!(count(&detector, "{}", 1), 2);
    }

    #[test]
    fn memory_is_bounded() {
        let detector = LoopDetector::new();
        for call in 0..CAPACITY * 3 {
            count(&detector, &call.to_string(), 1);
        }
        let state = detector.state.lock().unwrap();
        assert!(state.young.len() + state.old.len() <= 2 * CAPACITY);
    }
}

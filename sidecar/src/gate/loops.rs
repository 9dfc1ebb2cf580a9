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
    /// Calls that wait for a person, and until when.
    waiting: HashMap<u64, u64>,
}

/// Names equal calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopKey(u64);

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

    /// The key of a call: equal for the same agent, tool and arguments.
    pub fn key(&self, agent: &AgentId, tool: &ToolName, arguments: &[u8]) -> LoopKey {
        LoopKey(self.hasher.hash_one((agent, tool, arguments)))
    }

    /// Counts one call at boot time `now`. Says how often the same call came within the window, this one included; 0
    /// while it waits for a person, because asking again is no loop.
    pub fn count(&self, LoopKey(key): LoopKey, now: Duration) -> u64 {
        let second = now.as_secs();
        let mut state = self.lock();
        if !state.waiting.is_empty() {
            state.waiting.retain(|_, until| *until > second);
            if state.waiting.contains_key(&key) {
                return 0;
            }
        }
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

    /// The call waits for a person until boot time `until` at most.
    pub fn waits(&self, LoopKey(key): LoopKey, until: Duration) {
        let mut state = self.lock();
        if state.waiting.len() < CAPACITY {
            state.waiting.insert(key, until.as_secs());
        }
    }

    /// The call no longer waits.
    pub fn no_longer_waits(&self, LoopKey(key): LoopKey) {
        self.lock().waiting.remove(&key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn key(detector: &LoopDetector, arguments: &str) -> LoopKey {
        detector.key(
            &"a".parse().unwrap(),
            &"fs.read".parse().unwrap(),
            arguments.as_bytes(),
        )
    }

    fn count(detector: &LoopDetector, arguments: &str, second: u64) -> u64 {
        detector.count(key(detector, arguments), Duration::from_secs(second))
    }

    #[test]
    fn asking_again_for_a_pending_approval_is_no_loop() {
        let detector = LoopDetector::new();
        assert_eq!(count(&detector, "{}", 1), 1);
        detector.waits(key(&detector, "{}"), Duration::from_secs(300));
        assert_eq!(count(&detector, "{}", 2), 0);
        detector.no_longer_waits(key(&detector, "{}"));
        assert_eq!(count(&detector, "{}", 3), 2);
        detector.waits(key(&detector, "{}"), Duration::from_secs(5));
        assert_eq!(count(&detector, "{}", 5), 3);
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
        let state = detector.lock();
        assert!(state.young.len() + state.old.len() <= 2 * CAPACITY);
    }
}

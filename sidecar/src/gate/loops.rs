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
    /// Calls that wait for a person.
    waiting: HashMap<u64, Waiting>,
}

/// One call that waits for a person: asking again is counted apart from calling.
struct Waiting {
    /// Second until which it waits at most.
    until: u64,
    asked: Counter,
}

/// How often a call came within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came {
    /// How often, this time included.
    pub times: u64,
    /// It was asked for again while it waits for a person.
    pub is_pending: bool,
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

    /// Counts one call at boot time `now`. While the call waits for a person, only what was asked in that time counts: asking again
    /// is no loop of calls.
    pub fn count(&self, LoopKey(key): LoopKey, now: Duration) -> Came {
        let second = now.as_secs();
        let mut state = self.lock();
        if !state.waiting.is_empty() {
            state.waiting.retain(|_, waiting| waiting.until > second);
            if let Some(waiting) = state.waiting.get_mut(&key) {
                return Came {
                    times: waiting.asked.add(second),
                    is_pending: true,
                };
            }
        }
        if second.saturating_sub(state.since) >= WINDOW as u64 || state.young.len() >= CAPACITY {
            state.old = std::mem::take(&mut state.young);
            state.since = second;
        }
        let kept = state.old.remove(&key);
        let counter = state.young.entry(key).or_insert(kept.unwrap_or_default());
        Came {
            times: counter.add(second),
            is_pending: false,
        }
    }

    /// The call waits for a person until boot time `until` at most.
    pub fn waits(&self, LoopKey(key): LoopKey, until: Duration) {
        let mut state = self.lock();
        let until = until.as_secs();
        if let Some(waiting) = state.waiting.get_mut(&key) {
            waiting.until = until;
        } else if state.waiting.len() < CAPACITY {
            let asked = Counter::default();
            state.waiting.insert(key, Waiting { until, asked });
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
        came(detector, arguments, second).times
    }

    fn came(detector: &LoopDetector, arguments: &str, second: u64) -> Came {
        detector.count(key(detector, arguments), Duration::from_secs(second))
    }

    #[test]
    fn asking_again_for_a_pending_approval_is_no_loop() {
        let detector = LoopDetector::new();
        assert_eq!(count(&detector, "{}", 1), 1);
        detector.waits(key(&detector, "{}"), Duration::from_secs(300));
        for times in 1..=30 {
            let is_pending = true;
            assert_eq!(came(&detector, "{}", 2), Came { times, is_pending });
            detector.waits(key(&detector, "{}"), Duration::from_secs(300));
        }
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

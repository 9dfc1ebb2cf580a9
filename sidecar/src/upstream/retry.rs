//! When a connection to an upstream is tried again.

use std::time::Duration;

/// When a connection to an upstream is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// First wait for an upstream that could not be reached at start; it doubles with each failure.
    pub first: Duration,
    /// First wait after a connection that worked has ended; it doubles while connections keep ending soon. Jittered.
    pub quick: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// A connection that lived this long was no part of a crash loop.
    pub stable: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(5),
            quick: Duration::from_millis(200),
            longest: Duration::from_secs(300),
            stable: Duration::from_secs(30),
        }
    }
}

/// The waits of one upstream.
#[derive(Debug)]
pub(super) struct RetrySchedule {
    policy: RetryPolicy,
    step: Duration,
    is_quick: bool,
}

impl RetrySchedule {
    pub(super) fn new(policy: RetryPolicy) -> Self {
        Self {
            policy,
            step: policy.first,
            is_quick: false,
        }
    }

    /// The wait after a try that did not connect.
    pub(super) fn after_failure(&mut self) -> Duration {
        let wait = self.step.min(self.policy.longest);
        self.step = wait.saturating_mul(2);
        if self.is_quick { jittered(wait) } else { wait }
    }

    /// The wait after a connection that worked for `lived`.
    pub(super) fn after_loss(&mut self, lived: Duration) -> Duration {
        if !self.is_quick || lived >= self.policy.stable {
            self.is_quick = true;
            self.step = self.policy.quick;
        }
        self.after_failure()
    }
}

/// Between half of `wait` and all of it.
fn jittered(wait: Duration) -> Duration {
    let mut bytes = [0_u8; 4];
    if getrandom::fill(&mut bytes).is_err() {
        return wait;
    }
    let share = f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX);
    wait.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_that_never_answered_is_tried_after_5_s_then_twice_as_long_up_to_5_min() {
        let mut schedule = RetrySchedule::new(RetryPolicy::default());
        let waits: Vec<u64> = (0..8).map(|_| schedule.after_failure().as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn a_crash_is_answered_quickly_and_a_crash_loop_ever_more_slowly() {
        let mut schedule = RetrySchedule::new(RetryPolicy::default());
        let soon = Duration::from_secs(1);
        for bound in [200, 400, 800, 1600] {
            let wait = schedule.after_loss(soon).as_millis();
            assert!((bound / 2..=bound).contains(&wait), "{wait} of {bound}");
        }
        for _ in 0..20 {
            schedule.after_loss(soon);
        }
        assert!(schedule.after_loss(soon) >= Duration::from_secs(150));
        assert!(schedule.after_loss(Duration::from_secs(60)) <= Duration::from_millis(200));
    }
}

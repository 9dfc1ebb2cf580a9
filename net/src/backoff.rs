//! Jittered exponential backoff for everything that reconnects.

use std::time::Duration;

/// The delays between attempts: twice as long each time, up to a bound, each cut by a random part so
/// that a fleet does not come back in step.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Delays from `first` to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first.min(longest),
        }
    }

    /// The delay before the next attempt: between half of the step and the whole of it.
    pub fn next_delay(&mut self) -> Duration {
        let step = self.next;
        self.next = step.saturating_mul(2).min(self.longest);
        let half = step / 2;
        half + half.mul_f64(random_fraction())
    }

    /// Starts over. Call it when the connection did something useful, not when it merely opened: a
    /// stream that closes right after opening must keep backing off.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.longest);
    }

    /// Waits for the next delay.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next_delay()).await;
    }
}

impl Default for Backoff {
    /// 100 ms to 15 s, as clients of the control plane use.
    fn default() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(15))
    }
}

/// A number in `0.0..=1.0`; without randomness the whole step is waited for.
fn random_fraction() -> f64 {
    getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_within_step(delay: Duration, step_ms: u64) {
        let step = Duration::from_millis(step_ms);
        assert!(
            delay >= step / 2 && delay <= step,
            "{delay:?} is not within the step {step:?}"
        );
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        for step in [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 15_000, 15_000] {
            assert_within_step(backoff.next_delay(), step);
        }
    }

    #[test]
    fn a_reset_starts_over() {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.next_delay();
        }
        backoff.reset();
        assert_within_step(backoff.next_delay(), 100);
    }

    #[test]
    fn delays_differ() {
        let delays: std::collections::HashSet<_> = (0..8)
            .map(|_| Backoff::new(Duration::from_secs(8), Duration::from_secs(8)).next_delay())
            .collect();
        assert!(delays.len() > 1);
    }
}

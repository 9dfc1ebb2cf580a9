//! Latencies in buckets whose width grows with the value: at most 0.8 % off, 60 KiB, nothing allocated per value.

use std::time::Duration;

/// Buckets per power of two, as a power of two.
const PRECISION: u32 = 7;
const BUCKETS: usize = (64 - PRECISION as usize + 1) << PRECISION;

/// Counts of durations, from which quantiles are read.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
        }
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, value: Duration) {
        let nanos = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(nanos)) {
            *count += 1;
            self.total += 1;
        }
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// How many durations were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The duration that `share` (0 to 1) of all do not exceed; zero when nothing was counted.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(middle(index));
            }
        }
        Duration::ZERO
    }

    /// Microseconds of a quantile.
    #[must_use]
    pub fn micros(&self, share: f64) -> f64 {
        self.quantile(share).as_secs_f64() * 1e6
    }
}

fn bucket(value: u64) -> usize {
    let bits = 64 - value.leading_zeros();
    let shift = bits.saturating_sub(PRECISION + 1);
    let base = (shift as usize) << PRECISION;
    base + (value >> shift) as usize
}

fn middle(bucket: usize) -> u64 {
    let shift = (bucket >> PRECISION).saturating_sub(1);
    let low = ((bucket - (shift << PRECISION)) as u64) << shift;
    low + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_within_one_percent_of_the_value() {
        for value in [
            0,
            1,
            127,
            128,
            255,
            256,
            59_000,
            118_000,
            4_000_000_000,
            u64::MAX / 3,
        ] {
            let mut histogram = Histogram::default();
            histogram.record(Duration::from_nanos(value));
            let read = histogram.quantile(0.5).as_nanos() as f64;
            assert!(
                (read - value as f64).abs() <= value as f64 * 0.01,
                "{value}: {read}"
            );
        }
    }

    #[test]
    fn quantiles_are_of_everything_that_was_counted() {
        let (mut low, mut high) = (Histogram::default(), Histogram::default());
        (0..99).for_each(|_| low.record(Duration::from_nanos(100)));
        high.record(Duration::from_secs(1));
        low.merge(&high);
        assert_eq!(low.total(), 100);
        assert_eq!(low.quantile(0.99), Duration::from_nanos(100));
        assert!(low.quantile(1.0) > Duration::from_millis(990));
    }

    #[test]
    fn every_value_has_a_bucket() {
        assert!(bucket(u64::MAX) < BUCKETS);
    }
}

//! Waiting for conditions, never for times.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long a condition may take on a slow, busy machine before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until `probe` gives a value; fails with what was waited for when it never does.
pub async fn until<T, F, P>(what: &str, mut probe: P) -> T
where
    P: FnMut() -> F,
    F: Future<Output = Option<T>>,
{
    let begun = Instant::now();
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Looks until two values are equal.
pub async fn until_equal<T, F, P>(what: &str, expected: T, mut probe: P)
where
    T: PartialEq + Debug,
    P: FnMut() -> F,
    F: Future<Output = T>,
{
    let begun = Instant::now();
    loop {
        let found = probe().await;
        if found == expected {
            return;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "waited {PATIENCE:?} in vain: {what}: {found:?} is not {expected:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

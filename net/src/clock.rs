//! The one clock. Ages and deadlines are measured on `CLOCK_BOOTTIME`, which goes on while the machine
//! sleeps and never jumps; wall time is for people and records only.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

/// How often a sleeper on the real clock looks again: runtime timers stand still while the machine
/// sleeps, boot time does not.
const RECHECK: Duration = Duration::from_secs(1);

/// What a broken clock shows: so late that every lease has ended.
const NEVER_FRESH: Duration = Duration::from_secs(1_000_000_000_000);

/// A cheap handle on time: the machine's, or a test's that is moved by hand.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Machine,
    Manual(Arc<watch::Sender<Manual>>),
}

#[derive(Clone, Debug)]
struct Manual {
    boot: Duration,
    wall_micros: i64,
    boot_id: Arc<str>,
}

impl Clock {
    /// The machine's clock.
    pub fn machine() -> Self {
        Self(Source::Machine)
    }

    /// A clock for tests that stands still until [`Clock::advance`] moves it. It starts one hour after
    /// its boot, at 2026-01-01T00:00:00Z.
    pub fn manual() -> Self {
        let start = Manual {
            boot: Duration::from_secs(3600),
            wall_micros: 1_767_225_600_000_000,
            boot_id: Arc::from("00000000-0000-4000-8000-000000000001"),
        };
        Self(Source::Manual(Arc::new(watch::Sender::new(start))))
    }

    /// Time since the machine started, including the time it slept.
    pub fn boot_now(&self) -> Duration {
        match &self.0 {
            Source::Machine => machine_boot_now(),
            Source::Manual(state) => state.borrow().boot,
        }
    }

    /// How long ago `moment` was; zero when it lies ahead.
    pub fn since(&self, moment: Duration) -> Duration {
        self.boot_now().saturating_sub(moment)
    }

    /// Wall time in Unix microseconds. It may jump: never measure an age with it.
    pub fn wall_micros(&self) -> i64 {
        match &self.0 {
            Source::Machine => machine_wall_micros(),
            Source::Manual(state) => state.borrow().wall_micros,
        }
    }

    /// Names this boot of the machine. Boot times of different boots cannot be compared.
    pub fn boot_id(&self) -> Arc<str> {
        match &self.0 {
            Source::Machine => machine_boot_id(),
            Source::Manual(state) => state.borrow().boot_id.clone(),
        }
    }

    /// Waits until boot time reaches `moment`. On a manual clock that is when a test moves it there.
    pub async fn sleep_until(&self, moment: Duration) {
        match &self.0 {
            Source::Machine => loop {
                let left = moment.saturating_sub(machine_boot_now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(RECHECK)).await;
            },
            Source::Manual(state) => {
                let mut watched = state.subscribe();
                // INVARIANT: `self` holds the sender, so the wait cannot fail.
                let _ = watched.wait_for(|now| now.boot >= moment).await;
            }
        }
    }

    /// Waits for `length` of boot time.
    pub async fn sleep(&self, length: Duration) {
        self.sleep_until(self.boot_now().saturating_add(length)).await;
    }

    /// Moves a manual clock forward, boot and wall time alike. The machine's clock is not moved.
    pub fn advance(&self, by: Duration) {
        self.change(|now| {
            now.boot = now.boot.saturating_add(by);
            now.wall_micros = now.wall_micros.saturating_add(micros(by));
        });
    }

    /// Lets a manual clock's wall time jump, as a wrong NTP answer would; boot time stays.
    pub fn set_wall_micros(&self, micros: i64) {
        self.change(|now| now.wall_micros = micros);
    }

    /// Restarts a manual clock's machine: another boot id, boot time from zero.
    pub fn reboot(&self, boot_id: &str) {
        self.change(|now| {
            now.boot = Duration::ZERO;
            now.boot_id = Arc::from(boot_id);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Manual)) {
        if let Source::Manual(state) = &self.0 {
            state.send_modify(change);
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::machine()
    }
}

/// A duration in microseconds, saturating.
pub fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

/// Unix microseconds as RFC 3339 text in UTC with microseconds, as JSON edges carry it.
pub fn rfc3339(unix_micros: i64) -> String {
    let format = time::macros::format_description!(
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z"
    );
    time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_micros) * 1000)
        .ok()
        .and_then(|moment| moment.format(&format).ok())
        .unwrap_or_else(|| format!("invalid time {unix_micros}"))
}

/// Unix microseconds from RFC 3339 text with any offset; `None` when it is not RFC 3339.
pub fn from_rfc3339(text: &str) -> Option<i64> {
    let moment = time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).ok()?;
    i64::try_from(moment.unix_timestamp_nanos().div_euclid(1000)).ok()
}

#[cfg(target_os = "linux")]
const BOOT_CLOCK: nix::time::ClockId = nix::time::ClockId::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: nix::time::ClockId = nix::time::ClockId::CLOCK_MONOTONIC;

fn machine_boot_now() -> Duration {
    BOOT_CLOCK.now().map_or(NEVER_FRESH, Duration::from)
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads wall time")]
fn machine_wall_micros() -> i64 {
    match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => micros(since),
        Err(before) => -micros(before.duration()),
    }
}

fn machine_boot_id() -> Arc<str> {
    static BOOT_ID: OnceLock<Arc<str>> = OnceLock::new();
    BOOT_ID
        .get_or_init(|| read_boot_id().unwrap_or_else(unknown_boot_id))
        .clone()
}

fn read_boot_id() -> Option<Arc<str>> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(Arc::from(text.trim()))
}

/// Without a boot id each process counts as its own boot, so that nothing kept is taken for fresh.
fn unknown_boot_id() -> Arc<str> {
    let random = getrandom::u64().unwrap_or_default();
    Arc::from(format!("unknown-{random:016x}-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_boot_time_goes_forward() {
        let clock = Clock::machine();
        let before = clock.boot_now();
        assert!(before > Duration::ZERO && before < NEVER_FRESH);
        assert!(clock.boot_now() >= before);
        assert_eq!(clock.boot_id(), clock.boot_id());
    }

    #[test]
    fn a_manual_clock_stands_still_until_it_is_moved() {
        let clock = Clock::manual();
        let (boot, wall) = (clock.boot_now(), clock.wall_micros());
        assert_eq!(clock.boot_now(), boot);
        clock.clone().advance(Duration::from_secs(5));
        assert_eq!(clock.since(boot), Duration::from_secs(5));
        assert_eq!(clock.wall_micros() - wall, 5_000_000);
    }

    #[test]
    fn a_jump_of_wall_time_does_not_move_boot_time() {
        let clock = Clock::manual();
        let boot = clock.boot_now();
        clock.set_wall_micros(0);
        assert_eq!((clock.boot_now(), clock.wall_micros()), (boot, 0));
    }

    #[test]
    fn a_reboot_changes_the_boot_id() {
        let clock = Clock::manual();
        let before = clock.boot_id();
        clock.reboot("another");
        assert_ne!(clock.boot_id(), before);
        assert_eq!(clock.boot_now(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_sleeper_on_a_manual_clock_wakes_when_it_is_moved_far_enough() {
        let clock = Clock::manual();
        let mut sleep = std::pin::pin!(clock.sleep(Duration::from_secs(10)));
        let mut is_done = async || {
            tokio::select! { biased; () = &mut sleep => true, () = std::future::ready(()) => false }
        };
        assert!(!is_done().await);
        clock.advance(Duration::from_secs(9));
        assert!(!is_done().await);
        clock.advance(Duration::from_secs(1));
        assert!(is_done().await);
    }

    #[test]
    fn times_are_written_in_utc_with_microseconds() {
        assert_eq!(rfc3339(1_767_225_600_000_001), "2026-01-01T00:00:00.000001Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(rfc3339(i64::MAX), format!("invalid time {}", i64::MAX));
    }

    #[test]
    fn times_are_read_with_any_offset() {
        assert_eq!(
            from_rfc3339("2026-01-01T01:00:00.000001+01:00"),
            Some(1_767_225_600_000_001)
        );
        assert_eq!(from_rfc3339("2026-01-01"), None);
    }
}

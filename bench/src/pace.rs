//! A clock that ticks more finely than tokio's, whose timers round to a millisecond.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Ticks at a fixed interval.
pub struct Pace(AsyncFd<Timer>);

impl Pace {
    /// Begins to tick now.
    ///
    /// # Errors
    /// When the system gives no timer.
    pub fn start(interval: Duration) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let interval = Expiration::Interval(TimeSpec::from_duration(interval));
        timer.set(interval, TimerSetTimeFlags::empty())?;
        #[allow(
            deprecated,
            reason = "its successor is unsafe; the descriptor stays the same and open as long as the timer lives"
        )]
        let timer = AsyncFd::new(Timer(timer))?;
        Ok(Self(timer))
    }

    /// Waits for the next tick; several that were missed count as one.
    ///
    /// # Errors
    /// When the timer fails.
    pub async fn tick(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            if let Ok(ticked) = ready.try_io(|timer| timer.get_ref().0.wait().map_err(io::Error::from)) {
                return ticked;
            }
        }
    }
}

/// Waits once, more finely than tokio's timers do.
///
/// # Errors
/// When the system gives no timer.
pub async fn pause(length: Duration) -> crate::error::Result<()> {
    use crate::error::During as _;
    let pace = Pace::start(length).during("start a timer")?;
    pace.tick().await.during("wait for a tick")
}

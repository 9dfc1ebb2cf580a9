//! A lot of calls out of one window. Pure: time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

use proto::v1::LeaseQuotaResponse;

const WINDOW: Duration = Duration::from_secs(60);
/// A first lot, before anything is known of the rate.
const FIRST: u64 = 5;

/// The answer to one attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No {
        retry_after: Duration,
    },
    /// Nothing is held: lease so many.
    Empty {
        want: u32,
    },
}

/// What is held of a limit, and what is known of its use.
#[derive(Debug, Default)]
pub(super) struct Lot {
    lease_id: String,
    left: u32,
    /// Boot time from which the lot is void.
    valid_until: Duration,
    /// Boot time until which asking is in vain.
    refused_until: Duration,
    /// Boot times of attempts in the last second or since the last lot, to size the next one.
    taken: u32,
    taken_since: Duration,
    /// What the fleet granted in the last minute, with the boot time of each grant: the known share.
    granted: VecDeque<(Duration, u32)>,
    /// Without the control plane: what is left of the even share, and when it comes anew.
    alone: Option<Alone>,
}

#[derive(Debug)]
struct Alone {
    share: u32,
    left: u32,
    renewed_at: Duration,
    /// When the control plane is asked again.
    until: Duration,
}

impl Lot {
    pub(super) fn take(&mut self, now: Duration, per_minute: u64) -> Taken {
        if self.left > 0 && now < self.valid_until {
            self.left -= 1;
            self.taken = self.taken.saturating_add(1);
            return Taken::Yes;
        }
        if now < self.refused_until {
            return Taken::No {
                retry_after: self.refused_until.saturating_sub(now),
            };
        }
        match &mut self.alone {
            Some(alone) if now < alone.until => alone.take(now),
            Some(_) | None => Taken::Empty {
                want: self.want(now, per_minute),
            },
        }
    }

    /// About a second's worth of what was used lately, at most a tenth of the window.
    fn want(&self, now: Duration, per_minute: u64) -> u32 {
        let most = (per_minute / 10).max(1);
        let seconds = now.saturating_sub(self.taken_since).as_secs_f64().max(0.1);
        let rate = if self.taken == 0 {
            FIRST
        } else {
            (f64::from(self.taken) / seconds).ceil() as u64
        };
        u32::try_from(rate.clamp(1, most)).unwrap_or(u32::MAX)
    }

    pub(super) fn refill(&mut self, asked_at: Duration, lease: &LeaseQuotaResponse) {
        self.alone = None;
        self.taken = 0;
        self.taken_since = asked_at;
        if lease.granted == 0 {
            let wait = Duration::from_millis(lease.retry_after_ms).max(Duration::from_millis(50));
            self.refused_until = asked_at + wait.min(WINDOW);
            return;
        }
        self.lease_id.clone_from(&lease.lease_id);
        self.left = lease.granted;
        self.valid_until = asked_at + Duration::from_millis(lease.valid_ms);
        self.granted.push_back((asked_at, lease.granted));
        while self
            .granted
            .front()
            .is_some_and(|(at, _)| *at + WINDOW < asked_at)
        {
            self.granted.pop_front();
        }
    }

    /// The control plane does not answer. What it granted in the last known minute is this sidecar's even share of a window.
    pub(super) fn go_on_alone(&mut self, now: Duration, per_minute: u64) {
        let until = now + Duration::from_secs(2);
        if let Some(alone) = &mut self.alone {
            alone.until = until;
            return;
        }
        let granted: u64 = self.granted.iter().map(|(_, granted)| u64::from(*granted)).sum();
        let share = u32::try_from(granted.clamp(1, per_minute.max(1))).unwrap_or(u32::MAX);
        self.alone = Some(Alone {
            share,
            left: share,
            renewed_at: now,
            until,
        });
    }

    /// What is held, to be given back.
    pub(super) fn give_back(&mut self) -> Option<(String, u32)> {
        let unused = std::mem::take(&mut self.left);
        (unused > 0).then(|| (std::mem::take(&mut self.lease_id), unused))
    }

    /// Nothing would be lost by forgetting it.
    pub(super) fn is_idle(&self, now: Duration) -> bool {
        let holds = self.left > 0 && now < self.valid_until;
        let is_recent = self.granted.back().is_some_and(|(at, _)| now < *at + WINDOW);
        !holds && now >= self.refused_until && !is_recent && self.alone.is_none()
    }
}

impl Alone {
    fn take(&mut self, now: Duration) -> Taken {
        if now >= self.renewed_at + WINDOW {
            self.renewed_at = now;
            self.left = self.share;
        }
        if self.left == 0 {
            return Taken::No {
                retry_after: (self.renewed_at + WINDOW).saturating_sub(now),
            };
        }
        self.left -= 1;
        Taken::Yes
    }
}

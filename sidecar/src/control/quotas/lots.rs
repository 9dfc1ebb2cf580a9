//! A lot of calls out of one window. Pure: time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

use proto::v1::LeaseQuotaResponse;

const WINDOW: Duration = Duration::from_secs(60);
/// A first lot, before anything is known of the rate.
const FIRST: u64 = 5;
/// Of a window that is used up, something may be given back: it is asked for again so often at most.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long the control plane is not asked after it did not answer.
const ALONE: Duration = Duration::from_secs(2);

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
        /// Calls that ran without a lease in the last minute.
        unleased: u32,
    },
}

/// What is left of a lot, to be given back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    pub(super) lease_id: String,
    pub(super) unused: u32,
}

/// What is held of a limit, and what is known of its use.
#[derive(Debug, Default)]
pub(super) struct Lot {
    lease_id: String,
    left: u32,
    /// Boot time from which the lot is void.
    valid_until: Duration,
    /// Boot time until which nothing will be granted, unless something is given back.
    refused_until: Duration,
    /// Boot time until which asking is in vain.
    ask_again_at: Duration,
    /// Attempts since the last lot, to size the next one.
    taken: u32,
    taken_since: Duration,
    /// What was granted in the last minute, with the boot time of each grant: the known share.
    granted: Recent,
    /// Without the control plane.
    alone: Option<Alone>,
}

/// Calls of the last minute, by when they were counted.
#[derive(Clone, Debug, Default)]
struct Recent(VecDeque<(Duration, u32)>);

impl Recent {
    fn add(&mut self, now: Duration, calls: u32) {
        self.forget(now);
        match self.0.back_mut() {
            // By the second, so that memory is bounded.
            Some((at, counted)) if at.as_secs() == now.as_secs() => *counted = counted.saturating_add(calls),
            _ => self.0.push_back((now, calls)),
        }
    }

    fn forget(&mut self, now: Duration) {
        while self.0.front().is_some_and(|(at, _)| *at + WINDOW <= now) {
            self.0.pop_front();
        }
    }

    fn sum(&mut self, now: Duration) -> u64 {
        self.forget(now);
        self.0.iter().map(|(_, calls)| u64::from(*calls)).sum()
    }

    fn is_over(&self, now: Duration) -> bool {
        self.0.back().is_none_or(|(at, _)| *at + WINDOW <= now)
    }

    /// When the oldest is over.
    fn frees_in(&self, now: Duration) -> Duration {
        self.0
            .front()
            .map_or(WINDOW, |(at, _)| (*at + WINDOW).saturating_sub(now))
    }
}

/// Going on without the control plane: within the share that was had, and one lot.
#[derive(Debug)]
struct Alone {
    most: u64,
    /// What was granted before, and what ran since.
    counted: Recent,
    /// What ran since.
    ran: Recent,
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
        if now < self.ask_again_at {
            return Taken::No {
                retry_after: self.refused_until.saturating_sub(now),
            };
        }
        match &mut self.alone {
            Some(alone) if now < alone.until => alone.take(now),
            alone => Taken::Empty {
                unleased: alone.as_mut().map_or(0, |alone| saturated(alone.ran.sum(now))),
                want: self.want(now, per_minute),
            },
        }
    }

    /// About a second's worth of what was used lately, at most a tenth of the window.
    fn want(&self, now: Duration, per_minute: u64) -> u32 {
        let seconds = now.saturating_sub(self.taken_since).as_secs_f64().max(0.1);
        let rate = if self.taken == 0 {
            FIRST
        } else {
            (f64::from(self.taken) / seconds).ceil() as u64
        };
        saturated(rate.clamp(1, tenth(per_minute)))
    }

    /// Takes what the control plane granted; answers what was left of the lot before.
    pub(super) fn refill(&mut self, asked_at: Duration, lease: &LeaseQuotaResponse) -> Option<Leftover> {
        let leftover = self.give_back();
        self.alone = None;
        self.taken = 0;
        self.taken_since = asked_at;
        if lease.granted == 0 {
            let wait = Duration::from_millis(lease.retry_after_ms).max(Duration::from_millis(50));
            self.refused_until = asked_at + wait.min(WINDOW);
            self.ask_again_at = asked_at + wait.min(ASK_AGAIN);
            return leftover;
        }
        self.lease_id.clone_from(&lease.lease_id);
        self.left = lease.granted;
        self.valid_until = asked_at + Duration::from_millis(lease.valid_ms);
        self.granted.add(asked_at, lease.granted);
        leftover
    }

    /// The control plane does not answer: what it granted in the last minute goes on to be this sidecar's share of every minute.
    pub(super) fn go_on_alone(&mut self, now: Duration, per_minute: u64) {
        let until = now + ALONE;
        if let Some(alone) = &mut self.alone {
            alone.until = until;
            return;
        }
        let share = self.granted.sum(now).min(per_minute);
        self.alone = Some(Alone {
            most: share + FIRST.min(tenth(per_minute)),
            counted: self.granted.clone(),
            ran: Recent::default(),
            until,
        });
    }

    /// What is held, to be given back.
    pub(super) fn give_back(&mut self) -> Option<Leftover> {
        let unused = std::mem::take(&mut self.left);
        (unused > 0).then(|| Leftover {
            lease_id: std::mem::take(&mut self.lease_id),
            unused,
        })
    }

    /// What is held and no longer valid, to be given back.
    pub(super) fn expire(&mut self, now: Duration) -> Option<Leftover> {
        if now < self.valid_until {
            return None;
        }
        self.give_back()
    }

    /// When what is held is void; `None`: nothing is.
    pub(super) fn void_at(&self) -> Option<Duration> {
        (self.left > 0).then_some(self.valid_until)
    }

    /// Nothing would be lost by forgetting it.
    pub(super) fn is_idle(&self, now: Duration) -> bool {
        let is_alone = self.alone.as_ref().is_some_and(|alone| !alone.ran.is_over(now));
        self.left == 0 && now >= self.refused_until && self.granted.is_over(now) && !is_alone
    }
}

impl Alone {
    fn take(&mut self, now: Duration) -> Taken {
        if self.counted.sum(now) >= self.most {
            return Taken::No {
                retry_after: self.counted.frees_in(now),
            };
        }
        self.counted.add(now, 1);
        self.ran.add(now, 1);
        Taken::Yes
    }
}

/// The largest lot.
fn tenth(per_minute: u64) -> u64 {
    (per_minute / 10).max(1)
}

fn saturated(calls: u64) -> u32 {
    u32::try_from(calls).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(1_000_000 + millis)
    }

    fn lease(granted: u32) -> LeaseQuotaResponse {
        LeaseQuotaResponse {
            lease_id: format!("lease of {granted}"),
            granted,
            valid_ms: 10_000,
            retry_after_ms: 30_000,
        }
    }

    fn takes(lot: &mut Lot, now: Duration, per_minute: u64) -> u32 {
        let mut taken = 0;
        while lot.take(now, per_minute) == Taken::Yes {
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_lot_is_about_a_seconds_worth_and_a_tenth_of_the_window_at_most() {
        let mut lot = Lot::default();
        let wants = |lot: &mut Lot, millis, per_minute| match lot.take(at(millis), per_minute) {
            Taken::Empty { want, .. } => want,
            other => panic!("{other:?}"),
        };
        assert_eq!(wants(&mut lot, 0, 1_000), 5);
        assert_eq!(wants(&mut lot, 0, 20), 2);
        assert_eq!(wants(&mut lot, 0, 3), 1);
        lot.refill(at(0), &lease(40));
        assert_eq!(takes(&mut lot, at(500), 1_000), 40);
        assert_eq!(wants(&mut lot, 500, 1_000), 80);
        assert_eq!(wants(&mut lot, 500, 300), 30);
    }

    #[test]
    fn a_window_that_is_used_up_says_when_it_frees_and_is_asked_for_again_each_second() {
        let mut lot = Lot::default();
        lot.refill(at(0), &lease(0));
        let refused = lot.take(at(400), 100);
        assert_eq!(
            refused,
            Taken::No {
                retry_after: Duration::from_millis(29_600)
            }
        );
        assert!(matches!(lot.take(at(1_000), 100), Taken::Empty { .. }));
    }

    #[test]
    fn what_is_not_used_in_time_is_given_back_once() {
        let mut lot = Lot::default();
        lot.refill(at(0), &lease(8));
        assert_eq!(lot.take(at(1), 100), Taken::Yes);
        assert_eq!((lot.void_at(), lot.expire(at(9_999))), (Some(at(10_000)), None));
        assert!(matches!(lot.take(at(10_000), 100), Taken::Empty { .. }));
        let leftover = lot.expire(at(10_000)).unwrap();
        assert_eq!((leftover.lease_id.as_str(), leftover.unused), ("lease of 8", 7));
        assert_eq!((lot.void_at(), lot.expire(at(10_001))), (None, None));
        lot.refill(at(11_000), &lease(3));
        assert_eq!(lot.refill(at(22_000), &lease(2)).unwrap().unused, 3);
    }

    #[test]
    fn alone_no_minute_holds_more_than_the_share_and_one_lot() {
        let mut lot = Lot::default();
        for second in 0..30 {
            lot.refill(at(second * 1_000), &lease(10));
            assert_eq!(takes(&mut lot, at(second * 1_000), 1_000), 10);
        }
        let mut ran: Vec<(u64, u32)> = (0..30).map(|second| (second, 10)).collect();
        for second in 30..200 {
            lot.go_on_alone(at(second * 1_000), 1_000);
            ran.push((second, takes(&mut lot, at(second * 1_000), 1_000)));
        }
        for end in 0..200_u64 {
            let minute = ran
                .iter()
                .filter(|(second, _)| *second <= end && second + 60 > end);
            let calls: u32 = minute.map(|(_, calls)| calls).sum();
            assert!(calls <= 305, "{calls} in the minute to {end}");
        }
        let later: u32 = ran
            .iter()
            .filter(|(second, _)| *second >= 90)
            .map(|(_, calls)| calls)
            .sum();
        assert!(later >= 300, "the share goes on: {later}");
        let Taken::Empty { unleased, .. } = lot.take(at(205_000), 1_000) else {
            panic!("the control plane is not asked again");
        };
        assert!(unleased > 0 && unleased <= 305);
        lot.refill(at(205_000), &lease(1));
        assert_eq!(lot.take(at(205_000), 1_000), Taken::Yes);
        assert!(matches!(
            lot.take(at(205_000), 1_000),
            Taken::Empty { unleased: 0, .. }
        ));
    }

    #[test]
    fn a_lot_of_which_nothing_counts_any_more_may_be_forgotten() {
        let mut lot = Lot::default();
        assert!(lot.is_idle(at(0)));
        lot.refill(at(0), &lease(1));
        assert_eq!(lot.take(at(0), 100), Taken::Yes);
        assert!(!lot.is_idle(at(59_999)));
        assert!(lot.is_idle(at(60_000)));
        lot.go_on_alone(at(60_000), 100);
        assert_eq!(lot.take(at(60_000), 100), Taken::Yes);
        assert!(!lot.is_idle(at(119_999)));
        assert!(lot.is_idle(at(120_000)));
    }
}

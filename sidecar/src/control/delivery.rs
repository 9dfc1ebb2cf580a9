//! What has been sent of which epoch, and what comes next. Pure: the stream is in `reports`.

use std::collections::BTreeMap;

use proto::v1;

use crate::spool::EpochStatus;

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Records of `epoch` from number `from` on, at most `room` of them.
    Records { epoch: u64, from: u64, room: usize },
    /// All records of the epoch are sent: its end.
    End { epoch: u64, last: u64 },
    /// Nothing is due, or the window is full.
    Nothing,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    sent: u64,
    committed: u64,
    end_sent: bool,
    /// A record is missing: nothing more of this epoch can be sent.
    is_stuck: bool,
}

/// The progress of delivery over all epochs.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    epochs: BTreeMap<u64, Progress>,
    /// Records that may be under way.
    window: u64,
    /// The generation of the chain that the numbers speak of; 0: not known yet.
    generation: u64,
}

impl Delivery {
    /// A new stream: what was not committed is sent again.
    pub(super) fn begin(&mut self) {
        self.window = 0;
        for progress in self.epochs.values_mut() {
            *progress = Progress {
                sent: progress.committed,
                committed: progress.committed,
                ..Progress::default()
            };
        }
    }

    /// Takes watermarks. Another generation of the chain forgets everything that was committed and not settled.
    pub(super) fn hear(&mut self, heard: &v1::ReportsResponse, known: &[EpochStatus]) {
        let generation = heard
            .watermarks
            .iter()
            .map(|mark| mark.generation)
            .max()
            .unwrap_or(0);
        if generation > self.generation {
            if self.generation != 0 {
                tracing::warn!(
                    generation,
                    "the chain has a new generation: unsettled records are sent again"
                );
            }
            self.generation = generation;
            self.epochs.clear();
        }
        if heard.window > 0 {
            self.window = u64::from(heard.window);
        }
        for mark in heard
            .watermarks
            .iter()
            .filter(|mark| mark.generation == self.generation)
        {
            let Some(status) = known.iter().find(|status| status.epoch == mark.epoch) else {
                continue;
            };
            let progress = self.epochs.entry(mark.epoch).or_default();
            progress.committed = progress.committed.max(mark.committed).max(status.settled);
            progress.sent = progress.sent.max(progress.committed);
        }
        self.epochs
            .retain(|epoch, _| known.iter().any(|status| status.epoch == *epoch));
    }

    /// What is due, the oldest epoch first.
    pub(super) fn next(&self, known: &[EpochStatus]) -> Next {
        let room = self.window.saturating_sub(self.under_way());
        for status in known {
            let progress = self.progress(status);
            if progress.is_stuck {
                continue;
            }
            if progress.sent < status.last {
                if room == 0 {
                    return Next::Nothing;
                }
                return Next::Records {
                    epoch: status.epoch,
                    from: progress.sent + 1,
                    room: usize::try_from(room).unwrap_or(usize::MAX),
                };
            }
            if status.ended && !status.closed && !progress.end_sent {
                return Next::End {
                    epoch: status.epoch,
                    last: status.last,
                };
            }
        }
        Next::Nothing
    }

    /// Records from `from` up to `through` are under way.
    pub(super) fn sent(&mut self, epoch: u64, from: u64, through: u64) {
        let progress = self.epochs.entry(epoch).or_insert(Progress {
            committed: from.saturating_sub(1),
            ..Progress::default()
        });
        progress.sent = progress.sent.max(through);
    }

    /// Whether a watermark speaks of the chain that is delivered to.
    pub(super) fn is_current(&self, mark: &v1::Watermark) -> bool {
        mark.generation == self.generation
    }

    /// The end of an epoch is under way.
    pub(super) fn ended(&mut self, epoch: u64) {
        self.epochs.entry(epoch).or_default().end_sent = true;
    }

    /// Nothing more of an epoch can be sent.
    pub(super) fn stuck(&mut self, epoch: u64) {
        self.epochs.entry(epoch).or_default().is_stuck = true;
    }

    /// Whether an acknowledgement is due.
    pub(super) fn is_waiting(&self) -> bool {
        self.under_way() > 0
    }

    fn progress(&self, status: &EpochStatus) -> Progress {
        let mut progress = self.epochs.get(&status.epoch).copied().unwrap_or_default();
        progress.sent = progress.sent.max(status.settled);
        progress
    }

    fn under_way(&self) -> u64 {
        self.epochs
            .values()
            .map(|progress| progress.sent.saturating_sub(progress.committed))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(epoch: u64, settled: u64, last: u64, ended: bool) -> EpochStatus {
        EpochStatus {
            epoch,
            settled,
            last,
            ended,
            closed: false,
        }
    }

    fn answer(generation: u64, window: u32, marks: &[(u64, u64)]) -> v1::ReportsResponse {
        let watermark = |&(epoch, committed): &(u64, u64)| v1::Watermark {
            epoch,
            committed,
            settled: 0,
            generation,
            closed: false,
        };
        v1::ReportsResponse {
            watermarks: marks.iter().map(watermark).collect(),
            window,
        }
    }

    #[test]
    fn nothing_is_sent_before_the_opening_is_answered() {
        assert_eq!(Delivery::default().next(&[epoch(1, 0, 5, false)]), Next::Nothing);
    }

    #[test]
    fn older_epochs_come_first_and_are_ended_before_the_next() {
        let known = [epoch(1, 0, 2, true), epoch(2, 0, 1, false)];
        let mut delivery = Delivery::default();
        delivery.hear(&answer(1, 10, &[(1, 1), (2, 0)]), &known);
        let room = 10;
        assert_eq!(
            delivery.next(&known),
            Next::Records {
                epoch: 1,
                from: 2,
                room
            }
        );
        delivery.sent(1, 2, 2);
        assert_eq!(delivery.next(&known), Next::End { epoch: 1, last: 2 });
        delivery.ended(1);
        assert_eq!(
            delivery.next(&known),
            Next::Records {
                epoch: 2,
                from: 1,
                room: 9
            }
        );
    }

    #[test]
    fn the_window_bounds_what_is_under_way() {
        let known = [epoch(1, 0, 9, false)];
        let mut delivery = Delivery::default();
        delivery.hear(&answer(1, 3, &[(1, 0)]), &known);
        delivery.sent(1, 1, 3);
        assert_eq!(delivery.next(&known), Next::Nothing);
        assert!(delivery.is_waiting());
        delivery.hear(&answer(1, 0, &[(1, 2)]), &known);
        assert_eq!(
            delivery.next(&known),
            Next::Records {
                epoch: 1,
                from: 4,
                room: 2
            }
        );
    }

    #[test]
    fn a_new_stream_sends_again_what_was_not_committed() {
        let known = [epoch(1, 0, 9, false)];
        let mut delivery = Delivery::default();
        delivery.hear(&answer(1, 100, &[(1, 4)]), &known);
        delivery.sent(1, 5, 9);
        delivery.begin();
        delivery.hear(&answer(1, 100, &[(1, 6)]), &known);
        assert_eq!(
            delivery.next(&known),
            Next::Records {
                epoch: 1,
                from: 7,
                room: 100
            }
        );
    }

    #[test]
    fn a_new_generation_sends_again_what_was_not_settled() {
        let known = [epoch(1, 3, 9, false)];
        let mut delivery = Delivery::default();
        delivery.hear(&answer(1, 100, &[(1, 9)]), &known);
        assert_eq!(delivery.next(&known), Next::Nothing);
        delivery.hear(&answer(2, 0, &[(1, 2)]), &known);
        assert_eq!(
            delivery.next(&known),
            Next::Records {
                epoch: 1,
                from: 4,
                room: 100
            }
        );
    }
}

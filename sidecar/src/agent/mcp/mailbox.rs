//! What a client is told outside the answers to its requests, or on the stream of one answer, until its stream takes it; and
//! what it took last, for a client whose stream broke off.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Messages that wait for a client without a stream, or with a slow one; the oldest go first when there are more.
const ROOM: usize = 256;
/// Bytes that wait, without the largest message among them: a question can be larger than this.
const ROOM_BYTES: usize = 1 << 20;
/// Messages that wait on the stream of a call before its progress is left out.
const AHEAD: usize = 128;
/// Messages that are kept after they were taken, where streams can be resumed.
const KEPT: usize = 64;
/// Bytes that are kept.
const KEPT_BYTES: usize = 64 << 10;

/// The messages for one client, in order and numbered from 1. Bounded.
#[derive(Debug, Default)]
pub struct Mailbox {
    letters: Mutex<Letters>,
    filled: Notify,
    pausing: Notify,
    reader: Mutex<CancellationToken>,
}

/// First those that were taken and are kept, then those that wait.
#[derive(Debug)]
struct Letters {
    queue: VecDeque<Bytes>,
    /// Number of the first in the queue.
    first: u64,
    /// Number of the first that waits.
    next: u64,
    waiting_bytes: usize,
    kept_bytes: usize,
    keeps: bool,
    is_finished: bool,
    /// After how long a reader is to come back that has taken what waits.
    pause: Option<Duration>,
}

impl Default for Letters {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            first: 1,
            next: 1,
            waiting_bytes: 0,
            kept_bytes: 0,
            keeps: false,
            is_finished: false,
            pause: None,
        }
    }
}

impl Letters {
    fn kept(&self) -> usize {
        usize::try_from(self.next.saturating_sub(self.first)).unwrap_or(usize::MAX)
    }

    fn waiting(&self) -> usize {
        self.queue.len().saturating_sub(self.kept())
    }

    /// How many messages up to `number` are still here, where all that came behind it are.
    fn kept_behind(&self, number: u64) -> Option<usize> {
        let behind = number.checked_add(1)?.checked_sub(self.first)?;
        usize::try_from(behind)
            .ok()
            .filter(|kept| *kept <= self.queue.len())
    }

    fn drop_oldest(&mut self) -> bool {
        let was_kept = self.kept() > 0;
        let Some(dropped) = self.queue.pop_front() else {
            return false;
        };
        self.first += 1;
        if was_kept {
            self.kept_bytes = self.kept_bytes.saturating_sub(dropped.len());
        } else {
            self.next = self.first;
            self.waiting_bytes = self.waiting_bytes.saturating_sub(dropped.len());
        }
        true
    }

    fn push(&mut self, message: Bytes) {
        self.waiting_bytes = self.waiting_bytes.saturating_add(message.len());
        self.queue.push_back(message);
    }

    fn is_overfull(&self) -> bool {
        let is_too_large = || {
            let waiting = self.queue.iter().skip(self.kept());
            let largest = waiting.map(Bytes::len).max().unwrap_or(0);
            self.waiting_bytes.saturating_sub(largest) > ROOM_BYTES
        };
        self.waiting() > ROOM || (self.waiting_bytes > ROOM_BYTES && is_too_large())
    }

    fn take(&mut self) -> Option<(u64, Bytes)> {
        let message = self.queue.get(self.kept())?.clone();
        let number = self.next;
        self.next += 1;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(message.len());
        self.kept_bytes = self.kept_bytes.saturating_add(message.len());
        let (most, most_bytes) = if self.keeps { (KEPT, KEPT_BYTES) } else { (0, 0) };
        while self.kept() > most || (self.kept() > 0 && self.kept_bytes > most_bytes) {
            self.drop_oldest();
        }
        Some((number, message))
    }
}

impl Mailbox {
    /// One that keeps what was taken last, so that it can be taken again.
    pub fn resumable() -> Self {
        let letters = Letters {
            keeps: true,
            ..Letters::default()
        };
        Self {
            letters: Mutex::new(letters),
            ..Self::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message behind the others, unless it is larger than all that may wait.
    pub fn put(&self, message: Bytes) {
        if message.len() <= ROOM_BYTES {
            self.ask(message);
        }
    }

    /// Puts a question behind the others, of whatever size: somebody waits for its answer.
    pub fn ask(&self, question: Bytes) {
        let mut letters = self.lock();
        if letters.is_finished {
            return;
        }
        letters.push(question);
        while letters.is_overfull() && letters.drop_oldest() {}
        drop(letters);
        self.filled.notify_one();
    }

    /// Puts the last message, which is never dropped.
    pub fn finish(&self, message: Bytes) {
        let mut letters = self.lock();
        letters.push(message);
        letters.is_finished = true;
        drop(letters);
        self.filled.notify_one();
    }

    /// Puts a message that says how far a call is, unless its reader does not keep up.
    pub fn put_if_read(&self, message: Bytes) {
        if self.lock().waiting() < AHEAD {
            self.put(message);
        }
    }

    /// The next message and its number; `None` behind the last.
    pub async fn next(&self) -> Option<(u64, Bytes)> {
        loop {
            let filled = self.filled.notified();
            {
                let mut letters = self.lock();
                if let Some(taken) = letters.take() {
                    return Some(taken);
                }
                if letters.is_finished {
                    return None;
                }
            }
            filled.await;
        }
    }

    /// Whether what came behind message `number` is still here.
    pub fn keeps(&self, number: u64) -> bool {
        self.lock().kept_behind(number).is_some()
    }

    /// Hands out again what came behind message `number`. `false` when that is no longer kept, or never was.
    pub fn rewind(&self, number: u64) -> bool {
        let mut letters = self.lock();
        let Some(kept) = letters.kept_behind(number) else {
            return false;
        };
        letters.next = number + 1;
        letters.kept_bytes = letters.queue.iter().take(kept).map(Bytes::len).sum();
        letters.waiting_bytes = letters.queue.iter().skip(kept).map(Bytes::len).sum();
        drop(letters);
        self.filled.notify_one();
        true
    }

    /// Whoever reads is to take what waits, then to go away and to come back after `retry`.
    pub fn pause(&self, retry: Duration) {
        self.lock().pause = Some(retry);
        self.pausing.notify_one();
    }

    /// Waits until the reader is to go away: the number of the last message that was taken, and when to come back.
    pub async fn paused(&self) -> (u64, Duration) {
        loop {
            let pausing = self.pausing.notified();
            {
                let mut letters = self.lock();
                let last = letters.next.saturating_sub(1);
                if let Some(retry) = letters.pause.take() {
                    return (last, retry);
                }
            }
            pausing.await;
        }
    }

    /// Somebody came back, whatever an earlier reader was to do.
    pub fn resume(&self) {
        self.lock().pause = None;
    }

    /// Whether everything has been taken, and nothing more comes.
    pub fn is_over(&self) -> bool {
        let letters = self.lock();
        letters.is_finished && letters.waiting() == 0
    }

    /// A reader begins: an earlier one ends. The token says when this one does, at the latest with `ended`.
    pub fn reader(&self, ended: &CancellationToken) -> CancellationToken {
        let mine = ended.child_token();
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *reader, mine.clone()).cancel();
        mine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(mailbox: &Mailbox) -> String {
        let (_, message) = mailbox.next().await.unwrap();
        String::from_utf8(message.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn messages_come_in_order_and_the_oldest_give_way() {
        let mailbox = Mailbox::default();
        for number in 0..=ROOM {
            mailbox.put(Bytes::from(number.to_string()));
        }
        assert_eq!(next(&mailbox).await, "1");
        assert_eq!(next(&mailbox).await, "2");
        mailbox.put(Bytes::from(vec![b'x'; ROOM_BYTES]));
        mailbox.put(Bytes::from(vec![b'y'; ROOM_BYTES]));
        mailbox.put(Bytes::from_static(b"z"));
        assert_eq!(mailbox.lock().waiting(), 2, "the others gave way");
    }

    #[tokio::test]
    async fn a_question_of_any_size_waits_beside_the_rest_and_only_one_does() {
        let mailbox = Mailbox::default();
        let large = |letter: u8| Bytes::from(vec![letter; 4 * ROOM_BYTES]);
        mailbox.put(Bytes::from_static(b"a"));
        mailbox.put(large(b'n'));
        mailbox.ask(large(b'q'));
        mailbox.put(Bytes::from_static(b"b"));
        assert_eq!(next(&mailbox).await, "a");
        assert_eq!(mailbox.next().await.unwrap().1, large(b'q'));
        assert_eq!(next(&mailbox).await, "b");
        mailbox.ask(large(b'q'));
        mailbox.ask(large(b'r'));
        assert_eq!(mailbox.next().await.unwrap().1, large(b'r'));
        assert_eq!(mailbox.lock().waiting(), 0);
    }

    #[tokio::test]
    async fn what_was_taken_last_can_be_taken_again() {
        let mailbox = Mailbox::resumable();
        for text in ["a", "b", "c"] {
            mailbox.put(Bytes::from_static(text.as_bytes()));
        }
        assert_eq!(mailbox.next().await, Some((1, Bytes::from_static(b"a"))));
        assert_eq!(next(&mailbox).await, "b");
        assert!(mailbox.rewind(1));
        assert_eq!(mailbox.next().await, Some((2, Bytes::from_static(b"b"))));
        assert_eq!(next(&mailbox).await, "c");
        assert!(mailbox.rewind(0) && mailbox.rewind(3));
        assert!(!mailbox.rewind(4) && !mailbox.rewind(u64::MAX));
        mailbox.finish(Bytes::from_static(b"end"));
        assert!(!mailbox.is_over());
        assert_eq!(next(&mailbox).await, "end");
        assert_eq!(mailbox.next().await, None);
        assert!(mailbox.is_over());
    }

    #[tokio::test]
    async fn a_reader_that_is_to_come_back_knows_where_it_was() {
        let mailbox = Mailbox::resumable();
        mailbox.put(Bytes::from_static(b"a"));
        assert_eq!(next(&mailbox).await, "a");
        let soon = Duration::from_millis(200);
        mailbox.pause(soon);
        assert_eq!(mailbox.paused().await, (1, soon));
        // Nobody reads, so nobody has to go away.
        mailbox.pause(soon);
        mailbox.resume();
        let paused = tokio::time::timeout(Duration::from_millis(1), mailbox.paused());
        assert!(paused.await.is_err());
    }

    #[test]
    fn progress_is_left_out_when_nobody_reads_it_and_the_rest_is_not() {
        let mailbox = Mailbox::default();
        for _ in 0..2 * AHEAD {
            mailbox.put_if_read(Bytes::from_static(b"x"));
        }
        mailbox.put(Bytes::from_static(b"y"));
        assert_eq!(mailbox.lock().waiting(), AHEAD + 1);
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded() {
        let mailbox = Mailbox::resumable();
        for _ in 0..200 {
            mailbox.put(Bytes::from_static(b"x"));
            mailbox.next().await;
        }
        assert!(!mailbox.rewind(200 - KEPT as u64 - 1) && mailbox.rewind(200 - KEPT as u64));
        while mailbox.lock().waiting() > 0 {
            mailbox.next().await;
        }
        mailbox.put(Bytes::from(vec![b'x'; KEPT_BYTES + 1]));
        mailbox.next().await;
        assert!(!mailbox.rewind(200) && mailbox.rewind(201));
        let plain = Mailbox::default();
        plain.put(Bytes::from_static(b"x"));
        plain.next().await;
        assert!(!plain.rewind(0));
    }
}

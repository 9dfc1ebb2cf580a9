//! What a client is told outside the answers to its requests, until its stream takes it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// Messages that wait for a client without a stream, or with a slow one; the oldest go first when there are more.
const ROOM: usize = 256;
/// Bytes that wait.
const ROOM_BYTES: usize = 1 << 20;

/// The messages for one client, in order. Bounded.
#[derive(Debug, Default)]
pub struct Mailbox {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Bytes>,
    bytes: usize,
}

impl Mailbox {
    /// Puts a message behind the others.
    pub fn put(&self, message: Bytes) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.bytes = waiting.bytes.saturating_add(message.len());
        waiting.messages.push_back(message);
        while waiting.messages.len() > ROOM || waiting.bytes > ROOM_BYTES {
            let Some(dropped) = waiting.messages.pop_front() else {
                break;
            };
            waiting.bytes = waiting.bytes.saturating_sub(dropped.len());
        }
        drop(waiting);
        self.filled.notify_one();
    }

    /// The next message.
    pub async fn next(&self) -> Bytes {
        loop {
            let filled = self.filled.notified();
            if let Some(message) = self.take() {
                return message;
            }
            filled.await;
        }
    }

    fn take(&self) -> Option<Bytes> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let message = waiting.messages.pop_front()?;
        waiting.bytes = waiting.bytes.saturating_sub(message.len());
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_come_in_order_and_the_oldest_give_way() {
        let mailbox = Mailbox::default();
        for number in 0..=ROOM {
            mailbox.put(Bytes::from(number.to_string()));
        }
        assert_eq!(mailbox.next().await, "1");
        assert_eq!(mailbox.next().await, "2");
        mailbox.put(Bytes::from(vec![b'x'; ROOM_BYTES + 1]));
        assert_eq!(mailbox.take(), None);
    }
}

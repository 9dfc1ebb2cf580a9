//! What one client is asked, until it answers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::upstream::Reply;

/// Questions to one client that wait for their answers.
const MAX_OPEN: usize = 64;

/// The questions to one client. Bounded.
#[derive(Debug, Default)]
pub struct Questions {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    open: HashMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    answer: oneshot::Sender<Reply>,
    progress: Option<mpsc::Sender<Bytes>>,
}

impl Questions {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A question begins: its id, and where its answer comes. `None`: there are too many.
    pub fn begin(&self, progress: Option<mpsc::Sender<Bytes>>) -> Option<(u64, oneshot::Receiver<Reply>)> {
        let mut inner = self.lock();
        if inner.open.len() >= MAX_OPEN {
            return None;
        }
        inner.last += 1;
        let id = inner.last;
        let (answer, waiting) = oneshot::channel();
        inner.open.insert(id, Open { answer, progress });
        Some((id, waiting))
    }

    /// The client answers. Nothing happens when it was not asked, or no longer is.
    pub fn answer(&self, id: &[u8], reply: Reply) {
        let open = number(id).and_then(|id| self.lock().open.remove(&id));
        if let Some(open) = open {
            let _ = open.answer.send(reply);
        }
    }

    /// The client tells how far it is: raw params that carry the id of the question as their token.
    pub fn progress(&self, token: &[u8], params: Bytes) {
        let inner = self.lock();
        let open = number(token).and_then(|id| inner.open.get(&id));
        if let Some(progress) = open.and_then(|open| open.progress.as_ref()) {
            // An upstream that does not keep up misses some.
            let _ = progress.try_send(params);
        }
    }

    /// The answer is no longer wanted. Says whether it still was to come.
    pub fn withdraw(&self, id: u64) -> bool {
        self.lock().open.remove(&id).is_some()
    }
}

fn number(raw: &[u8]) -> Option<u64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::upstream::AnswerKind;

    use super::*;

    fn reply(text: &'static str) -> Reply {
        Reply {
            kind: AnswerKind::Result,
            raw: Bytes::from_static(text.as_bytes()),
        }
    }

    #[tokio::test]
    async fn an_answer_reaches_its_question_once() {
        let questions = Questions::default();
        let (one, first) = questions.begin(None).unwrap();
        let (two, second) = questions.begin(None).unwrap();
        questions.answer(two.to_string().as_bytes(), reply("2"));
        questions.answer(two.to_string().as_bytes(), reply("again"));
        questions.answer(b"\"1\"", reply("a text is no id of ours"));
        questions.answer(one.to_string().as_bytes(), reply("1"));
        assert_eq!(first.await.unwrap(), reply("1"));
        assert_eq!(second.await.unwrap(), reply("2"));
        assert!(!questions.withdraw(one));
    }

    #[test]
    fn open_questions_are_bounded() {
        let questions = Questions::default();
        let open: Vec<_> = (0..MAX_OPEN).map(|_| questions.begin(None).unwrap()).collect();
        assert!(questions.begin(None).is_none());
        assert!(questions.withdraw(open[0].0));
        assert!(questions.begin(None).is_some());
    }
}

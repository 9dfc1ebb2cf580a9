//! Work that outlives the connection it was asked on.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where work goes on when nobody attends to it any more.
#[derive(Debug, Clone)]
pub struct Tasks {
    tracker: TaskTracker,
    runtime: Handle,
}

impl Tasks {
    /// Tasks of the current runtime; `tracker` owns them.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(tracker: TaskTracker) -> Self {
        Self {
            tracker,
            runtime: Handle::current(),
        }
    }

    /// Does this work beside everything else.
    pub fn go_on(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn_on(work, &self.runtime);
    }
}

/// What it means that the client went away before the answer.
#[derive(Debug, Clone)]
pub enum WhenAbandoned {
    /// The work goes on to its end: REST and legacy MCP.
    GoOn,
    /// The client cancelled; the work is told, and goes on to its end: modern MCP.
    Cancel(CancellationToken),
}

/// A future that is polled in place, without a task of its own, and becomes one when it is dropped before its end.
/// So a call always reaches its record, and a call whose client stays costs no task.
pub struct Attended<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    when_abandoned: WhenAbandoned,
    tasks: Tasks,
}

impl<T: Send + 'static> Attended<T> {
    /// Attends to `work`. It comes boxed: a call's state is large, and moving it here would copy it.
    pub fn new(
        work: Pin<Box<dyn Future<Output = T> + Send>>,
        when_abandoned: WhenAbandoned,
        tasks: Tasks,
    ) -> Self {
        Self {
            work: Some(work),
            when_abandoned,
            tasks,
        }
    }
}

impl<T: Send + 'static> Future for Attended<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = self.work.as_mut() else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Attended<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else {
            return;
        };
        if let WhenAbandoned::Cancel(token) = &self.when_abandoned {
            token.cancel();
        }
        self.tasks.go_on(async move {
            work.await;
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn attended_work_answers_in_place() {
        let tracker = TaskTracker::new();
        let work = Attended::new(
            Box::pin(async { 7 }),
            WhenAbandoned::GoOn,
            Tasks::new(tracker.clone()),
        );
        assert_eq!(work.await, 7);
        assert_eq!(tracker.len(), 0);
    }

    #[tokio::test]
    async fn abandoned_work_goes_on_to_its_end() {
        let tracker = TaskTracker::new();
        let (go, gone) = oneshot::channel::<()>();
        let (done, end) = oneshot::channel();
        let work = async move {
            gone.await.unwrap();
            done.send("recorded").unwrap();
        };
        drop(Attended::new(
            Box::pin(work),
            WhenAbandoned::GoOn,
            Tasks::new(tracker.clone()),
        ));
        assert_eq!(tracker.len(), 1);
        go.send(()).unwrap();
        assert_eq!(end.await.unwrap(), "recorded");
    }

    #[tokio::test]
    async fn abandoned_work_is_told_where_that_means_cancellation() {
        let tracker = TaskTracker::new();
        let token = CancellationToken::new();
        let heard = token.clone();
        let work = async move { heard.cancelled().await };
        drop(Attended::new(
            Box::pin(work),
            WhenAbandoned::Cancel(token.clone()),
            Tasks::new(tracker.clone()),
        ));
        assert!(token.is_cancelled());
        tracker.close();
        tracker.wait().await;
    }
}

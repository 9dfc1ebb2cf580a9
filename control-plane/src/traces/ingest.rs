//! Batches of records into the chain: a bounded queue for each of two writers, and batches joined up to 2,000 records.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::Metrics;
use crate::store::records::IngestBatch;
use crate::store::sidecars::EpochMark;
use crate::store::{SharedStore, StoreError};

const WRITERS: usize = 2;
/// Records written in one transaction.
const RECORDS_AT_ONCE: usize = 2_000;
/// Batches that wait for a writer; more wait in their streams.
const QUEUE: usize = 64;

/// Why a batch did not get into the chain.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The store refused or failed; nothing of the batch is in the chain, or its answer was lost.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The control plane is going down.
    #[error("the control plane is going down; send the records again elsewhere")]
    Closed,
}

type Answer = Result<EpochMark, IngestError>;

struct Job {
    batch: IngestBatch,
    answer: oneshot::Sender<Answer>,
}

/// The way into the chain. A sidecar's batches keep their order, since they go to the same writer.
#[derive(Clone, Debug)]
pub struct Ingest {
    writers: Arc<[mpsc::Sender<Job>]>,
}

impl Ingest {
    /// Starts the writers. They end after `shutdown`, when what is queued is written.
    #[must_use]
    pub fn start(
        store: &SharedStore,
        metrics: &Metrics,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Self {
        let start = |_| {
            let (sender, queue) = mpsc::channel(QUEUE);
            let writer = Writer {
                store: Arc::clone(store),
                metrics: metrics.clone(),
                shutdown: shutdown.clone(),
                left: None,
            };
            tasks.spawn(writer.run(queue));
            sender
        };
        Self {
            writers: (0..WRITERS).map(start).collect(),
        }
    }

    /// Queues a batch; waits for room. The receiver resolves when the batch is committed, or is not.
    ///
    /// # Errors
    /// When the writers have ended.
    pub async fn submit(&self, batch: IngestBatch) -> Result<oneshot::Receiver<Answer>, IngestError> {
        let mut hasher = DefaultHasher::new();
        batch.sidecar.hash(&mut hasher);
        let number = usize::try_from(hasher.finish()).unwrap_or(0) % self.writers.len().max(1);
        let writer = self.writers.get(number).ok_or(IngestError::Closed)?;
        let (answer, committed) = oneshot::channel();
        writer
            .send(Job { batch, answer })
            .await
            .map_err(|_| IngestError::Closed)?;
        Ok(committed)
    }
}

struct Writer {
    store: SharedStore,
    metrics: Metrics,
    shutdown: CancellationToken,
    /// A batch that did not fit into the last transaction.
    left: Option<Job>,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(first) = self.next(&mut queue).await {
            let jobs = self.gather(first, &mut queue);
            self.write(jobs).await;
        }
    }

    async fn next(&mut self, queue: &mut mpsc::Receiver<Job>) -> Option<Job> {
        if let Some(left) = self.left.take() {
            return Some(left);
        }
        tokio::select! {
            biased;
            job = queue.recv() => job,
            () = self.shutdown.cancelled() => {
                queue.close();
                queue.recv().await
            }
        }
    }

    fn gather(&mut self, first: Job, queue: &mut mpsc::Receiver<Job>) -> Vec<Job> {
        let mut records = first.batch.records.len();
        let mut jobs = vec![first];
        while let Ok(job) = queue.try_recv() {
            records += job.batch.records.len();
            if records > RECORDS_AT_ONCE {
                self.left = Some(job);
                break;
            }
            jobs.push(job);
        }
        jobs
    }

    async fn write(&self, jobs: Vec<Job>) {
        let count: usize = jobs.iter().map(|job| job.batch.records.len()).sum();
        let batches: Vec<IngestBatch> = jobs.iter().map(|job| job.batch.clone()).collect();
        match self.store.ingest(batches).await {
            Ok(marks) => {
                net::crash::passes(net::crash::Point::BatchCommitted);
                self.metrics.records.inc_by(u64::try_from(count).unwrap_or(0));
                for job in jobs {
                    let Job { batch, answer } = job;
                    let mark = marks
                        .iter()
                        .find(|mark| mark.sidecar == batch.sidecar && mark.epoch == batch.epoch);
                    let missing = || StoreError::NoOpenEpoch {
                        sidecar: batch.sidecar,
                        epoch: batch.epoch,
                    };
                    // The stream may be gone; its sidecar asks for the watermark when it comes back.
                    let _ = answer.send(mark.cloned().ok_or_else(missing).map_err(IngestError::Store));
                }
            }
            // One batch may have failed the others: each on its own, in their order.
            Err(_) => {
                for job in jobs {
                    self.write_alone(job).await;
                }
            }
        }
    }

    async fn write_alone(&self, job: Job) {
        let count = u64::try_from(job.batch.records.len()).unwrap_or(0);
        let Job { batch, answer } = job;
        let missing = StoreError::NoOpenEpoch {
            sidecar: batch.sidecar.clone(),
            epoch: batch.epoch,
        };
        let written = match self.store.ingest(vec![batch]).await {
            Ok(marks) => {
                self.metrics.records.inc_by(count);
                marks.into_iter().next().ok_or(missing)
            }
            Err(error) => Err(error),
        };
        let _ = answer.send(written.map_err(IngestError::Store));
    }
}

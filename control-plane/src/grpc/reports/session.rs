//! One sidecar's stream of records.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use proto::v1::reports_request::Message;
use proto::v1::{EpochEnd, RecordBatch, ReportsRequest, ReportsResponse, Watermark};
use tokio::sync::{mpsc, oneshot};
use tonic::{Status, Streaming};

use super::check::Checker;
use crate::auth::{Claims, LiveStream, StreamKind};
use crate::core::Core;
use crate::grpc::refusal::Refused;
use crate::grpc::store_status;
use crate::store::sidecars::EpochMark;
use crate::traces::IngestError;

/// Batches of one stream that wait to be committed.
const UNDER_WAY: usize = 8;
/// Records under way over all streams of this process, shared evenly.
const RECORDS_UNDER_WAY: usize = 400_000;
const MIN_WINDOW: usize = 256;
const MAX_WINDOW: usize = 16_384;

type Answer = oneshot::Receiver<Result<EpochMark, IngestError>>;

pub(super) struct Session {
    core: Arc<Core>,
    claims: Claims,
    checker: Checker,
    live: LiveStream,
    sender: mpsc::Sender<Result<ReportsResponse, Status>>,
    /// Answers of batches that were submitted, in their order.
    under_way: VecDeque<Answer>,
    is_open: bool,
}

enum Event {
    Received(Option<ReportsRequest>),
    Committed(Result<EpochMark, Status>),
    Settled,
    Drained,
}

impl Session {
    pub(super) fn new(
        core: Arc<Core>,
        claims: Claims,
        live: LiveStream,
        sender: mpsc::Sender<Result<ReportsResponse, Status>>,
    ) -> Self {
        let checker = Checker::new(claims.clone());
        Self {
            core,
            claims,
            checker,
            live,
            sender,
            under_way: VecDeque::new(),
            is_open: false,
        }
    }

    pub(super) async fn run(mut self, mut incoming: Streaming<ReportsRequest>) {
        let core = Arc::clone(&self.core);
        let end = self.serve(&core, &mut incoming).await;
        if let Err(status) = end {
            tracing::info!(sidecar = %self.claims.sidecar, epoch = self.claims.epoch, code = ?status.code(), reason = status.message(), "reports ended");
            // A receiver that does not even take the reason is left alone.
            let _ = self.sender.send_timeout(Err(status), core.limits.patience).await;
        }
    }

    async fn serve(&mut self, core: &Core, incoming: &mut Streaming<ReportsRequest>) -> Result<(), Status> {
        let mut marks = core.marks.subscribe();
        loop {
            let has_room = self.under_way.len() < UNDER_WAY;
            let event = tokio::select! {
                biased;
                status = self.live.ended(core) => return Err(status),
                committed = next_answer(&mut self.under_way) => Event::Committed(committed),
                Ok(()) = marks.changed(), if self.is_open => Event::Settled,
                () = core.draining.cancelled(), if self.under_way.is_empty() => Event::Drained,
                message = incoming.message(), if has_room => Event::Received(message?),
            };
            match event {
                Event::Received(None) => return self.finish().await,
                Event::Received(Some(message)) => self.receive(message).await?,
                Event::Committed(mark) => self.send(vec![mark?]).await?,
                Event::Settled => {
                    let newest = marks.borrow_and_update().get(&self.claims.sidecar).cloned();
                    if let Some(newest) = newest {
                        self.send(newest).await?;
                    }
                }
                Event::Drained => {
                    return Err(
                        Refused::Draining.status("this control plane is going down; reconnect elsewhere")
                    );
                }
            }
        }
    }

    async fn receive(&mut self, message: ReportsRequest) -> Result<(), Status> {
        match message.message {
            Some(Message::Opening(opening)) => {
                let marks = self
                    .core
                    .store
                    .epoch_marks(&self.claims.sidecar, opening.epochs)
                    .await;
                self.is_open = true;
                self.send(marks.map_err(store_status)?).await
            }
            Some(Message::Batch(batch)) => self.batch(batch).await,
            Some(Message::End(end)) => self.end(end).await,
            // A message of a newer contract.
            None => Ok(()),
        }
    }

    async fn batch(&mut self, batch: RecordBatch) -> Result<(), Status> {
        if !self.is_open {
            return Err(Status::invalid_argument(
                "Opening is the first message of a stream",
            ));
        }
        if batch.records.is_empty() {
            return Ok(());
        }
        let batch = self.checker.check(batch)?;
        let answer = self.core.ingest.submit(batch).await.map_err(ingest_status)?;
        self.under_way.push_back(answer);
        Ok(())
    }

    /// The epoch's records have to be in the chain before it can be closed.
    async fn end(&mut self, end: EpochEnd) -> Result<(), Status> {
        while !self.under_way.is_empty() {
            let mark = next_answer(&mut self.under_way).await?;
            self.send(vec![mark]).await?;
        }
        let mark = self
            .core
            .store
            .close_epoch(&self.claims.sidecar, end.epoch, end.last)
            .await;
        self.send(vec![mark.map_err(store_status)?]).await
    }

    /// The sidecar has nothing more to say: what it sent is answered, then the stream ends.
    async fn finish(&mut self) -> Result<(), Status> {
        while !self.under_way.is_empty() {
            let mark = next_answer(&mut self.under_way).await?;
            self.send(vec![mark]).await?;
        }
        Ok(())
    }

    async fn send(&self, marks: Vec<EpochMark>) -> Result<(), Status> {
        let watermarks = marks.into_iter().map(watermark).collect();
        let response = ReportsResponse {
            watermarks,
            window: self.window(),
        };
        self.sender
            .send_timeout(Ok(response), self.core.limits.patience)
            .await
            .map_err(|_| {
                Refused::SlowReceiver
                    .status("the receiver did not take its messages in time; reconnect and resume")
            })
    }

    fn window(&self) -> u32 {
        let streams = self.core.sidecars.count(StreamKind::Reports).max(1);
        u32::try_from((RECORDS_UNDER_WAY / streams).clamp(MIN_WINDOW, MAX_WINDOW)).unwrap_or(u32::MAX)
    }
}

/// The oldest answer; waits for ever when there is none.
async fn next_answer(under_way: &mut VecDeque<Answer>) -> Result<EpochMark, Status> {
    let Some(oldest) = under_way.front_mut() else {
        return pending().await;
    };
    let answer = oldest.await;
    under_way.pop_front();
    match answer {
        Ok(answer) => answer.map_err(ingest_status),
        Err(_) => Err(ingest_status(IngestError::Closed)),
    }
}

fn ingest_status(error: IngestError) -> Status {
    match error {
        IngestError::Store(error) => store_status(error),
        IngestError::Closed => Refused::Draining.status(error.to_string()),
    }
}

fn watermark(mark: EpochMark) -> Watermark {
    Watermark {
        epoch: mark.epoch,
        committed: mark.committed,
        settled: mark.settled,
        generation: mark.generation,
        closed: mark.closed,
    }
}

//! `Reports.Stream`: records go up, watermarks come down.

use std::sync::Arc;
use std::time::Duration;

use proto::v1;
use proto::v1::reports_client::ReportsClient;
use proto::v1::reports_request::Message;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::codec::CompressionEncoding;

use super::delivery::{Delivery, Next};
use super::shared::Shared;
use super::stream::{End, Ended, OPEN_LIMIT, Session};
use crate::spool::{ReadLimit, Reader, StoredRecord};

/// Records of one batch.
const BATCH_RECORDS: usize = 2_000;
/// Bytes of one batch.
const BATCH_BYTES: usize = 1024 * 1024;
/// Records gather this long, so that a busy sidecar sends batches and not singles.
const GATHER: Duration = Duration::from_millis(25);
/// Records under way must be answered within this.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// The delivery of records, over all streams.
pub(super) struct Reports {
    shared: Arc<Shared>,
    reader: Reader,
    delivery: Delivery,
}

impl Reports {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            reader: shared.spool.reader(),
            shared,
            delivery: Delivery::default(),
        }
    }

    async fn open(
        &self,
        say: mpsc::Receiver<v1::ReportsRequest>,
    ) -> Result<Streaming<v1::ReportsResponse>, End> {
        let mut client = ReportsClient::new(self.shared.authenticated())
            .accept_compressed(CompressionEncoding::Zstd)
            .max_encoding_message_size(256 * 1024 * 1024);
        match tokio::time::timeout(OPEN_LIMIT, client.stream(ReceiverStream::new(say))).await {
            Ok(opened) => Ok(opened?.into_inner()),
            Err(_) => Err(End::Failed(
                "the control plane did not open the stream in time".to_owned(),
            )),
        }
    }

    async fn serve(&mut self, epoch: u64, was_useful: &mut bool) -> Result<(), End> {
        let (say, said) = mpsc::channel(4);
        let epochs = self
            .shared
            .spool
            .epochs()
            .iter()
            .map(|status| status.epoch)
            .collect();
        // INVARIANT: the queue is new and has room for the opening message.
        let _ = say.try_send(request(Message::Opening(v1::Opening { epochs })));
        let mut hear = self.open(said).await?;
        let first = tokio::time::timeout(OPEN_LIMIT, hear.message()).await;
        let first = first.map_err(|_| End::Failed("the opening was not answered in time".to_owned()))??;
        self.delivery.begin();
        self.hear(first.ok_or_else(End::closed)?);
        self.shared.is_delivering.send_replace(true);
        let silence = tokio::time::sleep(SILENCE_LIMIT);
        let mut silence = std::pin::pin!(silence);
        loop {
            self.shared.spool.retry_writes();
            let next = self.delivery.next(&self.shared.spool.epochs());
            let (shared, delivery) = (&self.shared, &self.delivery);
            let heard = tokio::select! {
                biased;
                heard = hear.message() => Some(heard?.ok_or_else(End::closed)?),
                () = shared.epoch_after(epoch) => return Err(End::Again),
                permit = say.reserve(), if next != Next::Nothing => {
                    let permit = permit.map_err(|_| End::closed())?;
                    if let Some(message) = self.prepare(next).await? {
                        permit.send(request(message));
                    }
                    None
                }
                () = gathered(shared, delivery), if next == Next::Nothing => None,
                () = &mut silence, if delivery.is_waiting() => {
                    return Err(End::Failed("records were not acknowledged in time".to_owned()));
                }
            };
            if let Some(heard) = heard {
                *was_useful = true;
                silence.as_mut().reset(Instant::now() + SILENCE_LIMIT);
                self.hear(heard);
            } else if !self.delivery.is_waiting() {
                silence.as_mut().reset(Instant::now() + SILENCE_LIMIT);
            }
        }
    }

    fn hear(&mut self, heard: v1::ReportsResponse) {
        let spool = &self.shared.spool;
        let known = spool.epochs();
        self.delivery.hear(&heard, &known);
        for watermark in heard
            .watermarks
            .iter()
            .filter(|mark| self.delivery.is_current(mark))
        {
            spool.settle(watermark.epoch, watermark.settled);
            if watermark.closed {
                spool.close_epoch(watermark.epoch);
            }
        }
    }

    /// The message that comes next, noted as sent.
    async fn prepare(&mut self, next: Next) -> Result<Option<Message>, End> {
        match next {
            Next::Nothing => Ok(None),
            Next::End { epoch, last } => {
                self.delivery.ended(epoch);
                Ok(Some(Message::End(v1::EpochEnd { epoch, last })))
            }
            Next::Records { epoch, from, room } => {
                let limit = ReadLimit {
                    records: room.min(BATCH_RECORDS),
                    bytes: BATCH_BYTES,
                };
                let read = self.reader.read(epoch, from, limit).await;
                let records = read.map_err(|error| End::Failed(error.to_string()))?;
                Ok(self.batch(epoch, from, records))
            }
        }
    }

    fn batch(&mut self, epoch: u64, from: u64, records: Vec<StoredRecord>) -> Option<Message> {
        let whole = records
            .iter()
            .zip(from..)
            .take_while(|(record, n)| record.n == *n)
            .count();
        if whole == 0 {
            tracing::error!(
                epoch,
                n = from,
                "a record is missing in the spool: the rest of its epoch cannot be delivered"
            );
            self.delivery.stuck(epoch);
            return None;
        }
        self.delivery.sent(epoch, from, from + whole as u64 - 1);
        let records = records.into_iter().take(whole).map(|record| v1::Record {
            n: record.n,
            source: record.source,
            payload: record.payload,
        });
        Some(Message::Batch(v1::RecordBatch {
            epoch,
            records: records.collect(),
        }))
    }
}

/// Waits until there is something to send, and a little longer.
async fn gathered(shared: &Shared, delivery: &Delivery) {
    shared
        .spool
        .added(|epochs| delivery.next(epochs) != Next::Nothing)
        .await;
    tokio::time::sleep(GATHER).await;
}

fn request(message: Message) -> v1::ReportsRequest {
    v1::ReportsRequest {
        message: Some(message),
    }
}

impl Session for Reports {
    async fn run(&mut self, epoch: u64) -> Ended {
        let mut was_useful = false;
        let end = match self.serve(epoch, &mut was_useful).await {
            Ok(()) => End::Again,
            Err(end) => end,
        };
        self.shared.is_delivering.send_replace(false);
        Ended { end, was_useful }
    }
}

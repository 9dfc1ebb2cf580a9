//! The Watch service over messages that are already encoded, so that one encoding serves every receiver.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, BufMut as _, Bytes};
use futures_util::future::BoxFuture;
use http::{Request, Response};
use prost::Message;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Status, Streaming};

use super::snapshots::{Outgoing, Watcher};
use proto::v1::WatchRequest;

const WATCH: &str = "/toolgate.v1.Snapshots/Watch";

/// `toolgate.v1.Snapshots`, served from shared bytes.
#[derive(Clone)]
pub(crate) struct SnapshotsService {
    watcher: Arc<Watcher>,
}

impl SnapshotsService {
    pub(crate) fn new(watcher: Arc<Watcher>) -> Self {
        Self { watcher }
    }
}

impl NamedService for SnapshotsService {
    const NAME: &'static str = "toolgate.v1.Snapshots";
}

impl tower::Service<Request<Body>> for SnapshotsService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let watch = Watch(Arc::clone(&self.watcher));
        Box::pin(async move {
            if request.uri().path() != WATCH {
                return Ok(Status::unimplemented("toolgate.v1.Snapshots has one method, Watch").into_http());
            }
            let mut grpc = Grpc::new(EncodedCodec::<WatchRequest>::default());
            Ok(grpc.streaming(watch, request).await)
        })
    }
}

struct Watch(Arc<Watcher>);

impl StreamingService<WatchRequest> for Watch {
    type Response = Bytes;
    type ResponseStream = Outgoing;
    type Future = BoxFuture<'static, Result<tonic::Response<Outgoing>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<WatchRequest>>) -> Self::Future {
        let watcher = Arc::clone(&self.0);
        Box::pin(async move { watcher.watch(request).await.map(tonic::Response::new) })
    }
}

/// Sends bytes as they are, reads `M`.
struct EncodedCodec<M>(PhantomData<fn() -> M>);

impl<M> Default for EncodedCodec<M> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<M: Message + Default + 'static> Codec for EncodedCodec<M> {
    type Encode = Bytes;
    type Decode = M;
    type Encoder = Verbatim;
    type Decoder = Reader<M>;

    fn encoder(&mut self) -> Self::Encoder {
        Verbatim
    }

    fn decoder(&mut self) -> Self::Decoder {
        Reader(PhantomData)
    }
}

struct Verbatim;

impl Encoder for Verbatim {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(item.len());
        out.put(item);
        Ok(())
    }
}

struct Reader<M>(PhantomData<fn() -> M>);

impl<M: Message + Default> Decoder for Reader<M> {
    type Item = M;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<M>, Status> {
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        M::decode(bytes)
            .map(Some)
            .map_err(|error| Status::internal(format!("the message does not decode: {error}")))
    }
}

//! One request and the beginning of its response.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};

use super::pool::{Connection, Pool};
use super::{HttpLink, Post};
use crate::upstream::mcp::failure::Failure;

const MAX_REDIRECTS: usize = 3;
/// What is read of a body that nobody needs, to be able to use its connection again.
const MAX_DISCARDED: usize = 64 * 1024;

/// A response whose body has not been read yet. Dropping it closes its connection.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) head: http::response::Parts,
    pub(super) body: Incoming,
    pub(super) connection: Connection,
}

impl Exchange {
    pub(super) fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Whether the media type of the body is `kind`.
    pub(super) fn is(&self, kind: &str) -> bool {
        let declared = self
            .head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let media = declared.unwrap_or_default().split(';').next().unwrap_or_default();
        media.trim().eq_ignore_ascii_case(kind)
    }

    /// The next bytes of the body.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            match self.connection.driver.until(self.body.frame()).await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => return Err(Failure::Lost(format!("the response broke off: {error}"))),
            }
        }
    }

    /// The whole body, of at most `limit` bytes.
    pub(super) async fn whole(&mut self, limit: usize) -> Result<Bytes, Failure> {
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        if first.len() > limit {
            return Err(Failure::AnswerTooLarge(limit));
        }
        if self.body.is_end_stream() {
            return Ok(first);
        }
        let Some(second) = self.chunk().await? else {
            return Ok(first);
        };
        let expected = usize::try_from(self.body.size_hint().lower()).unwrap_or(0);
        let mut whole = Vec::with_capacity((first.len() + second.len() + expected).min(limit));
        whole.extend_from_slice(&first);
        let mut chunk = Some(second);
        while let Some(data) = chunk {
            if whole.len() + data.len() > limit {
                return Err(Failure::AnswerTooLarge(limit));
            }
            whole.extend_from_slice(&data);
            chunk = self.chunk().await?;
        }
        Ok(Bytes::from(whole))
    }
}

impl HttpLink {
    pub(super) async fn post(&self, post: &Post<'_>) -> Result<Exchange, Failure> {
        self.send(Method::POST, post.body.clone(), || self.post_headers(post))
            .await
    }

    /// Sends a request to the endpoint.
    pub(super) async fn send(
        &self,
        method: Method,
        body: Bytes,
        headers: impl Fn() -> HeaderMap,
    ) -> Result<Exchange, Failure> {
        let target = self.pool.endpoint.target.clone();
        self.pool.send(method, target, body, headers).await
    }

    /// Reads the rest of a short body, so that the connection can be used again.
    pub(super) async fn discard(&self, exchange: Exchange) {
        self.pool.discard(exchange).await;
    }
}

impl Pool {
    /// Sends a request, following redirects within the origin.
    pub(super) async fn send(
        &self,
        method: Method,
        mut target: PathAndQuery,
        body: Bytes,
        headers: impl Fn() -> HeaderMap,
    ) -> Result<Exchange, Failure> {
        for _ in 0..=MAX_REDIRECTS {
            let request = request(&method, &target, headers(), body.clone());
            let exchange = self.send_once(request?).await?;
            let location = match exchange.status() {
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => exchange.head.headers.get(LOCATION),
                _ => return Ok(exchange),
            };
            target = self.followed(location)?;
            Box::pin(self.discard(exchange)).await;
        }
        Err(Failure::Protocol(format!(
            "it redirects more than {MAX_REDIRECTS} times; correct its url"
        )))
    }

    fn followed(&self, location: Option<&HeaderValue>) -> Result<PathAndQuery, Failure> {
        location
            .and_then(|location| self.endpoint.redirected(location))
            .ok_or_else(|| {
                Failure::Protocol(
                    "it redirects to another origin, which is refused; correct its url".to_owned(),
                )
            })
    }

    async fn send_once(&self, mut request: Request<Full<Bytes>>) -> Result<Exchange, Failure> {
        while let Some(mut connection) = self.take() {
            let Connection { sender, driver, .. } = &mut connection;
            if driver.until(sender.ready()).await.is_err() {
                continue;
            }
            match driver.until(sender.try_send_request(request)).await {
                Ok(response) => return Ok(exchange(response, connection)),
                // The upstream closed the idle connection; nothing of the request was sent.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(lost(&error.into_error())),
                },
            }
        }
        let mut connection = Box::pin(self.connect()).await?;
        let Connection { sender, driver, .. } = &mut connection;
        match driver.until(sender.send_request(request)).await {
            Ok(response) => Ok(exchange(response, connection)),
            Err(error) => Err(lost(&error)),
        }
    }

    /// Reads the rest of a short body, so that the connection can be used again.
    pub(super) async fn discard(&self, mut exchange: Exchange) {
        let mut read = 0;
        loop {
            match exchange.chunk().await {
                Ok(None) => return self.give(exchange.connection),
                Ok(Some(data)) => read += data.len(),
                Err(_) => return,
            }
            if read > MAX_DISCARDED {
                return;
            }
        }
    }
}

fn request(
    method: &Method,
    target: &PathAndQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Failure> {
    let mut request = Request::builder()
        .method(method)
        .uri(target.as_str())
        .body(Full::new(body))
        .map_err(|error| Failure::Protocol(format!("its url cannot be requested: {error}")))?;
    *request.headers_mut() = headers;
    Ok(request)
}

fn exchange(response: http::Response<Incoming>, mut connection: Connection) -> Exchange {
    let (head, body) = response.into_parts();
    connection.heed(&head.headers);
    Exchange {
        head,
        body,
        connection,
    }
}

fn lost(error: &hyper::Error) -> Failure {
    Failure::Lost(format!("the connection ended: {error}"))
}

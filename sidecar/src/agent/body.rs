//! Request bodies, read whole within a bound.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;

/// How long the next piece of a body is waited for.
const PIECE_LIMIT: Duration = Duration::from_secs(30);

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is larger than the bound.
    #[error("the request body is larger than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// The connection broke off, or nothing came for too long.
    #[error("the request body could not be read to its end")]
    Broken,
}

/// Reads the body. What comes in one piece is not copied.
///
/// # Errors
/// When it is larger than `limit`, or breaks off.
pub async fn read(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    read_in_time(body, limit, PIECE_LIMIT).await
}

async fn read_in_time(body: Body, limit: usize, piece: Duration) -> Result<Bytes, BodyError> {
    use http_body::Body as _;
    let too_large = BodyError::TooLarge { limit };
    if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > limit {
        return Err(too_large);
    }
    let mut body = body;
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    while let Some(frame) = tokio::time::timeout(piece, body.frame())
        .await
        .map_err(|_| BodyError::Broken)?
    {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else {
            continue;
        };
        if first.len() + more.len() + data.len() > limit {
            return Err(too_large);
        }
        if first.is_empty() && more.is_empty() {
            first = data;
        } else {
            if more.is_empty() {
                more.extend_from_slice(&std::mem::take(&mut first));
            }
            more.extend_from_slice(&data);
        }
    }
    Ok(if more.is_empty() { first } else { more.freeze() })
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn pieces(pieces: &[&'static [u8]]) -> Body {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok::<_, BodyError>(Bytes::from_static(piece)))
            .collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_put_together() {
        assert_eq!(
            read(pieces(&[b"ab", b"", b"cd", b"e"]), 5).await.unwrap(),
            "abcde"
        );
        assert_eq!(read(Body::empty(), 0).await.unwrap(), "");
    }

    #[tokio::test]
    async fn a_body_that_stops_coming_is_given_up() {
        let first = stream::iter([Ok::<_, BodyError>(Bytes::from_static(b"ab"))]);
        let body = Body::from_stream(futures_util::StreamExt::chain(first, stream::pending()));
        let given_up = read_in_time(body, 5, Duration::from_millis(5)).await;
        assert_eq!(given_up, Err(BodyError::Broken));
    }

    #[tokio::test]
    async fn a_body_beyond_the_bound_is_refused() {
        let refused = Err(BodyError::TooLarge { limit: 4 });
        assert_eq!(read(pieces(&[b"abc", b"de"]), 4).await, refused);
        assert_eq!(read(Body::from("abcde"), 4).await, refused);
    }
}

//! Lists in pages: `limit`, and a cursor in the `Link` header (RFC 8288).

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Uri, header};
use net::problem::Problem;
use serde::Serialize;

/// Entries of a page when nothing is said.
const USUAL: u32 = 100;
/// Entries of the longest page; the rest is behind its link.
const MOST: u32 = 1_000;

/// How many entries a page may have.
pub(super) fn size(asked: Option<u32>) -> Result<u32, Problem> {
    match asked {
        Some(0) => Err(Problem::bad_request("limit must be at least 1")),
        Some(limit) => Ok(limit.min(MOST)),
        None => Ok(USUAL),
    }
}

/// A page: `entries` holds one more than `size` when there is another page, which begins after the cursor of the last one shown.
pub(super) fn page<T>(
    uri: &Uri,
    size: u32,
    entries: &mut Vec<T>,
    cursor: impl Fn(&T) -> String,
) -> Option<HeaderValue> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if entries.len() <= size {
        return None;
    }
    entries.truncate(size);
    entries.last().and_then(|last| link(uri, &cursor(last)))
}

/// The answer of a list.
pub(super) fn answer<T: Serialize>(entries: &[T], next: Option<HeaderValue>) -> Response {
    let mut response = Json(entries).into_response();
    if let Some(next) = next {
        response.headers_mut().insert(header::LINK, next);
    }
    response
}

fn link(uri: &Uri, cursor: &str) -> Option<HeaderValue> {
    let kept = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
    let query: Vec<&str> = kept.collect();
    let separator = if query.is_empty() { "" } else { "&" };
    let target = format!(
        "<{}?{}{separator}cursor={cursor}>; rel=\"next\"",
        uri.path(),
        query.join("&")
    );
    HeaderValue::from_str(&target).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_keeps_the_filters_and_moves_the_cursor() {
        let uri = Uri::from_static("/traces?tool=a.*&cursor=1.9&limit=2");
        let mut entries = vec![8, 7, 6];
        let next = page(&uri, 2, &mut entries, |entry| format!("1.{entry}")).unwrap();
        assert_eq!(next, "</traces?tool=a.*&limit=2&cursor=1.7>; rel=\"next\"");
        assert_eq!(entries, [8, 7]);
        assert!(page(&uri, 2, &mut entries, |_| String::new()).is_none());
    }
}

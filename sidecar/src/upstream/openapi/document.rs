//! Reading a service's document.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use http::HeaderMap;
use http::header::{ACCEPT, HeaderValue};
use net::outbound::{Bounds, Outbound, OutboundRequest, Url};
use tools::openapi::MAX_DOCUMENT_BYTES;

use super::spec::DocumentPlace;
use super::yaml;

/// The longest reading of a document.
const PATIENCE: Duration = Duration::from_secs(60);

/// The document's JSON text, or why there is none.
pub(super) async fn read(
    place: &DocumentPlace,
    headers: &HeaderMap,
    http: &Outbound,
) -> Result<Vec<u8>, String> {
    let (name, text) = match place {
        DocumentPlace::File(path) => {
            let (name, path) = (path.display().to_string(), path.clone());
            let text = blocking(move || from_file(&path)).await?;
            (name, text)
        }
        DocumentPlace::Url(url) => ("the document".to_owned(), from_url(url, headers, http).await?),
    };
    blocking(move || yaml::as_json(&name, text)).await
}

/// Runs what computes long or waits for the disk beside the reactor.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err("the sidecar is ending".to_owned()))
}

fn from_file(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    // What is no file may have no end, or wait for a writer for ever.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(format!("{} cannot be read: it is not a file", path.display()));
    }
    let mut text = Vec::new();
    let most = u64::try_from(MAX_DOCUMENT_BYTES).unwrap_or(u64::MAX);
    let file = File::open(path).map_err(unreadable)?;
    let mut file = file.take(most.saturating_add(1));
    file.read_to_end(&mut text).map_err(unreadable)?;
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(format!(
            "{} has more than {MAX_DOCUMENT_BYTES} bytes, which are read at most",
            path.display()
        ));
    }
    Ok(text)
}

async fn from_url(url: &str, headers: &HeaderMap, http: &Outbound) -> Result<Vec<u8>, String> {
    let url: Url = url.parse().map_err(|_| "its url is not one".to_owned())?;
    let mut headers = headers.clone();
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static(
        "application/json, application/yaml;q=0.9, */*;q=0.5",
    ));
    let request = OutboundRequest::get(url).headers(headers).bounds(Bounds {
        patience: PATIENCE,
        body_bytes: MAX_DOCUMENT_BYTES,
    });
    let answer = http.send(request).await.map_err(|error| error.to_string())?;
    if answer.status.is_success() {
        Ok(answer.body.into())
    } else {
        Err(format!(
            "its url answers with HTTP status {}",
            answer.status.as_u16()
        ))
    }
}

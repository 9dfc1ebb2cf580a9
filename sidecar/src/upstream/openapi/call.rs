//! One call: the request, its answer, and when it is sent again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use net::backoff::Backoff;
use net::outbound::{Bounds, OutboundAnswer, OutboundError, OutboundRequest, Url};
use tools::json::{Document, Limits};
use tools::openapi::{Request, RequestTemplate};

use super::answer;
use super::upstream::{OpenApiUpstream, Sender};
use crate::upstream::mcp::Era;
use crate::upstream::{AnswerKind, UpstreamAnswer, UpstreamError, UpstreamRequest};

/// Why nothing answers any more.
const GONE: &str = "it is no longer configured, or the sidecar is ending";
/// Tries of a call that may be made more than once.
const TRIES: usize = 3;
/// The waits between them.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

impl OpenApiUpstream {
    pub(in crate::upstream) async fn call(
        &self,
        request: UpstreamRequest,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let upstream = || Arc::clone(&self.spec.name);
        if self.stop.is_cancelled() {
            return Err(UpstreamError::Unavailable {
                upstream: upstream(),
                detail: GONE.to_owned(),
            });
        }
        let Ok(_slot) = self.in_flight.try_acquire() else {
            return Err(UpstreamError::Busy {
                upstream: upstream(),
                limit: self.spec.limits.calls_in_flight,
            });
        };
        let bound = request
            .timeout
            .unwrap_or(self.spec.timeout)
            .min(self.spec.timeout);
        tokio::select! {
            biased;
            () = request.cancel.cancelled() => Err(UpstreamError::Cancelled { upstream: upstream() }),
            () = self.stop.cancelled() => Err(UpstreamError::Lost { upstream: upstream(), detail: GONE.to_owned() }),
            outcome = self.forward(&request, bound) => outcome,
            () = tokio::time::sleep(bound) => Err(UpstreamError::Timeout { upstream: upstream(), after: bound }),
        }
    }

    async fn forward(
        &self,
        request: &UpstreamRequest,
        bound: Duration,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let refused = |detail: String| UpstreamError::Refused {
            upstream: Arc::clone(&self.spec.name),
            detail,
        };
        let sender = self.sender.load_full();
        let sender = sender
            .as_ref()
            .as_ref()
            .ok_or_else(|| refused("it is not configured well".to_owned()))?;
        let outbound = {
            let requests = self.requests.load();
            let prepared = requests
                .get(&*request.tool)
                .filter(|prepared| {
                    request
                        .fingerprint
                        .is_none_or(|decided| decided == prepared.fingerprint)
                })
                .ok_or_else(|| refused("the tool has changed; list the tools and call again".to_owned()))?;
            let written = written(&prepared.template, request.arguments.as_ref()).map_err(refused)?;
            self.outbound(&prepared.template, written, sender, request, bound)
                .map_err(refused)?
        };
        let answer = self
            .exchange(sender, outbound)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(UpstreamAnswer {
            kind: AnswerKind::Result,
            raw: answer::result(&answer),
            exit_code: None,
            era: Era::Legacy,
        })
    }

    /// The request with everything that the configuration and the sidecar add.
    fn outbound(
        &self,
        template: &RequestTemplate,
        written: Request,
        sender: &Sender,
        call: &UpstreamRequest,
        bound: Duration,
    ) -> Result<OutboundRequest, String> {
        let method = Method::from_bytes(written.method.as_bytes()).map_err(|error| error.to_string())?;
        let url = url(&template.base.origin, &written.path_and_query)?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*;q=0.8"));
        for (name, value) in &written.headers {
            let name = HeaderName::try_from(name.as_str()).map_err(|error| error.to_string())?;
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|error| error.to_string())?;
            headers.append(name, value);
        }
        let mut body = Bytes::new();
        if let Some((media_type, bytes)) = written.body {
            let media_type = HeaderValue::try_from(media_type).map_err(|error| error.to_string())?;
            headers.insert(CONTENT_TYPE, media_type);
            body = bytes.into();
        }
        for (name, value) in [(TRACEPARENT, &call.traceparent), (TRACESTATE, &call.tracestate)] {
            if let Some(value) = value
                .as_deref()
                .and_then(|value| HeaderValue::try_from(value).ok())
            {
                headers.insert(name, value);
            }
        }
        // What the operator configured replaces what anybody else says.
        for name in sender.headers.keys() {
            headers.remove(name);
        }
        headers.extend(sender.headers.clone());
        Ok(OutboundRequest::new(method, url)
            .headers(headers)
            .body(body)
            .bounds(Bounds {
                patience: bound,
                body_bytes: self.spec.answer_bytes(),
            }))
    }

    /// Sends a request; one that may run twice is sent again when the service was not there.
    async fn exchange(
        &self,
        sender: &Sender,
        request: OutboundRequest,
    ) -> Result<OutboundAnswer, OutboundError> {
        let tries = if is_idempotent(request.method()) { TRIES } else { 1 };
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        for _ in 1..tries {
            let outcome = sender.http.send(request.clone()).await;
            match &outcome {
                Err(OutboundError::Failed { .. }) => {}
                Ok(answer) if is_away(answer.status) => {}
                Ok(_) | Err(_) => return outcome,
            }
            backoff.wait().await;
        }
        sender.http.send(request).await
    }

    fn failed(&self, error: OutboundError) -> UpstreamError {
        let upstream = Arc::clone(&self.spec.name);
        match error {
            OutboundError::TooLarge { limit, .. } => UpstreamError::TooLarge {
                upstream,
                what: crate::upstream::error::ANSWER,
                limit,
            },
            OutboundError::Timeout { patience, .. } => UpstreamError::Timeout {
                upstream,
                after: patience,
            },
            OutboundError::Resolve { .. } => UpstreamError::Unavailable {
                upstream,
                detail: error.to_string(),
            },
            // It is not sent there again either, until the configuration or the service is another one.
            OutboundError::Url(_)
            | OutboundError::Forbidden { .. }
            | OutboundError::CrossOrigin { .. }
            | OutboundError::Downgrade { .. }
            | OutboundError::Redirects { .. }
            | OutboundError::Setup(_) => UpstreamError::Refused {
                upstream,
                detail: error.to_string(),
            },
            OutboundError::Failed { .. } => UpstreamError::Lost {
                upstream,
                detail: error.to_string(),
            },
        }
    }
}

fn written(template: &RequestTemplate, arguments: Option<&Bytes>) -> Result<Request, String> {
    let Some(arguments) = arguments else {
        return template.build(None).map_err(|error| error.to_string());
    };
    // INVARIANT: the gate has read these bytes within stricter bounds.
    let document = Document::parse(arguments, Limits::MESSAGE).map_err(|error| error.to_string())?;
    template
        .build(Some(document.root()))
        .map_err(|error| error.to_string())
}

/// The URL of a request. What a reader of URLs makes of it is the path that was written, or it is not sent.
fn url(origin: &str, path_and_query: &str) -> Result<Url, String> {
    let url: Url = format!("{origin}{path_and_query}")
        .parse()
        .map_err(|_| "its URL cannot be written".to_owned())?;
    let path = path_and_query.split('?').next().unwrap_or_default();
    if url.path() == path && url.origin().ascii_serialization() == origin {
        Ok(url)
    } else {
        Err("its URL would be read in another way than it is written".to_owned())
    }
}

/// Methods of which a second request changes nothing more (RFC 9110, section 9.2.2).
fn is_idempotent(method: &Method) -> bool {
    [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::PUT,
        Method::DELETE,
    ]
    .contains(method)
}

/// The service, or what stands before it, says that it cannot answer at the moment.
fn is_away(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

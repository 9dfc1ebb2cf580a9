//! The channel to the control plane and the credential on each of its calls.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::Uri;
use hyper_util::rt::TokioIo;
use net::outbound::{Destination, Dialer, Options, OutboundError, Scheme, Url};
use net::tls::ClientTls;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::{Link, StartError};

/// The largest message taken: full snapshots are one message.
pub(super) const MAX_MESSAGE: usize = 256 * 1024 * 1024;
/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long a call that waits for an agent's answer may take.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(10);

/// A channel whose calls carry the credential.
pub(super) type Authenticated = InterceptedService<Channel, Attach>;

/// The credential in use, shared by all clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Attach {
    header: Arc<ArcSwapOption<MetadataValue<Ascii>>>,
}

impl Attach {
    /// Uses this token from now on. Answers whether it can be a header.
    pub(super) fn set(&self, token: &str) -> bool {
        let Ok(mut header) = MetadataValue::try_from(format!("Bearer {token}")) else {
            return false;
        };
        header.set_sensitive(true);
        self.header.store(Some(Arc::new(header)));
        true
    }
}

impl Interceptor for Attach {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        match &*self.header.load() {
            Some(header) => {
                request
                    .metadata_mut()
                    .insert("authorization", MetadataValue::clone(header));
                Ok(request)
            }
            None => Err(Status::unavailable("this sidecar has not enrolled yet")),
        }
    }
}

/// Makes the channel; a network one connects at its first use and again whenever it is cut. The authority's file is looked at each
/// time, so that certificates can be replaced while sidecars run.
pub(super) fn channel(link: &Link) -> Result<Channel, StartError> {
    let (url, ca_file) = match link {
        Link::Channel(channel) => return Ok(channel.clone()),
        Link::Url { url, ca_file } => (url, ca_file),
    };
    let unusable = |reason: String| StartError::Link {
        url: url.clone(),
        reason,
    };
    let target: Url = url.parse().map_err(|_| unusable("it is not a URL".to_owned()))?;
    let refused = |error: OutboundError| unusable(error.to_string());
    Destination::Configured.check(&target).map_err(refused)?;
    let host = target.host_str().unwrap_or_default().to_owned();
    let port = target.port_or_known_default().unwrap_or_default();
    let scheme = match target.scheme() {
        "https" => Scheme::Tls,
        _ => Scheme::Plain,
    };
    if scheme == Scheme::Plain {
        tracing::warn!(url, "the link to the control plane is not encrypted");
    }
    let tls =
        ClientTls::speaking(ca_file.as_deref(), &[b"h2"]).map_err(|error| unusable(error.to_string()))?;
    let dialer = Dialer::new(Options {
        tls: Some(Arc::new(tls)),
        connect_patience: CONNECT_LIMIT,
        ..Options::new(Destination::Configured)
    })
    .map_err(refused)?;
    let origin = Uri::try_from(url.as_str()).map_err(|error| unusable(error.to_string()))?;
    // What is dialled is encrypted already where the URL says so: seen from here it is plain.
    let endpoint = Endpoint::from_shared(format!("http://{host}:{port}"))
        .map_err(|error| unusable(error.to_string()))?
        .origin(origin)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true);
    let dial = tower::service_fn(move |_: Uri| {
        let (dialer, host) = (dialer.clone(), host.clone());
        async move { dialer.connect(scheme, &host, port).await.map(TokioIo::new) }
    });
    Ok(endpoint.connect_with_connector_lazy(dial))
}

/// Whether the control plane has revoked this sidecar.
pub(super) fn is_revoked(status: &Status) -> bool {
    status.code() == Code::PermissionDenied && refusal_code(status).as_deref() == Some("revoked")
}

/// Whether trying again cannot help until configuration changes.
pub(super) fn is_final(status: &Status) -> bool {
    let is_stale = status.code() == Code::Aborted && refusal_code(status).as_deref() == Some("stale_epoch");
    is_stale
        || matches!(
            status.code(),
            Code::InvalidArgument | Code::PermissionDenied | Code::Unimplemented
        )
}

/// The code of the refusal that a status carries.
pub(super) fn refusal_code(status: &Status) -> Option<String> {
    use prost::Message as _;
    let refusal = proto::v1::Refusal::decode(status.details()).ok()?;
    (!refusal.code.is_empty()).then_some(refusal.code)
}

//! The channel to the control plane and the credential on each of its calls.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use super::{Link, StartError};

/// The largest message taken: full snapshots are one message.
pub(super) const MAX_MESSAGE: usize = 256 * 1024 * 1024;
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

/// Makes the channel; a network one connects at its first use and again whenever it is cut.
pub(super) fn channel(link: &Link) -> Result<Channel, StartError> {
    let (url, ca_file) = match link {
        Link::Channel(channel) => return Ok(channel.clone()),
        Link::Url { url, ca_file } => (url, ca_file),
    };
    let unusable = |reason: String| StartError::Link {
        url: url.clone(),
        reason,
    };
    let mut endpoint = Endpoint::from_shared(url.clone())
        .map_err(|error| unusable(error.to_string()))?
        .connect_timeout(Duration::from_secs(5))
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true);
    if url.starts_with("https://") {
        let mut tls = ClientTlsConfig::new();
        if let Some(path) = ca_file {
            let pem =
                std::fs::read(path).map_err(|error| unusable(format!("{}: {error}", path.display())))?;
            tls = tls.ca_certificate(Certificate::from_pem(pem));
        }
        endpoint = endpoint
            .tls_config(tls)
            .map_err(|error| unusable(error.to_string()))?;
    } else {
        tracing::warn!(url, "the link to the control plane is not encrypted");
    }
    Ok(endpoint.connect_lazy())
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

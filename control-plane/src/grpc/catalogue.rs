//! `Catalogue`: the tools that upstreams declare, and how they stand to their pins.

use std::sync::Arc;

use proto::v1::catalogue_server::Catalogue;
use proto::v1::pin_status::Status as SentStatus;
use proto::v1::{DeclaredTool, PinStatus, PublishRequest, PublishResponse};
use tonic::{Request, Response, Status};

use super::{scope, store_status};
use crate::core::Core;
use crate::store::catalogue::{self, Pinning, Publication};

const MAX_DECLARED: usize = 256 * 1024;

pub(super) struct Service {
    core: Arc<Core>,
}

impl Service {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }
}

#[tonic::async_trait]
impl Catalogue for Service {
    async fn publish(&self, request: Request<PublishRequest>) -> Result<Response<PublishResponse>, Status> {
        let claims = super::authenticate(&self.core, request.metadata()).await?;
        let PublishRequest { upstream, tools } = request.into_inner();
        scope::check_upstream(&claims, &upstream)?;
        let prefix = format!("{upstream}.");
        let tools = tools
            .into_iter()
            .map(|tool| declared(tool, &prefix))
            .collect::<Result<Vec<_>, _>>()?;
        // What a program's tools are, the sidecar's own configuration says: there is nobody to be surprised by.
        let is_program = tools.iter().any(|tool| tool.kind == "cli");
        let pinning = if self.core.settings().pin_tools && !is_program {
            self.core.first_use
        } else {
            Pinning::Off
        };
        let publication = Publication {
            namespace: claims.namespace,
            upstream,
            sidecar: claims.sidecar,
            pinning,
            tools,
        };
        let published = self
            .core
            .store
            .publish_catalogue(publication)
            .await
            .map_err(store_status)?;
        Ok(Response::new(PublishResponse {
            pins: published.pins.into_iter().map(sent).collect(),
            revision: Some(published.revision.into()),
            pinning_off: pinning == Pinning::Off,
        }))
    }
}

fn declared(tool: DeclaredTool, prefix: &str) -> Result<catalogue::DeclaredTool, Status> {
    // The tools of an OpenAPI service without a name have no prefix, and no dot that could be taken for one.
    let has_no_prefix = tool.kind == "openapi" && !tool.name.contains('.');
    if !tool.name.starts_with(prefix) && !has_no_prefix {
        return Err(Status::invalid_argument(format!(
            "tool `{}` is not named `{prefix}<tool>`",
            tool.name
        )));
    }
    if tool.declared.len() > MAX_DECLARED {
        return Err(Status::invalid_argument(format!(
            "the declaration of `{}` is larger than {MAX_DECLARED} bytes; leave it out",
            tool.name
        )));
    }
    let fingerprint = <[u8; 32]>::try_from(tool.fingerprint.as_ref()).map_err(|_| {
        Status::invalid_argument(format!("the fingerprint of `{}` is not 32 bytes", tool.name))
    })?;
    Ok(catalogue::DeclaredTool {
        name: tool.name,
        kind: tool.kind,
        fingerprint,
        declared: tool.declared,
    })
}

fn sent((tool, status): (String, catalogue::PinStatus)) -> PinStatus {
    let status = match status {
        catalogue::PinStatus::Pinned => SentStatus::Pinned,
        catalogue::PinStatus::New => SentStatus::New,
        catalogue::PinStatus::Changed => SentStatus::Changed,
    };
    PinStatus {
        tool,
        status: status.into(),
    }
}

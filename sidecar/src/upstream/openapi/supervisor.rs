//! Reads a service's document, makes tools of it, and does so again when that failed or is asked for.

use std::collections::HashMap;
use std::sync::Arc;

use net::outbound::{Destination, Options, Outbound};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};
use tools::fingerprint::Fingerprint;
use tools::id::UpstreamName;
use tools::model::{Tool, ToolKind};
use tools::openapi::{Import, LeftOut, Version, import};

use super::claims::Clash;
use super::document::{self, blocking};
use super::kept::Kept;
use super::spec::{DocumentPlace, OpenApiSpec};
use super::upstream::{OpenApiUpstream, Prepared, Sender, Status};
use crate::upstream::retry::RetrySchedule;
use crate::upstream::{DeclaredCatalogue, DeclaredTool};

/// Operations that were left out and are told one by one.
const TOLD: usize = 20;

/// Runs until the upstream is stopped, or until it is clear that no document can be read with this configuration.
pub(super) async fn run(upstream: Arc<OpenApiUpstream>) {
    let sender = match sender(&upstream.spec) {
        Ok(sender) => sender,
        Err(problem) => {
            fail(&upstream, problem);
            return;
        }
    };
    upstream.sender.store(Arc::new(Some(sender.clone())));
    tokio::select! {
        () = upstream.stop.cancelled() => {}
        () = attend(&upstream, &sender) => {}
    }
    upstream.claims.end(upstream.holder);
}

fn sender(spec: &OpenApiSpec) -> Result<Sender, String> {
    let headers = spec.header_map().map_err(|error| error.to_string())?;
    let http = Outbound::new(Options {
        proxy: spec.proxy.clone(),
        ..Options::new(Destination::Configured)
    })
    .map_err(|error| error.to_string())?;
    Ok(Sender { http, headers })
}

async fn attend(upstream: &OpenApiUpstream, sender: &Sender) {
    let spec = &upstream.spec;
    let kept = spec.keep_in.clone().map(|folder| Kept::new(folder, &spec.name));
    let mut schedule = RetrySchedule::new(spec.retry);
    loop {
        let read = load(spec, sender, kept.as_ref()).await;
        match read {
            Ok(loaded) => {
                schedule = RetrySchedule::new(spec.retry);
                publish(upstream, loaded);
                // A file or a service is read again when the configuration is.
                tokio::select! {
                    () = upstream.reread.notified() => {}
                    clash = upstream.claims.lost(upstream.holder) => {
                        give_up(upstream, &clash);
                        upstream.reread.notified().await;
                    }
                }
            }
            Err(problem) => {
                if !upstream.catalogue.borrow().is_read
                    && let Some(loaded) = last_good(spec, kept.as_ref()).await
                {
                    tracing::warn!(upstream = %spec.name, "the last good document is used");
                    publish(upstream, loaded);
                }
                let wait = schedule.after_failure();
                // A service may be on its way; a file that is not there now is a mistake.
                let is_mistake =
                    matches!(spec.document, DocumentPlace::File(_)) && !upstream.catalogue.borrow().is_read;
                if is_mistake {
                    tracing::error!(upstream = %spec.name, "its document is not read, tried again in {wait:?}: {problem}");
                } else {
                    tracing::warn!(upstream = %spec.name, "its document is not read, tried again in {wait:?}: {problem}");
                }
                {
                    let mut status = upstream.status();
                    status.last_error = Some(problem);
                    status.is_failed = is_mistake;
                    status.next_try = Some(Instant::now() + wait);
                }
                tokio::select! {
                    () = sleep(wait) => {}
                    () = upstream.reread.notified() => {}
                }
                upstream.status().next_try = None;
            }
        }
    }
}

/// What a document came to.
struct Loaded {
    title: String,
    version: Version,
    operations: usize,
    left_out: Vec<LeftOut>,
    tools: Vec<DeclaredTool>,
    requests: HashMap<Arc<str>, Prepared>,
}

async fn load(spec: &OpenApiSpec, sender: &Sender, kept: Option<&Kept>) -> Result<Loaded, String> {
    let text = document::read(&spec.document, &sender.headers, &sender.http).await?;
    let (spec, kept) = (spec.clone(), kept.cloned());
    blocking(move || {
        let loaded = imported(&spec, &text).map_err(|error| match &spec.document {
            DocumentPlace::File(path) => format!("{}: {error}", path.display()),
            DocumentPlace::Url(_) => error,
        })?;
        if let Some(kept) = kept {
            kept.keep(&text);
        }
        Ok(loaded)
    })
    .await
}

/// The last document of which tools could be made, as it was kept.
async fn last_good(spec: &OpenApiSpec, kept: Option<&Kept>) -> Option<Loaded> {
    let (spec, kept) = (spec.clone(), kept.cloned()?);
    let loaded = blocking(move || {
        let text = kept.read().ok_or_else(String::new)?;
        imported(&spec, &text)
    });
    loaded.await.ok()
}

fn imported(spec: &OpenApiSpec, text: &[u8]) -> Result<Loaded, String> {
    let headers: Vec<String> = spec.headers.iter().map(|(name, _)| name.clone()).collect();
    let with = Import {
        include: &spec.include,
        document_url: match &spec.document {
            DocumentPlace::Url(url) => Some(url),
            DocumentPlace::File(_) => None,
        },
        backend_url: spec.backend_url.as_deref(),
        headers: &headers,
    };
    let imported = import(text, &with).map_err(|error| error.to_string())?;
    let name = UpstreamName::try_from(&*spec.name).map_err(|error| error.to_string())?;
    let mut loaded = Loaded {
        title: imported.title.unwrap_or_default(),
        version: imported.version,
        operations: imported.operations,
        left_out: imported.left_out,
        tools: Vec::with_capacity(imported.tools.len()),
        requests: HashMap::with_capacity(imported.tools.len()),
    };
    for tool in imported.tools {
        match checked(&name, spec.is_prefixed, tool.declared) {
            Ok((declared, fingerprint)) => {
                let tool_name: Arc<str> = tool.name.into();
                let prepared = Prepared {
                    template: tool.template,
                    fingerprint,
                };
                loaded.requests.insert(Arc::clone(&tool_name), prepared);
                loaded.tools.push(DeclaredTool {
                    name: tool_name,
                    declared,
                });
            }
            Err(reason) => loaded.left_out.push(LeftOut {
                operation: format!("the tool {}", tool.name),
                reason,
            }),
        }
    }
    Ok(loaded)
}

/// The declaration of a tool that can be served, and its fingerprint.
fn checked(
    upstream: &UpstreamName,
    is_prefixed: bool,
    declared: String,
) -> Result<(Arc<RawValue>, Fingerprint), String> {
    let raw = RawValue::from_string(declared).map_err(|error| error.to_string())?;
    let raw: Arc<RawValue> = raw.into();
    let tool = Tool::declared_by(upstream, ToolKind::OpenApi, is_prefixed, Arc::clone(&raw))
        .map_err(|error| error.to_string())?;
    Ok((raw, tool.fingerprint))
}

/// Serves what a document came to in place of what was served before.
fn publish(upstream: &OpenApiUpstream, loaded: Loaded) {
    let spec = &upstream.spec;
    if !spec.is_prefixed {
        let names: Vec<String> = loaded.tools.iter().map(|tool| tool.name.to_string()).collect();
        if let Err(clash) = upstream.claims.claim(upstream.holder, &names) {
            give_up(upstream, &clash);
            return;
        }
    }
    for left_out in loaded.left_out.iter().take(TOLD) {
        tracing::warn!(upstream = %spec.name, operation = left_out.operation, "left out: {}", left_out.reason);
    }
    tracing::info!(
        upstream = %spec.name,
        title = loaded.title,
        version = %loaded.version,
        operations = loaded.operations,
        tools = loaded.tools.len(),
        left_out = loaded.left_out.len(),
        "its document is read"
    );
    *upstream.status() = Status::default();
    upstream.requests.store(Arc::new(loaded.requests));
    declare(upstream, loaded.tools);
}

/// The service serves nothing before its configuration changes.
fn give_up(upstream: &OpenApiUpstream, clash: &Clash) {
    upstream.requests.store(Arc::default());
    declare(upstream, Vec::new());
    fail(upstream, clash.to_string());
}

fn declare(upstream: &OpenApiUpstream, tools: Vec<DeclaredTool>) {
    upstream.catalogue.send_modify(|catalogue| {
        *catalogue = Arc::new(DeclaredCatalogue {
            is_read: true,
            tools,
            ..DeclaredCatalogue::clone(catalogue)
        });
    });
}

fn fail(upstream: &OpenApiUpstream, problem: String) {
    tracing::error!(upstream = %upstream.spec.name, "cannot be used: {problem}");
    let mut status = upstream.status();
    status.last_error = Some(problem);
    status.next_try = None;
    status.is_failed = true;
}

//! An upstream for tests of other rooms: it declares what it is told, and answers by a function.
#![allow(dead_code, reason = "for the tests of whichever room forwards calls")]

use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};

use super::mcp::Era;
use super::{
    Connection, DeclaredCatalogue, DeclaredEntry, DeclaredTool, Notice, Offers, UpstreamAnswer,
    UpstreamError, UpstreamRequest, UpstreamState,
};

type Answering =
    dyn Fn(UpstreamRequest) -> BoxFuture<'static, Result<UpstreamAnswer, UpstreamError>> + Send + Sync;

/// An upstream that answers by a function.
pub(crate) struct Scripted {
    name: Arc<str>,
    catalogue: watch::Sender<Arc<DeclaredCatalogue>>,
    answering: Box<Answering>,
    pub(crate) notices: broadcast::Sender<Notice>,
    /// The resources that nobody wants to hear of any more.
    pub(crate) forgotten: Mutex<Vec<String>>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scripted({})", self.name)
    }
}

impl Scripted {
    /// `tools` are declarations as JSON, each with a `name`.
    pub(crate) fn new<F>(name: &str, tools: &[&str], answering: F) -> Self
    where
        F: Fn(UpstreamRequest) -> BoxFuture<'static, Result<UpstreamAnswer, UpstreamError>>
            + Send
            + Sync
            + 'static,
    {
        let name: Arc<str> = name.into();
        let scripted = Self {
            catalogue: watch::Sender::new(Arc::new(DeclaredCatalogue::unread(Arc::clone(&name)))),
            name,
            answering: Box::new(answering),
            notices: broadcast::Sender::new(16),
            forgotten: Mutex::default(),
        };
        scripted.declare(tools);
        scripted
    }

    /// Declares these tools from now on.
    pub(crate) fn declare(&self, tools: &[&str]) {
        let tools = tools
            .iter()
            .map(|text| {
                let value: serde_json::Value = serde_json::from_str(text).unwrap();
                DeclaredTool {
                    name: value["name"].as_str().unwrap().into(),
                    declared: Arc::from(RawValue::from_string((*text).to_owned()).unwrap()),
                }
            })
            .collect();
        let catalogue = DeclaredCatalogue {
            upstream: Arc::clone(&self.name),
            is_read: true,
            tools,
            ..DeclaredCatalogue::unread(Arc::clone(&self.name))
        };
        self.catalogue.send_replace(Arc::new(catalogue));
    }

    /// Offers everything, and declares these beside its tools; each is JSON with a `uri`, a `uriTemplate` or a `name`.
    pub(crate) fn offer(&self, resources: &[&str], templates: &[&str], prompts: &[&str]) {
        let entries = |texts: &[&str], key: &str| -> Vec<DeclaredEntry> {
            let entry = |text: &&str| DeclaredEntry {
                key: serde_json::from_str::<serde_json::Value>(text).unwrap()[key]
                    .as_str()
                    .unwrap()
                    .into(),
                declared: Arc::from(RawValue::from_string((*text).to_owned()).unwrap()),
            };
            texts.iter().map(entry).collect()
        };
        let catalogue = DeclaredCatalogue {
            offers: Offers {
                resources: true,
                subscriptions: true,
                prompts: true,
                completions: true,
                logging: true,
                tasks: false,
            },
            resources: entries(resources, "uri"),
            templates: entries(templates, "uriTemplate"),
            prompts: entries(prompts, "name"),
            ..DeclaredCatalogue::clone(&self.catalogue.borrow())
        };
        self.catalogue.send_replace(Arc::new(catalogue));
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) async fn call(&self, request: UpstreamRequest) -> Result<UpstreamAnswer, UpstreamError> {
        (self.answering)(request).await
    }

    pub(super) fn catalogue(&self) -> watch::Receiver<Arc<DeclaredCatalogue>> {
        self.catalogue.subscribe()
    }

    pub(super) fn state(&self) -> UpstreamState {
        UpstreamState {
            name: Arc::clone(&self.name),
            transport: "stdio",
            connection: Connection::Connected {
                era: Era::Legacy,
                revision: "2025-11-25".to_owned(),
            },
            last_error: None,
            tools: self.catalogue.borrow().tools.len(),
        }
    }
}

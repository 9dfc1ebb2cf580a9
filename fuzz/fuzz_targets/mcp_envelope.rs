//! The sidecar's reader of JSON-RPC messages never panics, reads a message as serde_json does, and finds in a refused
//! one only what is there.
//!
//! The two files are taken as they are: the whole sidecar would take many times as long to build.
#![no_main]
#![allow(dead_code, reason = "the target uses a part of the files")]

#[path = "../../sidecar/src/agent/mcp/envelope.rs"]
mod envelope;
#[path = "../../sidecar/src/upstream/mcp/scan.rs"]
mod scan;
mod upstream {
    pub(crate) mod mcp {
        pub(crate) use crate::scan;
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AnswerKind {
        Result,
        Error,
    }
}

use envelope::{EnvelopeError, Message, RequestId};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tools::json::Node;
use upstream::AnswerKind;

const MAX_BYTES: usize = 4096;
const DEPTH: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let remains = envelope::remains(bytes);
    for member in scan::members(bytes).map_while(Result::ok) {
        assert!(!member.value.is_empty());
    }
    drop(scan::elements(bytes));
    let document = match envelope::parse(bytes, MAX_BYTES, DEPTH) {
        Ok(document) => document,
        Err(error) => {
            let is_json = fuzz::json::is_grammatical(bytes);
            assert!(
                !(is_json && envelope::is_no_json(&error)),
                "JSON is called no JSON: {error}"
            );
            return;
        }
    };
    let root = document.root();
    let message = envelope::read(root);
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    match message {
        Ok(Message::Request { id, method, params }) => {
            assert_eq!(
                remains.id.as_ref(),
                Some(&id),
                "the refused message has another id"
            );
            assert_eq!(
                serde_json::from_slice::<Value>(id.raw()).ok().as_ref(),
                value.get("id")
            );
            is_read_as(&value, &method, params);
            if method == "tools/call" {
                let name = value["params"].get("name").and_then(Value::as_str);
                assert_eq!(remains.tool.as_deref(), name);
            }
        }
        Ok(Message::Notification { method, params }) => {
            assert!(value.get("id").is_none());
            is_read_as(&value, &method, params);
        }
        Ok(Message::Response { id, kind, raw }) => {
            assert!(value.get("method").is_none());
            let member = match kind {
                AnswerKind::Result => "result",
                AnswerKind::Error => "error",
            };
            let read = |raw| serde_json::from_slice::<Value>(raw).ok();
            assert_eq!(read(raw).as_ref(), value.get(member));
            // An answer without an id answers nothing, as one to `null` does.
            assert_eq!(read(id).as_ref(), Some(&value["id"]));
        }
        Err(EnvelopeError::Batch) => assert!(value.is_array()),
        Err(EnvelopeError::Invalid(_)) => {
            assert!(!is_request(root, &value), "a request is refused");
        }
    }
});

fn is_read_as(value: &Value, method: &str, params: Option<Node<'_>>) {
    assert_eq!(value["jsonrpc"], "2.0");
    assert_eq!(value["method"], method);
    let raw = params.map(Node::raw);
    let read = raw.map(|raw| serde_json::from_slice::<Value>(raw).expect("the params are JSON"));
    assert_eq!(read.as_ref(), value.get("params"));
}

fn is_request(root: Node<'_>, value: &Value) -> bool {
    let has_params = value.get("params").is_none_or(Value::is_object);
    let has_id = root.get("id").is_none_or(|id| RequestId::read(id).is_some());
    value.is_object() && value["jsonrpc"] == "2.0" && value["method"].is_string() && has_params && has_id
}

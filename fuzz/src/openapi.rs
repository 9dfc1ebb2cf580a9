//! Properties of the OpenAPI import and of the requests that calls become.

use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;
use tools::id::UpstreamName;
use tools::json::{Document, Kind, Limits, Node};
use tools::model::{Tool, ToolKind};
use tools::openapi::{Import, Imported, RequestTemplate};

/// Parameters of every place and style, and a body of every kind. The path of each is two segments of its own, one of the
/// argument, and one of its own again.
const DOCUMENT: &str = include_str!("openapi.json");

/// Every tool of a document can be served, and its requests go where the document may call.
pub fn import(bytes: &[u8]) {
    let Ok(upstream) = UpstreamName::try_from("fuzz") else {
        return;
    };
    for backend in [None, Some("http://127.0.0.1:3001/base")] {
        let with = Import {
            document_url: Some("https://api.example.com/v1/openapi.json"),
            backend_url: backend,
            ..Import::default()
        };
        let Ok(found) = tools::openapi::import(bytes, &with) else {
            continue;
        };
        assert!(found.tools.len() + found.left_out.len() + found.excluded <= found.operations);
        for tool in found.tools {
            let origin = &tool.template.base.origin;
            assert!(
                origin == "https://api.example.com" || origin == "http://127.0.0.1:3001",
                "{origin}"
            );
            assert!(!tool.name.contains('.') && tool.name.len() <= 128 && !tool.name.is_empty());
            let raw = RawValue::from_string(tool.declared).unwrap_or_else(|error| panic!("{error}"));
            let declared = Tool::declared_by(&upstream, ToolKind::OpenApi, false, Arc::from(raw))
                .unwrap_or_else(|error| panic!("{error}"));
            if let Err(error) = declared.check_schema() {
                panic!("{error}: {}", declared.input_schema);
            }
            let _ = tool.template.build(None);
        }
    }
}

fn known() -> &'static Imported {
    static KNOWN: OnceLock<Imported> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let with = Import {
            document_url: Some("https://api.example.com/openapi.json"),
            ..Import::default()
        };
        tools::openapi::import(DOCUMENT.as_bytes(), &with).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The first byte chooses the operation, the rest is the arguments.
pub fn request(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else {
        return;
    };
    let tools = &known().tools;
    let Some(tool) = tools.get(usize::from(*choice) % tools.len().max(1)) else {
        return;
    };
    let Ok(arguments) = Document::parse(text, Limits::ARGUMENTS) else {
        return;
    };
    built(&tool.template, &arguments);
}

fn built(template: &RequestTemplate, arguments: &Document<'_>) {
    let Ok(request) = template.build(Some(arguments.root())) else {
        return;
    };
    assert_eq!(
        template.build(Some(arguments.root())).as_ref(),
        Ok(&request),
        "equal calls make equal requests"
    );
    let target = request.path_and_query.as_str();
    assert!(
        target
            .bytes()
            .all(|byte| (0x21..0x7f).contains(&byte) && byte != b'#'),
        "{target}"
    );
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let segments: Vec<&str> = path.split('/').collect();
    let [_, "a", "b", argument, "c"] = segments.as_slice() else {
        panic!("{target}");
    };
    let mut decoded = argument.to_string();
    for _ in 0..4 {
        decoded = percent_decoded(&decoded);
        assert!(
            !decoded.contains(['/', '\\', '\0', '\n']) && decoded != "." && decoded != "..",
            "{target}"
        );
    }
    // Free keys of exploded objects may be anything but the name of another parameter. A list for that one, which the schema
    // refuses before, would be written as one.
    let is_list = |argument: Node<'_>| argument.kind() == Kind::Array;
    if !arguments.root().get("fixed").is_some_and(is_list) {
        let fixed = query.split('&').filter(|pair| pair.starts_with("fixed=")).count();
        assert!(fixed <= 1, "{target}");
    }
    for (name, value) in &request.headers {
        assert!(!value.contains(|letter: char| letter.is_control()), "{name}");
        assert!(["x-list", "cookie"].contains(&name.as_str()), "{name}");
    }
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

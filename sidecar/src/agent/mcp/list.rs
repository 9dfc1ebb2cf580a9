//! `tools/list`, in pages of our own.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tools::json::Node;
use tools::model::Tool;

use super::error::ProtocolError;
use super::serve::{Answer, Exchange};
use super::splice;

/// Tools in one page.
const PAGE_TOOLS: usize = 500;
/// Bytes of a page after which it ends.
const PAGE_BYTES: usize = 4 << 20;

/// The page that the cursor asks for.
pub(super) fn list(exchange: &Exchange<'_>) -> Answer {
    let cursor = exchange
        .params
        .and_then(|params| params.get("cursor"))
        .filter(|cursor| !cursor.is_null());
    let after = match cursor.map(read_cursor) {
        None => None,
        Some(Some(after)) => Some(after),
        Some(None) => {
            return exchange.error(&ProtocolError::invalid_params(
                "the cursor is not one of this server",
            ));
        }
    };
    let tools = exchange.state.gate.visible_tools(exchange.identity);
    let mut page = Vec::with_capacity(4096);
    page.extend_from_slice(b"{\"tools\":[");
    let mut last = None;
    let mut next = None;
    let rest = tools
        .iter()
        .filter(|tool| after.as_deref().is_none_or(|after| tool.name.as_str() > after));
    for (count, tool) in rest.enumerate() {
        if count >= PAGE_TOOLS || page.len() > PAGE_BYTES {
            next = last;
            break;
        }
        if count > 0 {
            page.push(b',');
        }
        page.extend_from_slice(&declaration(tool, &exchange.state.names.shown(tool)));
        last = Some(tool.name.as_str());
    }
    page.push(b']');
    if let Some(next) = next {
        page.extend_from_slice(format!(",\"nextCursor\":\"{}\"", URL_SAFE_NO_PAD.encode(next)).as_bytes());
    }
    if exchange.is_modern {
        page.extend_from_slice(br#","resultType":"complete","ttlMs":0,"cacheScope":"private""#);
    }
    page.push(b'}');
    exchange.result(&page)
}

fn read_cursor(cursor: Node<'_>) -> Option<String> {
    let text = cursor.as_str()?;
    String::from_utf8(URL_SAFE_NO_PAD.decode(text.as_bytes()).ok()?).ok()
}

/// What the upstream declared, under the name that agents use; every other byte as it came.
fn declaration(tool: &Tool, shown: &str) -> Vec<u8> {
    let declared = tool.declared.get().as_bytes();
    let name = serde_json::to_vec(shown).unwrap_or_default();
    // INVARIANT: a tool is only made from a declaration that has a name.
    splice::with_value(declared, "name", &name).unwrap_or_else(|| declared.to_vec())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn a_declaration_changes_in_its_name_only() {
        let text = r#"{ "name" : "read", "inputSchema":{"type":"object","x":1e400},"custom":[ ] }"#;
        let declared = RawValue::from_string(text.to_owned()).unwrap();
        let tool = Tool::mcp(&"fs".parse().unwrap(), Arc::from(declared)).unwrap();
        assert_eq!(
            String::from_utf8(declaration(&tool, "fs.read")).unwrap(),
            text.replace("\"read\"", "\"fs.read\"")
        );
    }
}

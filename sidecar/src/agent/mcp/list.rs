//! The lists of tools, resources, templates and prompts, in pages of our own.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tools::json::Node;
use tools::model::Tool;

use super::error::ProtocolError;
use super::serve::{Answer, Exchange};
use super::{params, splice, tasks};
use crate::registry::Listed;

/// Entries of one page.
const PAGE_ENTRIES: usize = 500;
/// Bytes of a page after which it ends.
const PAGE_BYTES: usize = 4 << 20;

/// The page that the cursor asks for.
pub(super) fn list(exchange: &Exchange<'_>, list: Listed) -> Answer {
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
    let entries = exchange.state.gate.visible(exchange.identity, list);
    let shows_waits = list == Listed::Tools && !exchange.is_modern && tasks::speaks(exchange);
    let mut page = Vec::with_capacity(4096);
    let (member, key) = words(list);
    page.extend_from_slice(format!("{{\"{member}\":[").as_bytes());
    let mut last = None;
    let mut next = None;
    let rest = entries
        .iter()
        .filter(|entry| after.as_deref().is_none_or(|after| entry.name.as_str() > after));
    for (count, entry) in rest.enumerate() {
        if count >= PAGE_ENTRIES || page.len() > PAGE_BYTES {
            next = last;
            break;
        }
        if count > 0 {
            page.push(b',');
        }
        let shown = match list {
            Listed::Tools => exchange.state.names.shown(entry),
            Listed::Resources | Listed::Templates | Listed::Prompts => {
                exchange.state.names.shown_entry(entry)
            }
        };
        let mut declared = declaration(entry, key, &shown);
        if shows_waits && exchange.state.gate.can_wait(exchange.identity, entry) {
            declared = tasks::declared::that_can_wait(declared);
        }
        page.extend_from_slice(&declared);
        last = Some(entry.name.as_str());
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

/// The member of the result, and what of an entry is its name.
fn words(list: Listed) -> (&'static str, &'static str) {
    match list {
        Listed::Tools => ("tools", "name"),
        Listed::Resources => ("resources", "uri"),
        Listed::Templates => ("resourceTemplates", "uriTemplate"),
        Listed::Prompts => ("prompts", "name"),
    }
}

/// What the upstream declared, under the name that agents use; every other byte as it came.
fn declaration(entry: &Tool, key: &str, shown: &str) -> Vec<u8> {
    let declared = entry.declared.get().as_bytes();
    // INVARIANT: an entry is only made from a declaration that has a name.
    splice::with_value(declared, key, &params::quoted(shown)).unwrap_or_else(|| declared.to_vec())
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
            String::from_utf8(declaration(&tool, "name", "fs.read")).unwrap(),
            text.replace("\"read\"", "\"fs.read\"")
        );
    }
}

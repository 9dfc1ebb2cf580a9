//! An MCP server that does nothing but answer: the upstream of every comparison.

use std::borrow::Cow;
use std::fmt::Write as _;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The current revision of MCP.
pub const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
/// The largest result that may be asked for.
const MAX_RESULT: u64 = 32 << 20;

/// The server: `echo`, and as many more tools as are wanted to fill a catalogue.
#[derive(Debug, Clone)]
pub struct Echo {
    tools: String,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    bytes: Option<u64>,
}

impl Echo {
    /// A server that lists `count` tools, `echo` first.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let mut tools = declared("echo");
        for number in 1..count {
            tools.push(',');
            tools.push_str(&declared(&format!("get_item_{number}")));
        }
        Self { tools }
    }

    /// The answer to one message; `None` for what needs none.
    #[must_use]
    pub fn answer(&self, message: &[u8], is_modern: bool) -> Option<Bytes> {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(message) else {
            return Some(Bytes::from_static(
                br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not a message"}}"#,
            ));
        };
        let id = message.id?.get();
        let params = message.params.map_or("{}", RawValue::get);
        let complete = if is_modern {
            r#""resultType":"complete","#
        } else {
            ""
        };
        let fresh = if is_modern {
            r#","ttlMs":0,"cacheScope":"private""#
        } else {
            ""
        };
        let result = match message.method.as_deref().unwrap_or_default() {
            "initialize" => format!(
                r#"{{"protocolVersion":"{LEGACY}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"echo","version":"1"}}}}"#
            ),
            "server/discover" => format!(
                r#"{{"resultType":"complete","supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"echo","version":"1"}}{fresh}}}"#
            ),
            "tools/list" => format!(r#"{{{complete}"tools":[{}]{fresh}}}"#, self.tools),
            "tools/call" => match serde_json::from_str(params) {
                Ok(call) => called(&call, complete),
                Err(_) => return Some(refused(id, -32602, "no parameters of a call")),
            },
            "ping" => "{}".to_owned(),
            _ => return Some(refused(id, -32601, "no such method")),
        };
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into())
    }
}

/// The OpenAPI document of the same server as a REST service: the tool `echo` is `POST /echo`.
pub const DOCUMENT: &str = r#"{"openapi":"3.1.0","info":{"title":"echo","version":"1"},"paths":{"/echo":{"post":{"operationId":"echo","summary":"Answers with what it was given.","requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object","properties":{"message":{"type":"string"},"path":{"type":"string"},"n":{"type":"integer"}}}}}}}}}}"#;

fn declared(name: &str) -> String {
    format!(
        r#"{{"name":"{name}","description":"Answers with what it was given.","inputSchema":{{"type":"object","properties":{{"message":{{"type":"string"}},"path":{{"type":"string"}},"n":{{"type":"integer"}},"bytes":{{"type":"integer"}}}}}},"annotations":{{"readOnlyHint":true}}}}"#
    )
}

fn called(call: &CallParams<'_>, complete: &str) -> String {
    let filled;
    let text = match &call.arguments {
        Some(Arguments {
            bytes: Some(bytes), ..
        }) => {
            filled = format!("\"{}\"", "x".repeat((*bytes).min(MAX_RESULT) as usize));
            filled.as_str()
        }
        Some(Arguments {
            message: Some(message),
            ..
        }) if message.get().starts_with('"') => message.get(),
        _ => "\"\"",
    };
    let mut result = String::with_capacity(text.len() + 128);
    // Writing to a string does not fail.
    let _ = write!(
        result,
        r#"{{{complete}"content":[{{"type":"text","text":{text}}}],"structuredContent":{{"tool":"{}"}},"isError":false}}"#,
        call.name
    );
    result
}

fn refused(id: &str, code: i32, message: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(message: &str, is_modern: bool) -> serde_json::Value {
        serde_json::from_slice(&Echo::new(3).answer(message.as_bytes(), is_modern).unwrap()).unwrap()
    }

    #[test]
    fn a_message_comes_back_and_a_size_is_filled() {
        let small = answer(
            r#"{"id":"a","method":"tools/call","params":{"name":"echo","arguments":{"message":"h\"i","n":1}}}"#,
            true,
        );
        assert_eq!(small["id"], "a");
        assert_eq!(small["result"]["content"][0]["text"], "h\"i");
        assert_eq!(small["result"]["resultType"], "complete");
        let large = answer(
            r#"{"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"bytes":1048576}}}"#,
            false,
        );
        assert_eq!(
            large["result"]["content"][0]["text"].as_str().unwrap().len(),
            1 << 20
        );
    }

    #[test]
    fn both_eras_are_opened_and_the_catalogue_has_the_size_asked_for() {
        assert_eq!(
            answer(r#"{"id":1,"method":"initialize","params":{}}"#, false)["result"]["protocolVersion"],
            LEGACY
        );
        assert_eq!(
            answer(r#"{"id":1,"method":"server/discover"}"#, true)["result"]["supportedVersions"][0],
            MODERN
        );
        let listed = answer(r#"{"id":1,"method":"tools/list"}"#, true);
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 3);
        assert_eq!(listed["result"]["tools"][0]["annotations"]["readOnlyHint"], true);
    }

    #[test]
    fn a_notification_needs_no_answer_and_an_unknown_method_gets_an_error() {
        assert_eq!(
            Echo::new(1).answer(br#"{"method":"notifications/initialized"}"#, false),
            None
        );
        assert_eq!(answer(r#"{"id":1,"method":"x"}"#, false)["error"]["code"], -32601);
    }
}

//! The requests of the load: complete HTTP messages made once, in which each call changes only a number.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::connection::Answer;

/// Numbers begin here, so that all have as many digits.
const FIRST: u64 = 100_000_000_000;
const DIGITS: usize = 12;

/// The revision of MCP that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: opened by `initialize`, with a session where the server gives one.
    Legacy,
    /// 2026-07-28: every request stands for itself.
    Modern,
}

/// What is called, and as whom.
#[derive(Debug, Clone)]
pub struct Call {
    /// Where.
    pub address: SocketAddr,
    /// The revision of MCP.
    pub era: Era,
    /// The tool's name as this server lists it.
    pub tool: String,
    /// Bytes of the result's text; none: the message comes back.
    pub result_bytes: Option<u64>,
    /// A legacy server's session.
    pub session: Option<String>,
}

/// A request to be sent again and again.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Vec<u8>,
    /// Where the two numbers are: the message's id, and an argument that makes each call another.
    numbers: [usize; 2],
    /// Whether the answer is one of MCP.
    is_mcp: bool,
}

/// What every call gives its tool, but for the number and a wanted size.
const ARGUMENTS: &str =
    r#""message":"what the weather was like in Lisbon last week","path":"/data/reports/2026/week-31.txt""#;

impl Call {
    /// The `tools/call` request.
    #[must_use]
    pub fn request(&self) -> Request {
        let size = self
            .result_bytes
            .map_or_else(String::new, |bytes| format!(r#","bytes":{bytes}"#));
        let meta = self.meta();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST},"method":"tools/call","params":{{"name":"{}","arguments":{{{ARGUMENTS},"n":{FIRST}{size}}}{meta}}}}}"#,
            self.tool
        );
        let bytes = self.post("tools/call", Some(&self.tool), &body);
        Request::of(bytes, true)
    }

    /// Another request, by method and parameters (`{…}`, without `_meta`).
    #[must_use]
    pub fn other(&self, method: &str, params: &str) -> Vec<u8> {
        let inside = params.trim().trim_start_matches('{').trim_end_matches('}');
        let meta = self.meta();
        let meta = if inside.is_empty() {
            meta.trim_start_matches(',')
        } else {
            &meta
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{inside}{meta}}}}}"#);
        self.post(method, None, &body)
    }

    /// A notification without parameters.
    #[must_use]
    pub fn notification(&self, method: &str) -> Vec<u8> {
        self.post(
            method,
            None,
            &format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#),
        )
    }

    fn meta(&self) -> String {
        match self.era {
            Era::Legacy => String::new(),
            Era::Modern => r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#.to_owned(),
        }
    }

    fn post(&self, method: &str, name: Option<&str>, body: &str) -> Vec<u8> {
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nauthorization: Bearer agent:bench\r\n",
            self.address
        );
        // Writing to a string does not fail.
        let _ = match self.era {
            Era::Legacy => write!(head, "mcp-protocol-version: 2025-11-25\r\n"),
            Era::Modern => write!(
                head,
                "mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n"
            ),
        };
        if let (Era::Modern, Some(name)) = (self.era, name) {
            let _ = write!(head, "mcp-name: {name}\r\n");
        }
        if let Some(session) = &self.session {
            let _ = write!(head, "mcp-session-id: {session}\r\n");
        }
        let _ = write!(head, "content-length: {}\r\n\r\n{body}", body.len());
        head.into_bytes()
    }
}

impl Request {
    /// The request that an OpenAPI service gets for the same call, without anything between.
    #[must_use]
    pub fn rest(address: SocketAddr, path: &str) -> Self {
        let body = format!(r#"{{{ARGUMENTS},"n":{FIRST}}}"#);
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        Self::of((head + &body).into_bytes(), false)
    }

    fn of(bytes: Vec<u8>, is_mcp: bool) -> Self {
        Self {
            numbers: positions(&bytes),
            bytes,
            is_mcp,
        }
    }

    /// Whether an answer to it is what was asked for.
    #[must_use]
    pub fn is_answered_by(&self, answer: &Answer) -> bool {
        if self.is_mcp {
            answer.is_tool_result()
        } else {
            answer.status == 200
        }
    }

    /// The request as the `number`th call.
    pub fn numbered(&mut self, number: u64) -> &[u8] {
        let digits = format!("{}", FIRST + number % FIRST);
        for at in self.numbers {
            if let Some(place) = self.bytes.get_mut(at..at + DIGITS) {
                place.copy_from_slice(digits.as_bytes());
            }
        }
        &self.bytes
    }
}

fn positions(bytes: &[u8]) -> [usize; 2] {
    let first = FIRST.to_string();
    let mut found = memchr::memmem::find_iter(bytes, first.as_bytes());
    let id = found.next().unwrap_or_default();
    [id, found.next().unwrap_or(id)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(era: Era) -> Call {
        Call {
            address: ([127, 0, 0, 1], 9).into(),
            era,
            tool: "echo".to_owned(),
            result_bytes: None,
            session: None,
        }
    }

    #[test]
    fn each_call_has_another_id_and_another_argument() {
        let mut request = call(Era::Modern).request();
        let first = request.numbered(1).to_vec();
        let second = request.numbered(2).to_vec();
        assert_eq!(first.len(), second.len());
        let body = String::from_utf8(second).unwrap();
        let (_, body) = body.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["id"], 100_000_000_002_u64);
        assert_eq!(body["params"]["arguments"]["n"], 100_000_000_002_u64);
    }

    #[test]
    fn other_requests_are_json_with_and_without_parameters() {
        for era in [Era::Legacy, Era::Modern] {
            for params in ["{}", r#"{"cursor":"x"}"#] {
                let text = String::from_utf8(call(era).other("tools/list", params)).unwrap();
                let (_, body) = text.split_once("\r\n\r\n").unwrap();
                let body: serde_json::Value = serde_json::from_str(body).unwrap();
                assert_eq!(body["method"], "tools/list");
            }
        }
    }
}

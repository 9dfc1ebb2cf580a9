//! The servers whose tools are governed.

use std::collections::BTreeMap;

use tools::id::UpstreamName;

use crate::Secret;
use crate::schema::{Headers, HttpUrl, Keys, Literal, choice, section};

section! {
    /// An MCP server. One that cannot be reached is tried again in the background.
    McpServer as "an MCP server" {
        /// The first part of its tools' names.
        name: UpstreamName,
        /// How it is spoken to.
        transport: Transport,
        /// The program to start (stdio).
        command: Option<String>,
        /// Its arguments (stdio).
        args: Vec<Secret> as Vec<Literal>,
        /// Variables added to the sidecar's own environment (stdio), taken literally.
        env: BTreeMap<String, Secret> as BTreeMap<String, Literal>,
        /// Its address (streamable-http, sse).
        url: Option<String> as Option<HttpUrl>,
        /// Headers of every request (streamable-http, sse). `${VAR}` is replaced from the environment.
        headers: BTreeMap<String, Secret> as Headers,
        /// Whether it is told which agent calls, in `_meta` of `tools/call`.
        forward_identity: bool = "false",
        /// Whether agents share one connection. Default: a server over HTTP that begins a session has one connection for each
        /// agent session; any other server has one connection, unless `server_requests` names what it may ask.
        share: Option<bool>,
        /// What the server may ask agents for while it serves them; each question goes to the agent session that caused it,
        /// and is recorded. Default: everything, but nothing with `share: true` or of a shared process; an empty list: nothing.
        server_requests: Option<Vec<ServerRequest>>,
    }
    check transport_fits
}

choice! {
    /// How an MCP server is spoken to.
    Transport {
        /// A child process, by its standard input and output.
        Stdio = "stdio",
        /// HTTP as the first revision had it: one event stream, and an address for messages that it names.
        Sse = "sse",
        /// HTTP, one request each.
        StreamableHttp = "streamable-http",
    }
}

choice! {
    /// What a server may ask an agent for.
    ServerRequest {
        /// An answer of the agent's model (`sampling/createMessage`).
        Sampling = "sampling",
        /// An answer of the agent's user, by form or by URL (`elicitation/create`).
        Elicitation = "elicitation",
        /// The folders that the agent works in (`roots/list`).
        Roots = "roots",
    }
}

fn transport_fits(server: &McpServer, keys: &Keys<'_, '_>) {
    let (needed, foreign): (_, &[&str]) = match server.transport {
        Transport::Stdio => ("command", &["url", "headers"]),
        Transport::Sse | Transport::StreamableHttp => ("url", &["command", "args", "env"]),
    };
    let asks = server
        .server_requests
        .as_ref()
        .is_some_and(|asks| !asks.is_empty());
    if server.share == Some(true) && asks {
        keys.problem(
            Some("server_requests"),
            "server_requests needs a connection for each agent session; remove share: true, or the list"
                .to_owned(),
        );
    }
    let transport = server.transport.as_str();
    if !keys.has(needed) {
        keys.problem(
            None,
            format!("an MCP server with transport {transport} needs the key \"{needed}\""),
        );
    }
    for key in foreign.iter().filter(|key| keys.has(key)) {
        keys.problem(
            Some(key),
            format!("{key} means nothing with transport {transport}; remove it"),
        );
    }
}

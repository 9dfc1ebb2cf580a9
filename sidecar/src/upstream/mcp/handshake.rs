//! Finding out how an upstream is spoken to.

use tokio::time::timeout;

use super::envelope::{self, Answer};
use super::failure::Failure;
use super::link::{Link, Reply};
use super::message;
use super::scan;
use super::session::{Announced, Opened, Wire};
use super::{Dialect, Era, LEGACY_REVISIONS, MODERN_REVISION};
use crate::upstream::{AnswerKind, Asks, Offers, UpstreamLimits};

const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_REVISION: i64 = -32022;

/// Finds out the era, and opens a session where the era has them.
///
/// A modern request comes first. Whatever is not a modern answer, silence included, means legacy; an upstream that is
/// only slow to start may answer it later, and counts as modern if it then refuses `initialize`.
pub(super) async fn open(
    link: &Link,
    limits: &UpstreamLimits,
    probes: bool,
    asks: Asks,
) -> Result<Opened, Failure> {
    let bound = limits.handshake_timeout;
    let [offered, ..] = LEGACY_REVISIONS;
    let legacy = Dialect::legacy(offered, asks);
    if !probes {
        return timeout(bound, initialize(link, legacy))
            .await
            .unwrap_or(Err(Failure::Timeout(bound)));
    }
    let modern = Wire::of(Dialect::modern(asks));
    let params = message::params(&modern.dialect, b"");
    let discovery = link.request(&modern, "server/discover", &params);
    tokio::pin!(discovery);
    match timeout(limits.probe_timeout, &mut discovery).await {
        Ok(outcome) => match verdict(outcome, asks)? {
            Verdict::Modern(opened) => Ok(opened),
            Verdict::Legacy => timeout(bound, initialize(link, legacy))
                .await
                .unwrap_or(Err(Failure::Timeout(bound))),
        },
        Err(_) => {
            let mut late = None;
            let opening = timeout(bound, initialize(link, legacy));
            tokio::pin!(opening);
            loop {
                tokio::select! {
                    // Both answers may have come in one burst: a modern one says why the other is a refusal.
                    biased;
                    outcome = &mut discovery, if late.is_none() => late = Some(verdict(outcome, asks)),
                    outcome = &mut opening => {
                        let failure = match outcome.unwrap_or(Err(Failure::Timeout(bound))) {
                            Ok(opened) => return Ok(opened),
                            Err(failure) => failure,
                        };
                        return match late {
                            Some(Ok(Verdict::Modern(opened))) => Ok(opened),
                            _ => Err(failure),
                        };
                    }
                }
            }
        }
    }
}

enum Verdict {
    Modern(Opened),
    Legacy,
}

/// What the outcome of `server/discover` says about the upstream.
fn verdict(outcome: Result<Reply, Failure>, asks: Asks) -> Result<Verdict, Failure> {
    match outcome {
        Ok(reply) => judged(&reply.answer, asks),
        Err(Failure::Status(status @ (401 | 403 | 407 | 429))) => Err(Failure::Status(status)),
        Err(
            failure @ (Failure::Unreachable(_)
            | Failure::Lost(_)
            | Failure::Busy(_)
            | Failure::RequestTooLarge(_)),
        ) => Err(failure),
        Err(
            Failure::SessionExpired
            | Failure::AnswerTooLarge(_)
            | Failure::Status(_)
            | Failure::Protocol(_)
            | Failure::Timeout(_),
        ) => Ok(Verdict::Legacy),
    }
}

fn judged(answer: &Answer, asks: Asks) -> Result<Verdict, Failure> {
    let supported = match answer.kind {
        AnswerKind::Result => match scan::member(&answer.raw, "supportedVersions") {
            Some(raw) => texts(raw),
            None => return Ok(Verdict::Legacy),
        },
        AnswerKind::Error => match envelope::error_code(&answer.raw) {
            Some(HEADER_MISMATCH | MISSING_CAPABILITY) => vec![MODERN_REVISION.to_owned()],
            Some(UNSUPPORTED_REVISION) => scan::member(&answer.raw, "data")
                .and_then(|data| scan::member(data, "supported"))
                .map(texts)
                .unwrap_or_default(),
            Some(_) | None => return Ok(Verdict::Legacy),
        },
    };
    if supported.iter().any(|revision| revision == MODERN_REVISION) {
        let capabilities = scan::member(&answer.raw, "capabilities");
        return Ok(Verdict::Modern(opened(
            Wire::of(Dialect::modern(asks)),
            capabilities,
        )));
    }
    if supported
        .iter()
        .any(|revision| LEGACY_REVISIONS.contains(&revision.as_str()))
    {
        return Ok(Verdict::Legacy);
    }
    Err(Failure::Protocol(format!(
        "it speaks only revisions of MCP that are not known here: {}",
        supported.join(", ")
    )))
}

/// Opens another session with an upstream that is known, for an agent with these capabilities.
pub(super) async fn open_another(
    link: &Link,
    limits: &UpstreamLimits,
    known: &Opened,
    capabilities: &[u8],
) -> Result<Opened, Failure> {
    let mut dialect = known.wire.dialect.clone();
    dialect.capabilities = String::from_utf8_lossy(capabilities).into();
    if dialect.era == Era::Modern {
        return Ok(Opened {
            wire: Wire::of(dialect),
            ..known.clone()
        });
    }
    let bound = limits.handshake_timeout;
    timeout(bound, initialize(link, dialect))
        .await
        .unwrap_or(Err(Failure::Timeout(bound)))
}

async fn initialize(link: &Link, mut dialect: Dialect) -> Result<Opened, Failure> {
    let params = format!(
        "{{\"protocolVersion\":\"{}\",\"capabilities\":{},\"clientInfo\":{{\"name\":\"toolgate\",\"version\":\"{}\"}}}}",
        dialect.revision,
        dialect.capabilities,
        env!("CARGO_PKG_VERSION")
    );
    let mut wire = Wire::of(dialect.clone());
    let reply = link.request(&wire, "initialize", params.as_bytes()).await?;
    if reply.answer.kind == AnswerKind::Error {
        let code = envelope::error_code(&reply.answer.raw).unwrap_or_default();
        return Err(Failure::Protocol(format!(
            "it refused to initialize with error {code}"
        )));
    }
    let revision = scan::member(&reply.answer.raw, "protocolVersion").and_then(text);
    let Some(known) = LEGACY_REVISIONS
        .into_iter()
        .find(|known| revision.as_deref() == Some(known))
    else {
        return Err(Failure::Protocol(format!(
            "it speaks revision {:?} of MCP, which is not known here",
            revision.unwrap_or_default()
        )));
    };
    dialect.revision = known;
    wire.dialect = dialect;
    wire.session_id = reply.session_id;
    link.notify(&wire, message::notification("notifications/initialized", None))
        .await?;
    Ok(opened(wire, scan::member(&reply.answer.raw, "capabilities")))
}

fn opened(wire: Wire, capabilities: Option<&[u8]>) -> Opened {
    let capability = |name: &str| capabilities.and_then(|all| scan::member(all, name));
    let says = |name: &str, what: &str| {
        capability(name)
            .and_then(|one| scan::member(one, what))
            .is_some_and(|raw| raw == b"true")
    };
    Opened {
        wire,
        has_tools: capabilities.is_none() || capability("tools").is_some(),
        offers: Offers {
            resources: capability("resources").is_some(),
            subscriptions: says("resources", "subscribe"),
            prompts: capability("prompts").is_some(),
            completions: capability("completions").is_some(),
            logging: capability("logging").is_some(),
            tasks: capability("tasks")
                .and_then(|tasks| scan::member(tasks, "requests"))
                .and_then(|requests| scan::member(requests, "tools"))
                .is_some(),
        },
        announces: Announced {
            tools: says("tools", "listChanged"),
            resources: says("resources", "listChanged"),
            prompts: says("prompts", "listChanged"),
        },
    }
}

fn text(raw: &[u8]) -> Option<String> {
    serde_json::from_slice(raw).ok()
}

fn texts(raw: &[u8]) -> Vec<String> {
    serde_json::from_slice(raw).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn era(kind: AnswerKind, raw: &'static str) -> Option<Era> {
        let answer = Answer {
            kind,
            raw: Bytes::from_static(raw.as_bytes()),
        };
        match judged(&answer, Asks::ALL) {
            Ok(Verdict::Modern(_)) => Some(Era::Modern),
            Ok(Verdict::Legacy) => Some(Era::Legacy),
            Err(_) => None,
        }
    }

    #[test]
    fn the_body_decides_the_era_not_one_code() {
        use AnswerKind::{Error, Result};
        assert_eq!(
            era(
                Result,
                r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#
            ),
            Some(Era::Modern)
        );
        assert_eq!(
            era(Result, r#"{"supportedVersions":["2025-11-25"]}"#),
            Some(Era::Legacy)
        );
        assert_eq!(era(Result, r#"{"supportedVersions":["2999-01-01"]}"#), None);
        assert_eq!(era(Result, r#"{"tools":[]}"#), Some(Era::Legacy));
        for code in [-32601, -32602, -32600, -32000] {
            assert_eq!(
                era(Error, format!("{{\"code\":{code},\"message\":\"\"}}").leak()),
                Some(Era::Legacy)
            );
        }
        assert_eq!(
            era(Error, r#"{"code":-32022,"data":{"supported":["2026-07-28"]}}"#),
            Some(Era::Modern)
        );
        assert_eq!(
            era(Error, r#"{"code":-32022,"data":{"supported":["2025-06-18"]}}"#),
            Some(Era::Legacy)
        );
        assert_eq!(era(Error, r#"{"code":-32020}"#), Some(Era::Modern));
    }
}

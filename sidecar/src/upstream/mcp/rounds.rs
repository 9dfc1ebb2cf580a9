//! Rounds of `input_required` (2026-07-28, basic/patterns/mrtr) for an agent that does not know them: what a modern upstream
//! needs is asked of the agent, and the request is made again with the answers.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;

use super::envelope::Answer;
use super::failure::Failure;
use super::scan;
use super::upstream::McpUpstream;
use crate::upstream::{AnswerKind, Client, Question, Reply, UpstreamRequest};

/// Rounds of one request.
const MAX_ROUNDS: usize = 16;
/// Questions of one round.
pub(crate) const MAX_QUESTIONS: usize = 32;
/// Members of a request that belong to one round.
const OF_A_ROUND: [&str; 2] = ["inputResponses", "requestState"];

/// Whether a result is not the end of its request.
pub(crate) fn wants_input(result: &[u8]) -> bool {
    scan::member(result, "resultType").is_some_and(|value| value == b"\"input_required\"")
}

impl McpUpstream {
    /// Goes on with a request until its result is whole.
    pub(super) async fn finish_rounds(
        self: &Arc<Self>,
        client: &Arc<dyn Client>,
        request: &UpstreamRequest,
        mut answer: Answer,
    ) -> Result<Answer, Failure> {
        let mut request = request.clone();
        for _ in 0..MAX_ROUNDS {
            if answer.kind != AnswerKind::Result || !wants_input(&answer.raw) {
                return Ok(answer);
            }
            let responses = self.ask_all(client, &answer.raw).await?;
            let state = scan::member(&answer.raw, "requestState");
            request.extra = Some(next_round(request.extra.as_deref(), &responses, state));
            answer = self.forward(&request).await?.0;
        }
        Err(Failure::Protocol(format!(
            "it asks for more input after {MAX_ROUNDS} rounds"
        )))
    }

    /// The answers to all questions of a round, as a raw object.
    async fn ask_all(&self, client: &Arc<dyn Client>, result: &[u8]) -> Result<Vec<u8>, Failure> {
        let asked = scan::member(result, "inputRequests").unwrap_or(b"{}");
        let asked: Vec<_> = scan::members(asked)
            .collect::<Result<_, _>>()
            .map_err(|_| Failure::Protocol("the inputRequests of its result are no object".to_owned()))?;
        if asked.len() > MAX_QUESTIONS {
            return Err(Failure::Protocol(format!(
                "it asks for more than {MAX_QUESTIONS} inputs at once"
            )));
        }
        let replies = asked.iter().map(|member| async {
            let method: String = scan::member(member.value, "method")
                .and_then(|raw| serde_json::from_slice(raw).ok())
                .ok_or_else(|| Failure::Protocol("a request for input has no method".to_owned()))?;
            let params = scan::member(member.value, "params").unwrap_or_default();
            let reply = client.ask(Question {
                upstream: Arc::clone(self.name()),
                name: None,
                is_let_through: self.spec.asks().lets_through(&method),
                method: method.as_str().into(),
                params: Bytes::copy_from_slice(params),
                progress: None,
            });
            match reply.await {
                Reply {
                    kind: AnswerKind::Result,
                    raw,
                } => Ok((member.key, raw)),
                Reply { raw, .. } => Err(Failure::Protocol(format!(
                    "it asked for input ({method}) and the agent answered with error {}",
                    super::envelope::error_code(&raw).unwrap_or_default()
                ))),
            }
        });
        let mut out = b"{".to_vec();
        for reply in join_all(replies).await {
            let (key, raw) = reply?;
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(&[b"\"", key, b"\":", &raw[..]].concat());
        }
        out.push(b'}');
        Ok(out)
    }
}

/// The further params of the next round: those of the first, with the answers and the upstream's state.
fn next_round(extra: Option<&[u8]>, responses: &[u8], state: Option<&[u8]>) -> Bytes {
    let mut out = [b"{\"inputResponses\":", responses].concat();
    if let Some(state) = state {
        out.extend_from_slice(b",\"requestState\":");
        out.extend_from_slice(state);
    }
    for member in scan::members(extra.unwrap_or_default()).map_while(Result::ok) {
        if OF_A_ROUND.iter().any(|name| member.passes_for(name)) {
            continue;
        }
        out.extend_from_slice(&[b",\"", member.key, b"\":", member.value].concat());
    }
    out.push(b'}');
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_round_has_the_answers_and_the_state_as_it_came() {
        let first = br#"{"name":"t","requestState":"old","inputresponses":1,"x":1.00}"#;
        assert_eq!(
            next_round(Some(first), br#"{"a":{"n":1e2}}"#, Some(br#""s\u0041""#)),
            &br#"{"inputResponses":{"a":{"n":1e2}},"requestState":"s\u0041","name":"t","x":1.00}"#[..]
        );
        assert_eq!(next_round(None, b"{}", None), &br#"{"inputResponses":{}}"#[..]);
        assert!(
            wants_input(br#"{"resultType":"input_required"}"#)
                && !wants_input(br#"{"resultType":"complete"}"#)
        );
    }
}

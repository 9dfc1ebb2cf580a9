//! What a program came to, as the result of a tool.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::capture::Text;
use crate::upstream::UpstreamAnswer;

/// A program that ended by itself.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) stdout: Text,
    pub(super) stderr: Text,
    /// Its exit code; of one that a signal ended, 128 and the signal's number, as shells count.
    pub(super) exit_code: i32,
    pub(super) took: Duration,
}

impl Finished {
    /// The result: the same as structured content and as text. A code other than 0 is an error.
    pub(super) fn answer(self) -> UpstreamAnswer {
        let mut content = json!({
            "stdout": self.stdout.text,
            "stderr": self.stderr.text,
            "exit_code": self.exit_code,
            "truncated": self.stdout.is_cut || self.stderr.is_cut,
            "duration_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        });
        if (self.stdout.was_invalid || self.stderr.was_invalid)
            && let Some(members) = content.as_object_mut()
        {
            members.insert("invalid_utf8".to_owned(), Value::Bool(true));
        }
        let result = json!({
            "content": [{ "type": "text", "text": content.to_string() }],
            "structuredContent": content,
            "isError": self.exit_code != 0,
        });
        UpstreamAnswer {
            exit_code: Some(self.exit_code),
            ..UpstreamAnswer::result(Bytes::from(result.to_string()))
        }
    }
}

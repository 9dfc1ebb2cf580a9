//! Progress of a call, on its way back to the agent.

use bytes::Bytes;

use super::scan;

/// The raw `params` of a `notifications/progress` with the client's own token (raw JSON: a string or a number) in
/// place of the sidecar's; everything else stays the bytes it was. `None` when there is no token to replace.
#[must_use]
pub fn with_progress_token(params: &Bytes, token: &[u8]) -> Option<Bytes> {
    let current = scan::member(params, "progressToken")?;
    let start = current.as_ptr().addr().checked_sub(params.as_ptr().addr())?;
    let before = params.get(..start)?;
    let after = params.get(start + current.len()..)?;
    Some(Bytes::from([before, token, after].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_replaced() {
        let params = Bytes::from_static(br#"{"progress":1.00, "progressToken" : 17 ,"message":"17"}"#);
        let restored = with_progress_token(&params, b"\"mine\"").unwrap();
        assert_eq!(
            restored,
            &br#"{"progress":1.00, "progressToken" : "mine" ,"message":"17"}"#[..]
        );
    }

    #[test]
    fn params_without_a_token_are_not_progress() {
        assert_eq!(with_progress_token(&Bytes::from_static(b"{}"), b"1"), None);
    }
}

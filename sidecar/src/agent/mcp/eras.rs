//! Answers of an upstream of one era in the words of the other.

use std::borrow::Cow;

use tools::operation::Operation;

use super::splice;
use crate::upstream::Era;
use crate::upstream::mcp::rounds::wants_input;
use crate::upstream::mcp::scan;

/// A resource that there is not: in legacy revisions, and since.
const LEGACY_NOT_FOUND: &[u8] = b"-32002";
const INVALID_PARAMS: &[u8] = b"-32602";

/// An error about a resource in the words of the agent's era: what legacy revisions call not found (-32002) is an invalid parameter
/// since 2026-07-28 (server/resources: Error Handling). Back again only where it says which resource there is not.
pub(super) fn error<'r>(
    raw: &'r [u8],
    era: Era,
    is_modern: bool,
    method: &str,
    params: &[u8],
) -> Cow<'r, [u8]> {
    let is_about_resource = method.starts_with("resources/");
    let code = match (era, is_modern, scan::member(raw, "code")) {
        (Era::Legacy, true, Some(LEGACY_NOT_FOUND)) => INVALID_PARAMS,
        (Era::Modern, false, Some(INVALID_PARAMS)) if names_its_uri(raw, params) => LEGACY_NOT_FOUND,
        _ => return Cow::Borrowed(raw),
    };
    let mapped = splice::with_value(raw, "code", code).filter(|_| is_about_resource);
    mapped.map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// Whether the data of an error name the resource that was asked for.
fn names_its_uri(error: &[u8], params: &[u8]) -> bool {
    let uri = |object: &[u8]| -> Option<String> { serde_json::from_slice(scan::member(object, "uri")?).ok() };
    let named = scan::member(error, "data").and_then(uri);
    named.is_some() && named == uri(params)
}

/// A result for a modern client: it says that it is whole, and what is governed is not to be kept.
pub(super) fn result_for_modern(raw: &[u8], era: Era, operation: Operation) -> Vec<u8> {
    let with = |object: Vec<u8>, key: &str, value: &[u8]| {
        splice::with_value(&object, key, value)
            .or_else(|| splice::with_member(&object, key, value))
            .unwrap_or(object)
    };
    let mut result = raw.to_vec();
    if era == Era::Legacy {
        result = splice::with_member(&result, "resultType", b"\"complete\"").unwrap_or(result);
    }
    if operation == Operation::Resource && !wants_input(&result) {
        result = with(result, "ttlMs", b"0");
        result = with(result, "cacheScope", b"\"private\"");
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_is_governed_is_not_kept_by_modern_clients() {
        assert_eq!(
            text(result_for_modern(
                br#"{"contents":[1.00]}"#,
                Era::Legacy,
                Operation::Resource
            )),
            r#"{"cacheScope":"private","ttlMs":0,"resultType":"complete","contents":[1.00]}"#
        );
        let modern = br#"{"resultType":"complete","ttlMs":60000,"cacheScope":"public","contents":[]}"#;
        assert_eq!(
            text(result_for_modern(modern, Era::Modern, Operation::Resource)),
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}"#
        );
        let prompt = br#"{"resultType":"complete","messages":[]}"#;
        assert_eq!(result_for_modern(prompt, Era::Modern, Operation::Prompt), prompt);
    }

    #[test]
    fn a_resource_that_there_is_not_has_the_code_of_the_agents_era() {
        let read = "resources/read";
        let told = |raw: &'static str, era, is_modern, method| {
            text(error(raw.as_bytes(), era, is_modern, method, br#"{"uri":"a://b"}"#).into_owned())
        };
        let legacy = r#"{"message":"x", "code":-32002,"data":{"n":1.00}}"#;
        let modern = r#"{"message":"x", "code":-32602,"data":{"n":1.00}}"#;
        assert_eq!(told(legacy, Era::Legacy, true, read), modern);
        assert_eq!(told(legacy, Era::Legacy, false, read), legacy);
        assert_eq!(told(legacy, Era::Modern, true, read), legacy);
        assert_eq!(told(legacy, Era::Legacy, true, "x/y"), legacy);
        assert_eq!(told(modern, Era::Modern, false, read), modern);
        let named = r#"{"code":-32602,"data":{"uri":"a:\/\/b"}}"#;
        let back = r#"{"code":-32002,"data":{"uri":"a:\/\/b"}}"#;
        assert_eq!(told(named, Era::Modern, false, read), back);
        let other = r#"{"code":-32602,"data":{"uri":"a://c"}}"#;
        assert_eq!(told(other, Era::Modern, false, read), other);
    }
}

//! `execution.taskSupport` of tools, as legacy clients of 2025-11-25 read it.

use super::super::splice;
use crate::upstream::mcp::scan;

/// Whether the declaration says that its upstream runs calls of the tool as tasks.
pub(super) fn is_supported(declared: &[u8]) -> bool {
    matches!(support(declared), Some(b"\"optional\"")) || is_required(declared)
}

/// Whether the declaration says that its upstream runs calls of the tool as tasks only.
pub(super) fn is_required(declared: &[u8]) -> bool {
    matches!(support(declared), Some(b"\"required\""))
}

fn support(declared: &[u8]) -> Option<&[u8]> {
    scan::member(scan::member(declared, "execution")?, "taskSupport")
}

/// The declaration of a tool whose calls can wait for a person: they can be tasks, whatever its upstream says.
pub(in super::super) fn that_can_wait(declared: Vec<u8>) -> Vec<u8> {
    const KEY: &str = "taskSupport";
    const OPTIONAL: &[u8] = b"\"optional\"";
    if is_supported(&declared) {
        return declared;
    }
    let execution = scan::member(&declared, "execution").filter(|execution| execution.starts_with(b"{"));
    let supporting = execution.and_then(|execution| {
        splice::with_value(execution, KEY, OPTIONAL).or_else(|| splice::with_member(execution, KEY, OPTIONAL))
    });
    let supporting = supporting.unwrap_or_else(|| b"{\"taskSupport\":\"optional\"}".to_vec());
    splice::with_value(&declared, "execution", &supporting)
        .or_else(|| splice::with_member(&declared, "execution", &supporting))
        .unwrap_or(declared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(declared: &str) -> String {
        String::from_utf8(that_can_wait(declared.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn a_tool_that_can_wait_can_be_a_task_and_stays_what_it_is_otherwise() {
        assert_eq!(
            text(r#"{ "name":"t", "x":1.00}"#),
            r#"{"execution":{"taskSupport":"optional"}, "name":"t", "x":1.00}"#
        );
        assert_eq!(
            text(r#"{"name":"t","execution":{"y":1e2,"taskSupport":"forbidden"}}"#),
            r#"{"name":"t","execution":{"y":1e2,"taskSupport":"optional"}}"#
        );
        assert_eq!(
            text(r#"{"name":"t","execution":{}}"#),
            r#"{"name":"t","execution":{"taskSupport":"optional"}}"#
        );
        for as_it_is in [
            r#"{"name":"t","execution":{"taskSupport":"required"}}"#,
            r#"{"name":"t","execution":{"taskSupport":"optional"}}"#,
        ] {
            assert_eq!(text(as_it_is), as_it_is);
        }
    }
}

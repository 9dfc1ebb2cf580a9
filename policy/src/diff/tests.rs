use super::*;
use crate::testing::{catalogue, policies};

fn changes(old: &str, new: &str) -> Vec<(String, String, Direction, bool)> {
    let set = |rules: &str| {
        PolicySet::compile(policies(&format!(
            "name: p\nagent: ['sup-*', b]\nrules: [{rules}]"
        )))
    };
    let (old, new) = (set(old), set(new));
    diff(&old, &new, &subjects(&old, &new), &catalogue())
        .into_iter()
        .map(|change| (change.agent, change.tool, change.direction, change.plain_read))
        .collect()
}

#[test]
fn what_opens_and_closes_is_told_for_each_agent() {
    let found = changes(
        "{tools: [mail.list_mails], action: allow}, {action: deny}",
        "{tools: ['mail.*'], action: allow}, {action: deny}",
    );
    let expected = |agent: &str| {
        (
            agent.to_owned(),
            "mail.send_mail".to_owned(),
            Direction::Opens,
            false,
        )
    };
    assert_eq!(found, [expected("b"), expected("sup-*")]);
    let found = changes(
        "{action: allow}",
        "{tools: [box.run], action: human_approval}, {action: allow}",
    );
    assert_eq!(found[0].2, Direction::Closes);
    assert_eq!(changes("{action: allow}", "{tools: ['*'], action: allow}"), []);
}

#[test]
fn another_limit_in_a_condition_is_a_change() {
    let limit = |value: u32| {
        format!(
            "{{tools: [mail.send_mail], action: allow, condition: {{field: n, operator: '<', value: {value}}}}}, {{action: deny}}"
        )
    };
    let found = changes(&limit(5), &limit(50));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].2, Direction::Changes);
    assert_eq!(changes(&limit(5), &limit(5)), []);
}

//! Reading policies never panics and stays bounded; an accepted policy is the same after it was sent, and decides.
#![no_main]

use fuzz::grammar::{ask, asked};
use libfuzzer_sys::fuzz_target;
use policy::document::{Lists, Source};
use policy::yaml::{self, Node, Value};
use policy::{Policy, PolicySet};

/// Where a value's path stops growing, with room for its last key.
const LONGEST_PATH: usize = 5 * 1024;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(documents) = yaml::load("fuzz.yaml", text) {
        documents.iter().for_each(check_paths);
    }
    let lists: Lists = [("hosts".to_owned(), vec!["*.example".to_owned()])]
        .into_iter()
        .collect();
    match Policy::parse_all("fuzz.yaml", text, &Source::Directory, &lists) {
        Ok(policies) => accepted(policies),
        Err(problems) => {
            assert!(!problems.is_empty());
            problems.iter().for_each(|problem| drop(problem.to_string()));
        }
    }
});

fn check_paths(value: &Value) {
    assert!(value.path().len() <= LONGEST_PATH);
    match value.node() {
        Node::Seq(elements) => elements.iter().for_each(check_paths),
        Node::Map(map) => map.entries().iter().for_each(|entry| check_paths(&entry.value)),
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::NotFinite(_) | Node::String(_) => {}
    }
}

fn accepted(policies: Vec<Policy>) {
    let sent = policies.iter().map(|policy| {
        let sent = policy.to_sent().expect("an accepted policy can be sent");
        let received = match Policy::from_sent(&sent) {
            Ok(received) => received,
            Err(error) => panic!("an accepted policy is refused when sent: {error}"),
        };
        assert_eq!(&received, policy, "sending changes the policy");
        received.into()
    });
    let received = PolicySet::compile(sent.collect::<Vec<_>>());
    let own = PolicySet::compile(policies.into_iter().map(Into::into));
    let call = asked();
    assert_eq!(ask(&call, &own), ask(&call, &received));
}

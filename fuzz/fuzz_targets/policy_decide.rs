//! Whatever the arguments, a valid set of policies decides, the same each time; what could not run is denied.
#![no_main]

use fuzz::grammar::{Choices, ask, call, policies, runs};
use libfuzzer_sys::fuzz_target;
use policy::document::{Lists, Source};
use policy::{Policy, PolicySet};
use tools::classify::RiskSet;

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices::new(bytes);
    let text = policies(&mut choices);
    let mut asked = call(&mut choices);
    asked.arguments = choices.rest().to_vec();

    let set = match Policy::parse_all("fuzz.yaml", &text, &Source::Api, &Lists::none()) {
        Ok(policies) => PolicySet::compile(policies.into_iter().map(Into::into)),
        Err(problems) => panic!("the grammar is not valid: {problems:?}\n{text}"),
    };
    let decision = ask(&asked, &set);
    assert_eq!(
        decision,
        ask(&asked, &set),
        "decided differently the second time\n{text}"
    );

    let view = set.tool_decision(&asked.query(true));
    if view.conditional.is_empty() {
        assert_eq!(
            view.action, decision.action,
            "foreseen otherwise\n{text}\n{asked:?}"
        );
    }
    let could_run = [true, false].map(|knows_session| set.could_run(&asked.query(knows_session)));
    let mut part = asked.clone();
    for risks in asked
        .classification
        .risks
        .iter()
        .map(RiskSet::of)
        .chain([asked.classification.risks])
    {
        part.classification.risks = risks;
        let decision = ask(&part, &set);
        assert!(
            could_run == [true; 2] || !runs(&decision),
            "it could not run, but it does: {decision:?}\n{text}\n{part:?}"
        );
    }
});

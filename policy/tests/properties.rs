//! The compiled set against the reference evaluator, and what the specification promises about undecided tests.
//!
//! `TOOLGATE_POLICY_CASES` sets the number of cases of the differential test (100,000 by default), of which the others take a
//! fifth; `TOOLGATE_POLICY_SEED` repeats a run: each test prints its seed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panicking"
)]
#![allow(clippy::print_stderr, reason = "a failed run is repeated by its seed")]

mod generate;
mod reference;

use std::hash::BuildHasher as _;
use std::sync::Arc;

use generate::{Asked, World, arguments, asked, world};
use policy::decide::FloorSource;
use policy::foresee::ToolQuery;
use policy::grant::{Grant, Grants};
use policy::{Action, Policy, PolicySet};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

/// How many calls are decided by each generated set of policies.
const CALLS: usize = 10;

fn cases() -> u32 {
    let cases = std::env::var("TOOLGATE_POLICY_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(100_000)
}

fn config(cases: u32) -> Config {
    let given = std::env::var("TOOLGATE_POLICY_SEED").ok();
    let seed = given.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        // The standard library seeds its hash maps anew in every process.
        std::hash::RandomState::new().hash_one(0)
    });
    eprintln!(
        "{}: {cases} runs, TOOLGATE_POLICY_SEED={seed}",
        std::thread::current().name().unwrap_or_default()
    );
    Config {
        cases: cases.max(1),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    }
}

fn compile(world: &World) -> PolicySet {
    let policies = world.policies.iter().cloned().map(Arc::new);
    PolicySet::compile_with_invalid(policies, world.invalid.iter().cloned().map(Arc::new).collect())
}

fn reference(world: &World, asked: &Asked, shadow: bool) -> reference::Answer {
    asked.with(|call| reference::decide(&world.policies, &world.invalid, call, shadow, &mut || None))
}

fn agrees(world: &World, set: &PolicySet, asked: &Asked) -> Result<(), TestCaseError> {
    let expected = reference(world, asked, false);
    let with_shadow = reference(world, asked, true);
    // Once with a fresh plan, once with the kept one.
    for _ in 0..2 {
        let decision = asked.with(|call| set.decide(call));
        prop_assert_eq!(decision.action, expected.action, "{:?}", asked);
        prop_assert_eq!(decision.standard, expected.standard, "{:?}", asked);
        prop_assert_eq!(decision.floors.iter().map(|hit| hit.action).max(), expected.floor);
        if expected.floor.is_none_or(|floor| floor <= expected.standard) && world.invalid.is_empty() {
            let rule = decision.rule.map(|rule| (rule.policy.to_string(), rule.index));
            prop_assert_eq!(rule, expected.rule.clone(), "{:?}", asked);
        }
        let shadow = decision.shadow.map(|shadow| shadow.action);
        let differs = (with_shadow.action != expected.action).then_some(with_shadow.action);
        prop_assert_eq!(shadow, differs, "{:?}", asked);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(cases() / CALLS as u32))]

    #[test]
    fn the_compiled_set_decides_as_the_reference_does(
        world in world(),
        calls in prop::collection::vec(asked(), CALLS),
    ) {
        let set = compile(&world);
        for asked in &calls {
            agrees(&world, &set, asked)?;
        }
    }
}

proptest! {
    #![proptest_config(config(cases() / 5))]

    #[test]
    fn no_way_of_resolving_undecided_tests_is_stricter_than_the_decision(
        world in world(),
        asked in asked(),
        answers in prop::collection::vec(any::<bool>(), 64),
    ) {
        let decision = asked.with(|call| compile(&world).decide(call));
        let mut answers = answers.into_iter().cycle();
        let resolved = asked.with(|call| {
            reference::decide(&world.policies, &world.invalid, call, false, &mut || answers.next())
        });
        prop_assert!(resolved.action <= decision.action, "{resolved:?} {decision:?}");
    }

    #[test]
    fn a_tool_that_could_not_run_is_denied_with_all_arguments(
        world in world(),
        asked in asked(),
        others in prop::collection::vec(arguments(), 4),
    ) {
        let set = compile(&world);
        let query = ToolQuery {
            namespace: &asked.namespace,
            agent: &asked.agent,
            user: asked.user.as_ref(),
            session: asked.session.as_ref(),
            tool: &asked.tool,
            classification: &asked.classification,
            targets: Some(&asked.targets),
            floors: &asked.floors,
        };
        let mut runs = false;
        let own = asked.arguments.clone();
        for arguments in others.into_iter().chain([own]) {
            let call = Asked { arguments, ..asked.clone() };
            // Calls have some of the possible risks.
            for risk in asked.classification.risks.iter() {
                let mut part = call.clone();
                part.classification.risks = tools::classify::RiskSet::of(risk);
                runs |= part.with(|call| set.decide(call)).action != Action::Deny;
            }
            runs |= call.with(|call| set.decide(call)).action != Action::Deny;
        }
        prop_assert!(!runs || set.could_run(&query));
        let view = set.tool_decision(&query);
        if view.conditional.is_empty() {
            let decision = asked.with(|call| set.decide(call));
            prop_assert_eq!(view.action, decision.action);
            prop_assert_eq!(set.could_run(&query), view.action != Action::Deny);
        }
    }

    #[test]
    fn a_grant_lifts_only_what_it_may(world in world(), asked in asked(), literal in any::<bool>()) {
        let mut decision = asked.with(|call| compile(&world).decide(call));
        let guardrail = decision.floors.iter().filter_map(|hit| match hit.source {
            FloorSource::Guardrail(_) | FloorSource::InvalidPolicy(_) => Some(hit.action),
            FloorSource::Floor(_) => None,
        });
        let guardrail = guardrail.max();
        let floors: Vec<_> = asked.floors.iter().map(|floor| (floor.kind, floor.action)).collect();
        let expected = reference::lifted(decision.standard, guardrail, &floors, true, literal);
        let pattern = if literal { asked.tool.to_string() } else { "*".to_owned() };
        let grants: Grants = [Arc::new(Grant {
            id: Arc::from("g"),
            namespace: asked.namespace.clone(),
            agent: asked.agent.as_str().parse().unwrap(),
            tools: vec![pattern.parse().unwrap()],
            expires_at: 10,
        })].into_iter().collect();
        let before = decision.clone();
        grants.apply(&mut decision, &asked.namespace, &asked.agent, &asked.tool, 10);
        prop_assert_eq!(&decision, &before, "an ended grant lifts nothing");
        grants.apply(&mut decision, &asked.namespace, &asked.agent, &asked.tool, 9);
        prop_assert_eq!(decision.action, expected);
        prop_assert_eq!(decision.lifted_by.is_some(), expected != before.action);
    }

    #[test]
    fn the_sent_form_keeps_everything(world in world()) {
        for policy in &world.policies {
            let sent = policy.to_sent().unwrap();
            prop_assert_eq!(&Policy::from_sent(&sent).unwrap(), policy);
        }
    }

    #[test]
    fn an_explanation_names_the_deciding_rule(world in world(), asked in asked()) {
        let set = compile(&world);
        asked.with(|call| {
            let explained = set.explain(call);
            let truths = explained.iter().map(|rule| {
                let policy = set.get(rule.rule.policy.as_str()).unwrap();
                (rule.truth, reference::rule_truth(&policy.rules[rule.rule.index], call, &mut || None))
            });
            for (found, expected) in truths {
                assert_eq!(found, expected);
            }
            if let Some(rule) = set.decide(call).rule {
                assert!(explained.iter().any(|one| one.rule == rule));
            }
        });
    }
}

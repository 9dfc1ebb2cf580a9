//! Calls: arguments, classifications, targets and floors.

use policy::Floor;
use policy::decide::FloorKind;
use policy::document::Action;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use tools::classify::{Access, Classification, Family, SideEffect, SideEffectKind, SideEffectSource};
use tools::targets::{Extent, Targets};

use super::{Asked, one_of, risks};

fn json_value() -> impl Strategy<Value = String> {
    let leaf = one_of(&[
        "null", "1", "5", "1.0", "100", "7e-1", "\"a\"", "\"ab\"", "\"1\"", "true", "false", "{}", "[]",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..=3).prop_map(|items| format!("[{}]", items.join(","))),
            (one_of(&["k", "K"]), inner.clone()).prop_map(|(key, value)| format!("{{\"{key}\":{value}}}")),
            (inner.clone(), inner).prop_map(|(one, two)| format!("{{\"k\":{one},\"\\u212a\":{two}}}")),
        ]
    })
}

pub fn arguments() -> impl Strategy<Value = Option<String>> {
    let keys = subsequence(vec!["m", "n", "l", "M", "N"], 0..=3);
    let object = (keys, prop::collection::vec(json_value(), 3)).prop_map(|(keys, values)| {
        let members: Vec<String> = keys
            .iter()
            .zip(values)
            .map(|(key, value)| format!("\"{key}\":{value}"))
            .collect();
        format!("{{{}}}", members.join(","))
    });
    prop::option::weighted(0.95, object)
}

fn extent() -> impl Strategy<Value = Extent> {
    prop_oneof![
        Just(Extent::Unknown),
        prop::collection::vec(one_of(&["ab", "a", "b", "cb"]).prop_map(str::to_owned), 0..=2)
            .prop_map(Extent::Known),
    ]
}

fn targets() -> impl Strategy<Value = Targets> {
    (extent(), extent(), extent(), extent(), extent()).prop_map(
        |(resources, columns, hosts, paths, recipients)| Targets {
            resources,
            columns,
            hosts,
            paths,
            recipients,
        },
    )
}

pub fn classification() -> impl Strategy<Value = Classification> {
    let access = one_of(&[Access::Read, Access::Write, Access::Unknown]);
    let kind = one_of(&[
        SideEffectKind::Read,
        SideEffectKind::Write,
        SideEffectKind::Delete,
    ]);
    (
        risks(),
        access,
        kind,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(risks, access, kind, known, generic, capability, tagged)| Classification {
                risks,
                possible_risks: risks,
                risk: risks.gravest(),
                access,
                side_effect: SideEffect {
                    kind: if known { kind } else { SideEffectKind::Read },
                    source: if known {
                        SideEffectSource::Name
                    } else {
                        SideEffectSource::Default
                    },
                },
                family: if generic { Family::Generic } else { Family::Named },
                capability: capability.then(|| "file.read".to_owned()),
                tags: if tagged {
                    vec!["pci".to_owned()]
                } else {
                    Vec::new()
                },
                ..Classification::unknown("t".parse().unwrap())
            },
        )
}

fn floors() -> impl Strategy<Value = Vec<Floor>> {
    let dispatcher = Action::ALL.map(|action| Floor {
        kind: FloorKind::Dispatcher,
        action,
    });
    let floor = prop_oneof![
        Just(Floor::PIN_NEW),
        Just(Floor::PIN_CHANGED),
        select(dispatcher.to_vec())
    ];
    prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(floor, 1..=2)]
}

pub fn asked() -> impl Strategy<Value = Asked> {
    (
        one_of(&["default", "prod"]),
        one_of(&["a", "ab", "b", "cb"]),
        prop::option::of(one_of(&["ann", "bob"])),
        prop::option::of(one_of(&["a", "s"])),
        one_of(&[
            "x.read",
            "x.write",
            "y.read",
            "x.resource:u",
            "x.prompt:p",
            "Bash",
        ]),
        classification(),
        targets(),
        arguments(),
        floors(),
    )
        .prop_map(
            |(namespace, agent, user, session, tool, classification, targets, arguments, floors)| Asked {
                namespace: namespace.parse().unwrap(),
                agent: agent.parse().unwrap(),
                user: user.map(|user| user.parse().unwrap()),
                session: session.map(|session| session.parse().unwrap()),
                tool: tool.parse().unwrap(),
                classification,
                targets,
                arguments,
                floors,
            },
        )
}

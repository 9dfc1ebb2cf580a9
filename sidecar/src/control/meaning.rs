//! What one resource means here.

use std::sync::Arc;

use policy::document::Policy;
use policy::glob::Glob;
use policy::grant::Grant;
use policy::{InvalidPolicy, PolicySet};
use proto::body::{self, FleetSettings};
use proto::v1::Resource;
use tools::fingerprint::Fingerprint;
use tools::id::PolicyName;

use super::corrections::Said;

/// An accepted fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) namespace: String,
    pub(super) upstream: String,
    pub(super) tool: String,
    /// `None`: it cannot be read, so no tool matches it.
    pub(super) fingerprint: Option<Fingerprint>,
}

/// A decoded resource.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    Policy(Arc<Policy>),
    /// A policy, or something that would restrict like one, that cannot be read: its agents are denied.
    Unreadable(Arc<InvalidPolicy>),
    Pin(Pin),
    Grant(Arc<Grant>),
    Correction(Arc<Said>),
    Settings(Box<FleetSettings>),
    /// Of a kind that this build does not know, or a grant that cannot be read: nothing is loosened by leaving it out.
    Nothing,
}

/// Decodes a resource. What cannot be decoded becomes the strictest thing that it could be, with the reason.
pub(super) fn decode(resource: &Resource) -> (Meaning, Option<String>) {
    match resource.r#type.as_str() {
        body::POLICY => match decode_policy(resource) {
            Ok(policy) => (Meaning::Policy(Arc::new(policy)), None),
            Err(reason) => (unreadable(resource), Some(reason)),
        },
        body::PIN => decode_pin(resource),
        body::GRANT => match serde_json::from_slice::<body::Grant>(&resource.body)
            .map_err(|error| error.to_string())
            .and_then(decode_grant)
        {
            Ok(grant) => (Meaning::Grant(Arc::new(grant)), None),
            Err(reason) => (Meaning::Nothing, Some(reason)),
        },
        body::SETTING if resource.name == body::FLEET => match serde_json::from_slice(&resource.body) {
            Ok(settings) => (Meaning::Settings(Box::new(settings)), None),
            Err(error) => (Meaning::Settings(Box::new(strictest())), Some(error.to_string())),
        },
        body::CORRECTION => match Said::decode(resource) {
            Ok(said) => (Meaning::Correction(Arc::new(said)), None),
            Err(unread) => {
                let (said, reason) = *unread;
                (Meaning::Correction(Arc::new(said)), Some(reason))
            }
        },
        unknown => {
            let reason = format!("this build does not know resources of type {unknown:?}; upgrade it");
            (Meaning::Nothing, Some(reason))
        }
    }
}

fn decode_policy(resource: &Resource) -> Result<Policy, String> {
    let policy = Policy::from_sent(&resource.body).map_err(|error| error.to_string())?;
    if policy.name.as_str() != resource.name {
        return Err(format!("the policy calls itself {:?}", policy.name.as_str()));
    }
    Ok(policy)
}

fn unreadable(resource: &Resource) -> Meaning {
    let name = PolicyName::try_from(resource.name.as_str())
        .or_else(|_| PolicyName::try_from("unreadable"))
        .ok();
    let Some(name) = name else { return Meaning::Nothing };
    Meaning::Unreadable(Arc::new(InvalidPolicy {
        name,
        agents: globs(&resource.agents),
        namespaces: globs(&resource.namespaces),
    }))
}

/// The patterns; none, which means everything, when one of them cannot be read.
fn globs(texts: &[String]) -> Vec<Glob> {
    let parsed: Option<Vec<Glob>> = texts.iter().map(|text| text.parse().ok()).collect();
    parsed.unwrap_or_default()
}

fn decode_pin(resource: &Resource) -> (Meaning, Option<String>) {
    let decoded = serde_json::from_slice::<body::Pin>(&resource.body)
        .map_err(|error| error.to_string())
        .and_then(|pin| {
            let fingerprint = pin
                .fingerprint
                .parse()
                .map_err(|_| "the fingerprint is not valid".to_owned())?;
            Ok((pin, fingerprint))
        });
    match decoded {
        Ok((pin, fingerprint)) => {
            let pin = Pin {
                namespace: pin.namespace,
                upstream: pin.upstream,
                tool: pin.tool,
                fingerprint: Some(fingerprint),
            };
            (Meaning::Pin(pin), None)
        }
        Err(reason) => {
            let (namespace, tool) = resource.name.split_once('/').unwrap_or(("", &resource.name));
            let pin = Pin {
                namespace: namespace.to_owned(),
                upstream: tool
                    .split_once('.')
                    .map_or("", |(upstream, _)| upstream)
                    .to_owned(),
                tool: tool.to_owned(),
                fingerprint: None,
            };
            (Meaning::Pin(pin), Some(reason))
        }
    }
}

fn decode_grant(grant: body::Grant) -> Result<Grant, String> {
    let tools = grant
        .tools
        .iter()
        .map(|tool| tool.parse())
        .collect::<Result<Vec<_>, _>>();
    Ok(Grant {
        id: grant.id.into(),
        namespace: grant
            .namespace
            .parse()
            .map_err(|error| format!("namespace: {error}"))?,
        agent: grant.agent.parse().map_err(|error| format!("agent: {error}"))?,
        tools: tools.map_err(|error| format!("tools: {error}"))?,
        expires_at: grant.expires_at,
    })
}

/// What holds while the fleet's settings cannot be read: plain reads only, pins enforced, nothing of the arguments reported.
fn strictest() -> FleetSettings {
    FleetSettings {
        staleness_write_ms: 0,
        pin_tools: true,
        hide_denied_tools: true,
        params: "digest".to_owned(),
        ..FleetSettings::default()
    }
}

/// Compiles the policies of a view.
pub(super) fn compile<'a>(meanings: impl Iterator<Item = &'a Meaning>) -> PolicySet {
    let mut policies = Vec::new();
    let mut invalid = Vec::new();
    for meaning in meanings {
        match meaning {
            Meaning::Policy(policy) => policies.push(policy.clone()),
            Meaning::Unreadable(policy) => invalid.push(policy.clone()),
            Meaning::Pin(_)
            | Meaning::Grant(_)
            | Meaning::Correction(_)
            | Meaning::Settings(_)
            | Meaning::Nothing => {}
        }
    }
    PolicySet::compile_with_invalid(policies, invalid)
}

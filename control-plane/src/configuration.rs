//! What the configuration says of desired state, at the start and when its file has changed.

use config::Config;
use policy::Policy;
use proto::body::FleetSettings;
use serde_json::json;

use crate::documents;
use crate::options::Options;
use crate::start::StartError;
use crate::store::desired::{Expected, OriginKind, PolicyDraft};
use crate::store::{Act, Store};

/// What the fleet decides for every sidecar is what the configuration says.
pub(crate) async fn keep_settings(store: &dyn Store, settings: &FleetSettings) -> Result<(), StartError> {
    let body = serde_json::to_value(settings)?;
    let act = Act::new(
        "mesh.settings",
        "configuration",
        json!({"key": proto::body::FLEET, "value": body}),
    );
    store
        .put_setting(proto::body::FLEET, body, Expected::Any, act)
        .await?;
    Ok(())
}

/// The configuration's own policies are these and no others.
pub(crate) async fn keep_policies(store: &dyn Store, policies: &[Policy]) -> Result<(), StartError> {
    let inline = policies.iter().map(|policy| {
        let text = serde_json::to_string_pretty(policy)?;
        documents::draft(policy, &text)
    });
    let inline: Vec<PolicyDraft> = inline.collect::<Result<_, _>>()?;
    let names: Vec<&str> = inline.iter().map(|draft| draft.name.as_str()).collect();
    let act = Act::new("mesh.policy_edit", "configuration", json!({"policies": names}));
    store.apply_policies(OriginKind::Inline, inline, act).await?;
    Ok(())
}

/// Applies what differs, and leaves alone what operators changed of the rest.
pub(crate) async fn reload(store: &dyn Store, before: &Config, after: &Config) -> Result<(), StartError> {
    let (before, after) = (Options::from(before), Options::from(after));
    if before.settings != after.settings {
        keep_settings(store, &after.settings).await?;
    }
    if before.policies != after.policies {
        keep_policies(store, &after.policies).await?;
    }
    Ok(())
}

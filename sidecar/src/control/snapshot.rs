//! The view in the form that calls are decided by.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use policy::PolicySet;
use policy::grant::Grants;
use proto::body::FleetSettings;
use tools::fingerprint::Fingerprint;

use super::Revision;
use super::corrections::Corrections;
use super::lease::Staleness;
use super::meaning::{self, Meaning, Pin};
use super::view::View;

/// How a declared tool stands to its pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinStatus {
    /// Pins are not kept.
    Off,
    /// The accepted version.
    Pinned,
    /// Not accepted: its upstream has pins and it has none, or the control plane has not seen the upstream yet.
    New,
    /// Another version than the accepted one.
    Changed,
}

/// The accepted fingerprints of a view.
#[derive(Debug, Default)]
pub struct Pins {
    by_tool: HashMap<(Box<str>, Box<str>), Option<Fingerprint>>,
    upstreams: HashSet<(Box<str>, Box<str>)>,
}

impl Pins {
    fn insert(&mut self, pin: &Pin) {
        let namespace: Box<str> = pin.namespace.as_str().into();
        self.upstreams
            .insert((namespace.clone(), pin.upstream.as_str().into()));
        self.by_tool
            .insert((namespace, pin.tool.as_str().into()), pin.fingerprint);
    }

    /// The status of a tool as its upstream declares it now. What has no pin is new.
    pub fn status(&self, namespace: &str, tool: &str, declared: &Fingerprint) -> PinStatus {
        match self.by_tool.get(&(namespace.into(), tool.into())) {
            Some(Some(accepted)) if accepted == declared => PinStatus::Pinned,
            Some(_) => PinStatus::Changed,
            None => PinStatus::New,
        }
    }

    /// Whether anything of the upstream was ever accepted.
    pub fn knows_upstream(&self, namespace: &str, upstream: &str) -> bool {
        self.upstreams.contains(&(namespace.into(), upstream.into()))
    }

    /// How many tools are pinned.
    pub fn len(&self) -> usize {
        self.by_tool.len()
    }

    /// Whether nothing is pinned.
    pub fn is_empty(&self) -> bool {
        self.by_tool.is_empty()
    }
}

/// Desired state at one revision. Never changed; a later one takes its place.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The revision; zero before the first snapshot.
    pub revision: Revision,
    /// The compiled policies. Empty before the first snapshot, which denies everything.
    pub policies: Arc<PolicySet>,
    /// Accepted fingerprints.
    pub pins: Arc<Pins>,
    /// Live grants.
    pub grants: Arc<Grants>,
    /// What operators corrected about tools.
    pub corrections: Arc<Corrections>,
    /// What the fleet decides, already tightened by local configuration where that exists.
    pub settings: Arc<FleetSettings>,
    /// Ages from which less may run, tightened.
    pub(super) staleness: Staleness,
    /// A view was applied.
    pub(super) is_present: bool,
}

impl Default for Staleness {
    fn default() -> Self {
        Self {
            write: Duration::ZERO,
            read: Duration::ZERO,
        }
    }
}

/// What local configuration tightens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LocalBounds {
    pub(super) write: Option<Duration>,
    pub(super) read: Option<Duration>,
}

impl Snapshot {
    /// Compiles a view. What `before` was compiled from and did not change is taken from there.
    pub(super) fn compile(view: &View, local: LocalBounds, before: Option<(&View, &Snapshot)>) -> Self {
        let policies = match before.filter(|(old, _)| view.has_policies_of(old)) {
            Some((_, snapshot)) => snapshot.policies.clone(),
            None => Arc::new(meaning::compile(view.meanings())),
        };
        let mut pins = Pins::default();
        let mut grants = Vec::new();
        let mut said = Vec::new();
        let mut settings = FleetSettings::default();
        for meaning in view.meanings() {
            match meaning {
                Meaning::Pin(pin) => pins.insert(pin),
                Meaning::Grant(grant) => grants.push(grant.clone()),
                Meaning::Correction(one) => said.push(&**one),
                Meaning::Settings(fleet) => settings.clone_from(fleet),
                Meaning::Policy(_) | Meaning::Unreadable(_) | Meaning::Nothing => {}
            }
        }
        let corrections = Corrections::new(view.revision, said.into_iter());
        // The same object while nothing of it changes: tools are judged again only when it is another.
        let corrections = match before.map(|(_, snapshot)| &snapshot.corrections) {
            Some(held) if held.says_the_same(&corrections) => Arc::clone(held),
            Some(_) | None => Arc::new(corrections),
        };
        let fleet = Staleness {
            write: Duration::from_millis(settings.staleness_write_ms),
            read: Duration::from_millis(settings.staleness_read_ms),
        };
        Self {
            revision: view.revision,
            policies,
            pins: Arc::new(pins),
            grants: Arc::new(grants.into_iter().collect()),
            corrections,
            settings: Arc::new(settings),
            staleness: fleet.tightened(local.write, local.read),
            is_present: true,
        }
    }

    /// The bounds of the lease's age in force.
    pub fn staleness(&self) -> Staleness {
        self.staleness
    }
}

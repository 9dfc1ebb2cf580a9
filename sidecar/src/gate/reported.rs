//! What of a call may be reported, as the fleet says and the local configuration tightens.

use std::sync::Arc;

use proto::body::FleetSettings;

use super::Gate;
use crate::control::Snapshot;
use crate::control::redact::Redactor;

/// The redactor that was made of some settings.
pub(super) struct KnownRedactor {
    of: Arc<FleetSettings>,
    redactor: Arc<Redactor>,
}

impl Gate {
    /// The redactor for the settings in force; made anew when they change.
    pub(super) fn redactor(&self, view: &Snapshot) -> Arc<Redactor> {
        let known = self.redactor.load_full();
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.of, &view.settings)) {
            return Arc::clone(&known.redactor);
        }
        let local = self.local.redact.iter().map(String::as_str);
        let redactor = Arc::new(Redactor::tightened(&view.settings, self.local.params, local));
        self.redactor.store(Some(Arc::new(KnownRedactor {
            of: Arc::clone(&view.settings),
            redactor: Arc::clone(&redactor),
        })));
        redactor
    }
}

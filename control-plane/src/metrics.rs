//! What `/metrics` shows, in the format of Prometheus.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::store::Revision;

/// The control plane's metrics. Clones share their values.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    /// Watch streams of sidecars.
    pub streams: Gauge,
    /// Records committed to the chain by this process.
    pub records: Counter,
    /// Whole snapshots sent.
    pub full_snapshots: Counter,
    /// Bytes of deltas sent.
    pub delta_bytes: Counter,
    /// Lots of calls per minute that sidecars asked for.
    pub quota_leases: Counter,
    /// Enrolments of sidecars that were refused.
    pub enrolments_refused: Counter,
    /// Whether limits are counted in Redis at the moment.
    pub redis_up: Gauge,
    /// Milliseconds since the last successful read of the primary began.
    pub read_age: Gauge,
    generation: Gauge,
    revision: Gauge,
    chain: Gauge,
    checkpoint: Gauge,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Arc::new(Mutex::new(Registry::with_prefix("toolgate"))),
            streams: Gauge::default(),
            records: Counter::default(),
            full_snapshots: Counter::default(),
            delta_bytes: Counter::default(),
            quota_leases: Counter::default(),
            enrolments_refused: Counter::default(),
            redis_up: Gauge::default(),
            read_age: Gauge::default(),
            generation: Gauge::default(),
            revision: Gauge::default(),
            chain: Gauge::default(),
            checkpoint: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.register(
            "sidecar_streams",
            "Watch streams of sidecars",
            self.streams.clone(),
        );
        registry.register("records", "Records committed to the chain", self.records.clone());
        registry.register(
            "snapshots_sent",
            "Whole snapshots sent to sidecars",
            self.full_snapshots.clone(),
        );
        registry.register(
            "delta_bytes",
            "Bytes of deltas sent to sidecars",
            self.delta_bytes.clone(),
        );
        registry.register(
            "quota_leases",
            "Lots of calls per minute that sidecars asked for",
            self.quota_leases.clone(),
        );
        registry.register(
            "sidecar_enrolments_refused",
            "Enrolments of sidecars that were refused",
            self.enrolments_refused.clone(),
        );
        registry.register(
            "redis_up",
            "Whether rate limits are counted in Redis now",
            self.redis_up.clone(),
        );
        registry.register(
            "primary_read_age_milliseconds",
            "Time since the last successful read of the primary",
            self.read_age.clone(),
        );
        registry.register(
            "generation",
            "Generation of desired state",
            self.generation.clone(),
        );
        registry.register(
            "revision",
            "Revision of desired state in memory",
            self.revision.clone(),
        );
        registry.register(
            "chain_head",
            "Sequence number of the newest record",
            self.chain.clone(),
        );
        registry.register(
            "chain_checkpoint",
            "Sequence number of the newest checkpoint",
            self.checkpoint.clone(),
        );
    }

    /// The view in memory moved.
    pub fn revision_changed(&self, revision: Revision) {
        set(&self.generation, revision.generation);
        set(&self.revision, revision.number);
    }

    /// The chain's head was seen at `seq`.
    pub fn chain_moved(&self, seq: u64) {
        set(&self.chain, seq);
    }

    /// The newest checkpoint covers `seq`.
    pub fn checkpoint_made(&self, seq: u64) {
        set(&self.checkpoint, seq);
    }

    /// The text that `/metrics` answers.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a String does not fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

fn set(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

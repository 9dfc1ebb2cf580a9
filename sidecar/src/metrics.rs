//! What a sidecar counts, for `GET /metrics`.

use std::time::Duration;

use chain::vocabulary::Outcome;
use policy::document::Action;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::gate::{AskReport, CallReport, Gate};

/// Labels of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    action: ActionLabel,
    outcome: OutcomeLabel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ActionLabel(Option<Action>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct OutcomeLabel(Outcome);

impl EncodeLabelValue for ActionLabel {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>) -> std::fmt::Result {
        self.0.map_or("none", Action::as_str).encode(encoder)
    }
}

impl EncodeLabelValue for OutcomeLabel {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>) -> std::fmt::Result {
        self.0.name().encode(encoder)
    }
}

/// The counters and histograms.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    decisions: Family<CallLabels, Counter>,
    shadow_differences: Counter,
    decision_seconds: Histogram,
    added_seconds: Histogram,
    records_not_kept: Counter,
    credentials_refused: Counter,
    calls_in_flight: Gauge,
    revision: Gauge,
    generation: Gauge,
    lease_age: Gauge<f64, std::sync::atomic::AtomicU64>,
    spool_bytes: Gauge,
    spool_unsettled: Gauge,
    tools: Gauge,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("toolgate_sidecar");
        let calls = Family::<CallLabels, Counter>::default();
        registry.register("calls", "Tool calls by action and outcome", calls.clone());
        let decisions = Family::<CallLabels, Counter>::default();
        registry.register(
            "decisions",
            "Decisions asked for without a call",
            decisions.clone(),
        );
        let shadow_differences = Counter::default();
        registry.register(
            "shadow_differences",
            "Decisions that shadow policies would have changed",
            shadow_differences.clone(),
        );
        let decision_seconds = Histogram::new(exponential_buckets(0.000_001, 2.0, 16));
        registry.register_with_unit(
            "decision",
            "From a call's arrival to its decision",
            Unit::Seconds,
            decision_seconds.clone(),
        );
        let added_seconds = Histogram::new(exponential_buckets(0.000_01, 2.0, 18));
        registry.register_with_unit(
            "added",
            "Time of a forwarded call that was not the upstream's, waiting for people included",
            Unit::Seconds,
            added_seconds.clone(),
        );
        let records_not_kept = Counter::default();
        registry.register(
            "records_not_kept",
            "Records that the spool refused",
            records_not_kept.clone(),
        );
        let credentials_refused = Counter::default();
        registry.register(
            "credentials_refused",
            "Requests whose credential was refused",
            credentials_refused.clone(),
        );
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let calls_in_flight = gauge("calls_in_flight", "Calls forwarded and not answered");
        let revision = gauge("snapshot_revision", "Number of the revision in force");
        let generation = gauge("snapshot_generation", "Generation of the revision in force");
        let spool_bytes = gauge("spool_bytes", "Bytes in the queue of records");
        let spool_unsettled = gauge("spool_unsettled_records", "Records that may not be forgotten yet");
        let tools = gauge("tools", "Tools that are served");
        let lease_age = Gauge::default();
        registry.register_with_unit(
            "lease_age",
            "Age of the lease in force",
            Unit::Seconds,
            lease_age.clone(),
        );
        Self {
            registry,
            calls,
            decisions,
            shadow_differences,
            decision_seconds,
            added_seconds,
            records_not_kept,
            credentials_refused,
            calls_in_flight,
            revision,
            generation,
            lease_age,
            spool_bytes,
            spool_unsettled,
            tools,
        }
    }

    /// A call has ended.
    pub(crate) fn call(
        &self,
        report: &CallReport,
        outcome: Outcome,
        decision: Option<Duration>,
        upstream: Option<Duration>,
    ) {
        let labels = CallLabels {
            action: ActionLabel(report.summary.action),
            outcome: OutcomeLabel(outcome),
        };
        self.calls.get_or_create(&labels).inc();
        if report.summary.shadow.is_some() {
            self.shadow_differences.inc();
        }
        if let Some(decision) = decision {
            self.decision_seconds.observe(decision.as_secs_f64());
        }
        if let Some(upstream) = upstream {
            self.added_seconds
                .observe(report.latency.saturating_sub(upstream).as_secs_f64());
        }
    }

    /// A question was answered.
    pub(crate) fn asked(&self, report: &AskReport) {
        let labels = CallLabels {
            action: ActionLabel(Some(report.action())),
            outcome: OutcomeLabel(Outcome::Decided),
        };
        self.decisions.get_or_create(&labels).inc();
    }

    /// The spool refused a record.
    pub(crate) fn record_not_kept(&self) {
        self.records_not_kept.inc();
    }

    /// A caller's credential was refused.
    pub(crate) fn credential_refused(&self) {
        self.credentials_refused.inc();
    }

    /// The text that Prometheus reads, with the gauges as they are now.
    pub fn render(&self, gate: &Gate) -> String {
        let snapshot = gate.control().snapshot();
        let spool = gate.spool().status();
        self.calls_in_flight.set(signed(gate.calls_in_flight() as u64));
        self.revision.set(signed(snapshot.revision.number));
        self.generation.set(signed(snapshot.revision.generation));
        let age = gate.control().lease_age();
        self.lease_age
            .set(age.map_or(f64::INFINITY, |age| age.as_secs_f64()));
        self.spool_bytes.set(signed(spool.used));
        self.spool_unsettled.set(signed(spool.unsettled));
        self.tools.set(signed(gate.registry().tools().len() as u64));
        let mut out = String::new();
        match text::encode(&mut out, &self.registry) {
            Ok(()) => out,
            Err(_) => String::new(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

//! The control plane: keeps policies, pins, grants, approvals, stops and the trace chain, and gives every sidecar its part.
//!
//! [`start`] makes a running [`ControlPlane`] out of [`Options`]; [`run`] reads them from the configuration, binds the listeners and
//! serves until a signal comes. Inside, [`core::Core`] is what the parts share: the [`store`], desired state in memory
//! ([`snapshot`]), [`stops`], the [`approvals`]' feed, the way of records into the chain ([`traces`]), [`keys`] and [`auth`].

#![cfg_attr(
    test,
    allow(clippy::string_slice, reason = "a test that slices wrongly fails")
)]

pub mod api;
pub mod approvals;
pub mod auth;
mod configuration;
pub mod core;
pub mod documents;
mod front;
mod grpc;
mod in_memory;
pub mod keys;
mod metrics;
mod options;
pub mod quotas;
pub mod rollout;
mod run;
mod secret_file;
#[cfg(test)]
mod services_tests;
pub mod snapshot;
mod start;
pub mod stops;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod traces;

pub use metrics::Metrics;
pub use options::{Options, Storage};
pub use run::{RunError, run};
pub use start::{ControlPlane, StartError, migrate, start};

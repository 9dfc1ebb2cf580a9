//! The data plane: proxies every tool call of the agents beside it, decides it locally, and reports what happened.
//!
//! [`start`] makes a running [`Sidecar`]; [`run`] adds the listener and the end on a signal. A call walks one way:
//! [`agent`] (what agents talk to) -> [`identity`] (who calls) -> [`gate`] (the decision) -> [`registry`] (the tools) and
//! [`upstream`] (where they are), with [`control`] (the link to the control plane) and [`spool`] (the queue of records).

pub mod agent;
pub mod control;
pub mod gate;
pub mod identity;
mod link_thread;
pub mod metrics;
mod publish;
pub mod registry;
mod run;
mod settings;
pub mod spool;
mod start;
pub mod upstream;

pub use run::{RunError, run};
pub use start::{Options, Sidecar, StartError, start};
pub use upstream::children::keep_if_asked;

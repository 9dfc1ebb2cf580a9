//! The truth of an installation: one trait, [`Store`], kept by Postgres in a fleet and by SQLite on one machine.
//!
//! Each concern has a file with its types and its part of the trait: [`desired`] (and [`catalogue`]), [`approvals`], [`stops`],
//! [`sidecars`], [`records`], [`keys`], [`quotas`].
//!
//! Every operation is one transaction. Transactions that meet another's lock in the wrong order or cannot be serialised are run again,
//! a bounded number of times, inside the store. Locks are always taken in this order: `revision`, the sequence of stops, rows of
//! approvals and sidecars, the other sequences, epochs, the chain's head.

pub mod approvals;
pub mod catalogue;
pub mod desired;
mod error;
pub mod keys;
pub mod quotas;
pub mod records;
pub mod sidecars;
pub mod stops;
mod types;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::{
    approvals::Approvals,
    catalogue::Catalogue,
    desired::{DesiredState, GrantsAndSettings, Policies},
    error::{EnrolRefusal, StoreError, StoreResult},
    keys::Keys,
    quotas::Quotas,
    records::Records,
    sidecars::Sidecars,
    stops::Stops,
    types::{Act, Head, Micros, Revision, Topic},
};

/// Everything that the control plane keeps.
#[async_trait]
pub trait Store:
    DesiredState
    + Policies
    + GrantsAndSettings
    + Catalogue
    + Stops
    + Approvals
    + Sidecars
    + Records
    + Keys
    + Quotas
{
    /// What replicas poll, each 100 ms. An error means that no lease may be given.
    async fn head(&self) -> StoreResult<Head>;

    /// Changes its value when the topic may have news, here or on another replica. Only a hint; polling is the baseline.
    fn wake(&self, topic: Topic) -> tokio::sync::watch::Receiver<u64>;

    /// Ends background work and closes connections.
    async fn close(&self);
}

/// The store as the services hold it.
pub type SharedStore = Arc<dyn Store>;

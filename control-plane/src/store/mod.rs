//! The truth of an installation: one trait, [`Store`], kept by Postgres in a fleet and by SQLite on one machine.
//!
//! Each concern has a file with its types and its part of the trait: [`desired`] (and [`catalogue`], [`corrections`]), [`approvals`], [`stops`],
//! [`sidecars`], [`records`], [`keys`], [`operator_tokens`], [`quotas`].
//!
//! Every operation is one transaction. Transactions that meet another's lock in the wrong order or cannot be serialised are run again,
//! a bounded number of times, inside the store. Locks are always taken in this order: `revision`, the sequence of stops, rows of
//! approvals and sidecars, the other sequences, epochs, the chain's head.

pub mod approvals;
pub mod catalogue;
pub mod corrections;
pub mod desired;
mod error;
pub mod keys;
pub mod operator_tokens;
pub mod postgres;
pub mod quotas;
pub mod records;
pub mod sidecars;
mod sql;
pub mod sqlite;
pub mod stops;
mod types;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::{
    approvals::Approvals,
    catalogue::Catalogue,
    corrections::Corrections,
    desired::{DesiredState, GrantsAndSettings, Policies},
    error::{EnrolRefusal, StoreError, StoreResult},
    keys::Keys,
    operator_tokens::OperatorTokens,
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
    + Corrections
    + Stops
    + Approvals
    + Sidecars
    + Records
    + Keys
    + OperatorTokens
    + Quotas
{
    /// What replicas poll, each 100 ms. An error means that no lease may be given.
    async fn head(&self) -> StoreResult<Head>;

    /// Changes its value when the topic may have news, here or on another replica. Only a hint; polling is the baseline.
    fn wake(&self, topic: Topic) -> tokio::sync::watch::Receiver<u64>;

    /// Records that this process links from now on have MACs under this key.
    fn use_chain_key(&self, key: Option<chain::link::MacKey>);

    /// Ends background work and closes connections.
    async fn close(&self);
}

/// The store as the services hold it.
pub type SharedStore = Arc<dyn Store>;

/// Opens the store at a location, its schema brought to this build's version: `postgres://…`, or the path of an SQLite file.
pub async fn open(location: &str) -> StoreResult<SharedStore> {
    if is_postgres(location) {
        Ok(Arc::new(postgres::connect(location).await?))
    } else {
        Ok(Arc::new(sqlite::connect(sqlite_path(location)).await?))
    }
}

/// Brings the schema at a location to this build's version; as [`open`] does, without serving.
pub async fn migrate(location: &str) -> StoreResult<()> {
    if is_postgres(location) {
        postgres::migrate(location).await
    } else {
        sqlite::migrate(sqlite_path(location)).await
    }
}

fn is_postgres(location: &str) -> bool {
    location.starts_with("postgres://") || location.starts_with("postgresql://")
}

fn sqlite_path(location: &str) -> &std::path::Path {
    let path = location
        .strip_prefix("sqlite://")
        .or_else(|| location.strip_prefix("sqlite:"));
    std::path::Path::new(path.unwrap_or(location))
}

#[cfg(test)]
mod conformance;

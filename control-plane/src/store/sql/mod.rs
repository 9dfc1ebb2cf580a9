//! The store in SQL that both databases read. What differs between them is in [`tx`], `postgres` and `sqlite`.

pub(crate) mod tx;
pub(crate) mod value;

mod acts;
mod approval_rows;
mod approvals;
mod catalogue;
mod change;
mod checkpoints;
mod claims;
mod corrections;
mod deadlines;
mod desired;
mod epochs;
mod generation;
mod grants;
mod ingest;
mod join_tokens;
mod keys;
mod operator_tokens;
mod policies;
mod quotas;
mod reading;
mod sidecar_reports;
mod sidecars;
mod stops;

use std::time::Duration;

use async_trait::async_trait;
use chain::link::MacKey;
use sqlx::{PgPool, SqlitePool};
use tokio::{sync::watch, task::JoinSet};

use self::{
    tx::{Connection, Tx},
    value::args,
};
use super::{
    Store,
    error::{StoreError, StoreResult},
    types::{Head, Revision, Topic},
};

/// `transact!(store, "doing", tx => work(&mut tx))`: one transaction, tried again while others are in its way.
macro_rules! transact {
    (@ $access:ident, $store:expr, $doing:literal, $tx:ident => $work:expr) => {{
        let mut attempts =
            $crate::store::sql::Attempts::new($store, $crate::store::sql::Access::$access, $doing);
        loop {
            let mut transaction = attempts.begin().await?;
            let result = {
                let $tx = &mut transaction;
                $work.await
            };
            if let Some(ended) = attempts.end(transaction, result).await {
                break ended;
            }
        }
    }};
    (read $store:expr, $doing:literal, $tx:ident => $work:expr) => {
        transact!(@ Read, $store, $doing, $tx => $work)
    };
    (write $store:expr, $doing:literal, $tx:ident => $work:expr) => {
        transact!(@ Write, $store, $doing, $tx => $work)
    };
}
pub(crate) use transact;

/// How often a transaction is tried when others are in its way.
const ATTEMPTS: u32 = 8;

/// Either database.
pub(crate) enum Database {
    Postgres(PgPool),
    Sqlite {
        /// Of one connection: those who write wait for it in turn.
        writer: SqlitePool,
        readers: SqlitePool,
    },
}

/// The store on one database.
pub(crate) struct SqlStore {
    pub(crate) database: Database,
    pub(crate) wakes: Wakes,
    mac_key: std::sync::RwLock<Option<MacKey>>,
    /// Background work; ended by [`Store::close`].
    pub(crate) tasks: std::sync::Mutex<JoinSet<()>>,
}

/// One watch per topic.
#[derive(Clone)]
pub(crate) struct Wakes(std::sync::Arc<[watch::Sender<u64>; 5]>);

impl Wakes {
    pub(crate) fn new() -> Self {
        Self(std::sync::Arc::new(std::array::from_fn(|_| {
            watch::Sender::new(0)
        })))
    }

    fn sender(&self, topic: Topic) -> &watch::Sender<u64> {
        let [changes, stops, approvals, sidecars, records] = &*self.0;
        match topic {
            Topic::Changes => changes,
            Topic::Stops => stops,
            Topic::Approvals => approvals,
            Topic::Sidecars => sidecars,
            Topic::Records => records,
        }
    }

    pub(crate) fn wake(&self, topic: Topic) {
        self.sender(topic).send_modify(|count| *count += 1);
    }
}

impl SqlStore {
    pub(crate) fn new(database: Database, wakes: Wakes) -> Self {
        Self {
            database,
            wakes,
            mac_key: std::sync::RwLock::default(),
            tasks: std::sync::Mutex::new(JoinSet::new()),
        }
    }

    /// Compares the database with the one that this data last lived in.
    pub(crate) async fn adopt(&self) -> StoreResult<()> {
        transact!(write self, "adopting the database", tx => generation::adopt(tx))
    }

    async fn begin(&self, access: Access) -> Result<Tx, sqlx::Error> {
        let connection = match (&self.database, access) {
            (Database::Postgres(pool), Access::Write) => Connection::Postgres(pool.begin().await?),
            (Database::Postgres(pool), Access::Read) => Connection::Postgres(
                pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    .await?,
            ),
            (Database::Sqlite { writer, .. }, Access::Write) => {
                Connection::Sqlite(writer.begin_with("BEGIN IMMEDIATE").await?)
            }
            (Database::Sqlite { readers, .. }, Access::Read) => Connection::Sqlite(readers.begin().await?),
        };
        let mac_key = self.mac_key.read().map(|key| key.clone()).unwrap_or_default();
        Ok(Tx::new(connection, mac_key, access))
    }
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    /// Reads one consistent state.
    Read,
    /// Takes the locks that it needs.
    Write,
}

/// The tries of one transaction.
pub(crate) struct Attempts<'s> {
    store: &'s SqlStore,
    doing: &'static str,
    access: Access,
    made: u32,
}

impl<'s> Attempts<'s> {
    pub(crate) fn new(store: &'s SqlStore, access: Access, doing: &'static str) -> Self {
        Self {
            store,
            doing,
            access,
            made: 0,
        }
    }

    pub(crate) async fn begin(&mut self) -> StoreResult<Tx> {
        self.made += 1;
        self.store
            .begin(self.access)
            .await
            .map_err(|source| StoreError::Database {
                doing: self.doing,
                source,
            })
    }

    /// Commits or rolls back. `None`: try again.
    pub(crate) async fn end<T>(&self, tx: Tx, result: StoreResult<T>) -> Option<StoreResult<T>> {
        let ended = match result {
            Ok(value) => match tx.commit().await {
                Ok(wakes) => {
                    wakes.into_iter().for_each(|topic| self.store.wakes.wake(topic));
                    Ok(value)
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        match ended {
            Err(StoreError::Database { source, .. }) if self.made < ATTEMPTS && is_transient(&source) => {
                tracing::debug!(
                    doing = self.doing,
                    attempt = self.made,
                    "transaction met another, trying again"
                );
                tokio::time::sleep(Duration::from_millis(u64::from(self.made * self.made))).await;
                None
            }
            Err(StoreError::Database { source, .. }) => Some(Err(StoreError::Database {
                doing: self.doing,
                source,
            })),
            other => Some(other),
        }
    }
}

/// Another transaction was in the way: a deadlock, a serialisation failure, a busy file, or a row that both made.
fn is_transient(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else {
        return false;
    };
    error.is_unique_violation()
        || error
            .code()
            .is_some_and(|code| matches!(&*code, "40001" | "40P01" | "55P03" | "5" | "6" | "261" | "517"))
}

impl From<sqlx::Error> for StoreError {
    fn from(source: sqlx::Error) -> Self {
        Self::Database {
            doing: "working",
            source,
        }
    }
}

#[async_trait]
impl Store for SqlStore {
    async fn head(&self) -> StoreResult<Head> {
        match &self.database {
            Database::Postgres(pool) => {
                let head = crate::store::postgres::head(pool).await?;
                if head.same_history {
                    return Ok(head.head);
                }
                // The primary changed under us: this is another history of the database.
                self.adopt().await?;
                Ok(crate::store::postgres::head(pool).await?.head)
            }
            Database::Sqlite { .. } => transact!(read self, "reading the head", tx => sqlite_head(tx)),
        }
    }

    fn wake(&self, topic: Topic) -> watch::Receiver<u64> {
        self.wakes.sender(topic).subscribe()
    }

    fn use_chain_key(&self, key: Option<MacKey>) {
        if let Ok(mut held) = self.mac_key.write() {
            *held = key;
        }
    }

    async fn close(&self) {
        let tasks = self
            .tasks
            .lock()
            .ok()
            .map(|mut tasks| std::mem::take(&mut *tasks));
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
        match &self.database {
            Database::Postgres(pool) => pool.close().await,
            Database::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
        }
    }
}

async fn sqlite_head(tx: &mut Tx) -> StoreResult<Head> {
    let database_time = tx.now().await?;
    let row = tx
        .one(
            "SELECT generation, number, \
             (SELECT value FROM sequences WHERE name = 'stops') AS stops, \
             (SELECT value FROM sequences WHERE name = 'approvals') AS approvals, \
             (SELECT value FROM sequences WHERE name = 'sidecars') AS sidecars FROM revision",
            &args![],
        )
        .await?;
    Ok(Head {
        revision: Revision::new(row.count("generation")?, row.count("number")?),
        database_time,
        stop_sequence: row.count("stops")?,
        approval_cursor: row.count("approvals")?,
        sidecar_sequence: row.count("sidecars")?,
    })
}

/// 16 random bytes in hex.
pub(crate) fn random_id() -> StoreResult<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Invalid {
        what: "random id",
        reason: format!("the operating system gives no random bytes: {error}"),
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The one row whose id begins with `prefix`, or the exact one. `sql` ends where a condition on `id` can follow.
pub(crate) async fn by_prefix(
    tx: &mut Tx,
    what: &'static str,
    sql: &str,
    prefix: &str,
) -> StoreResult<value::Row> {
    let (condition, pattern) = tx.matches("id", 1, &format!("{}*", prefix.replace(['*', '?'], "")));
    let exact = value::Arg::from(prefix);
    let rows = tx
        .rows(
            &format!("{sql} {condition} ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END, id LIMIT 2"),
            &[pattern, exact],
        )
        .await?;
    let many = rows.len() > 1;
    let Some(row) = rows.into_iter().next().filter(|_| !prefix.is_empty()) else {
        return Err(StoreError::NotFound {
            what,
            id: prefix.to_owned(),
        });
    };
    if many && row.text("id")? != prefix {
        return Err(StoreError::Ambiguous {
            what,
            prefix: prefix.to_owned(),
        });
    }
    Ok(row)
}

/// Says what is wrong with a schema.
pub(crate) fn migration_failed(at: String, error: &sqlx::migrate::MigrateError) -> StoreError {
    use sqlx::migrate::MigrateError;
    let reason = match error {
        MigrateError::VersionMissing(version) => {
            format!(
                "it was migrated by a newer Toolgate (migration {version}); run that version or restore a backup"
            )
        }
        MigrateError::VersionMismatch(version) => {
            format!(
                "migration {version} was applied with another text; this database is not of a released Toolgate"
            )
        }
        other => other.to_string(),
    };
    StoreError::Migration { at, reason }
}

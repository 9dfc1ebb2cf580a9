//! The store in one SQLite file, for one process.

use std::{path::Path, time::Duration};

use sqlx::{
    ConnectOptions as _, Connection as _, SqliteConnection, SqlitePool,
    migrate::{Migration, MigrationType, Migrator},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{
    error::{StoreError, StoreResult},
    sql::{Database, SqlStore, Wakes, migration_failed},
};

const START: &str = include_str!("../../../../migrations/sqlite/0001_start.sql");
const CORRECTIONS: &str = include_str!("../../../../migrations/sqlite/0002_corrections.sql");
const ANSWERS: &str = include_str!("../../../../migrations/sqlite/0003_answers.sql");
const SCOPES: &str = include_str!("../../../../migrations/sqlite/0004_scopes.sql");
const OPERATOR_TOKENS: &str = include_str!("../../../../migrations/sqlite/0005_operator_tokens.sql");
/// Connections that only read.
const READERS: u32 = 4;

fn migrations() -> Migrator {
    let migration = |(number, (name, text)): (i64, (&'static str, &'static str))| {
        Migration::new(number, name.into(), MigrationType::Simple, text.into(), false)
    };
    let all: Vec<Migration> = (1..)
        .zip([
            ("start", START),
            ("corrections", CORRECTIONS),
            ("answers", ANSWERS),
            ("scopes", SCOPES),
            ("operator_tokens", OPERATOR_TOKENS),
        ])
        .map(migration)
        .collect();
    Migrator {
        migrations: all.into(),
        ..Migrator::DEFAULT
    }
}

fn unreachable(path: &Path, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Unreachable {
        at: path.display().to_string(),
        reason: format!("{reason}; check that the folder exists and is writable, or set `storage_path`"),
    }
}

/// Whether a connection may be used again. One whose transaction nobody owns (its begin was cancelled halfway, or its rollback
/// failed) would refuse every later transaction; the pool closes it, which rolls back.
async fn has_no_transaction(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // A rollback may still be queued: the answer comes after it.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

async fn pool(path: &Path, connections: u32) -> StoreResult<SqlitePool> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(10))
        .disable_statement_logging();
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(30))
        .after_release(|connection, _| Box::pin(has_no_transaction(connection)))
        .connect_with(options)
        .await
        .map_err(|error| unreachable(path, error))
}

/// Makes the file for this user only, if it is not there.
fn ensure_file(path: &Path) -> StoreResult<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map(|_| ())
        .map_err(|error| unreachable(path, error))
}

async fn migrated(path: &Path) -> StoreResult<SqlitePool> {
    ensure_file(path)?;
    let writer = pool(path, 1).await?;
    migrations()
        .run(&writer)
        .await
        .map_err(|error| migration_failed(path.display().to_string(), &error))?;
    Ok(writer)
}

/// Brings the schema of a file to this build's version.
pub async fn migrate(path: &Path) -> StoreResult<()> {
    migrated(path).await?.close().await;
    Ok(())
}

/// Opens the store in a file, which is made if it is not there.
pub(crate) async fn connect(path: &Path) -> StoreResult<SqlStore> {
    let writer = migrated(path).await?;
    let readers = pool(path, READERS).await?;
    let store = SqlStore::new(Database::Sqlite { writer, readers }, Wakes::new());
    store.adopt().await?;
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store as _;

    #[tokio::test]
    async fn a_transaction_that_nobody_ends_does_not_stop_later_writers() {
        let directory = tempfile::tempdir().unwrap();
        let store = connect(&directory.path().join("toolgate.db")).await.unwrap();
        let Database::Sqlite { writer, .. } = &store.database else {
            panic!("another database")
        };
        let mut connection = writer.acquire().await.unwrap();
        let left = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
        std::mem::forget(left);
        drop(connection);
        for _ in 0..3 {
            store.adopt().await.unwrap();
        }
        store.close().await;
    }
}

//! The store in Postgres, for a fleet: any number of replicas on one database.

mod partitions;

use std::{fmt::Write as _, str::FromStr, time::Duration};

use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection, PgPool, Postgres, Row as _, Transaction,
    migrate::{Migration, MigrationType, Migrator},
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};

use super::{
    error::{StoreError, StoreResult},
    sql::{Database, SqlStore, Wakes, migration_failed, value::Arg},
    types::{Head, Revision, Topic},
};

const START: &str = include_str!("../../../../migrations/postgres/0001_start.sql");
const CORRECTIONS: &str = include_str!("../../../../migrations/postgres/0002_corrections.sql");
const ANSWERS: &str = include_str!("../../../../migrations/postgres/0003_answers.sql");
const SCOPES: &str = include_str!("../../../../migrations/postgres/0004_scopes.sql");
const OPERATOR_TOKENS: &str = include_str!("../../../../migrations/postgres/0005_operator_tokens.sql");
/// Connections of one replica.
const CONNECTIONS: u32 = 16;
/// How long a connection attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of one message of a COPY.
const COPY_CHUNK: usize = 64 * 1024;

/// Which database this is: the cluster's identifier with the database's, and the timeline that it writes.
pub(crate) const IDENTITY: &str = "SELECT (SELECT system_identifier::text FROM pg_control_system()) || '/' || \
     (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS identifier, \
     substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline";

const HEAD: &str = "SELECT r.generation, r.number, \
     (SELECT value FROM sequences WHERE name = 'stops') AS stops, \
     (SELECT value FROM sequences WHERE name = 'approvals') AS approvals, \
     (SELECT value FROM sequences WHERE name = 'sidecars') AS sidecars, \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now, \
     g.timeline = substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AND g.system_identifier = \
     (SELECT system_identifier::text FROM pg_control_system()) || '/' || \
     (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS same_history \
     FROM revision r, generation g";

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

/// Where a database is, without secrets.
fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or_default();
    match options.get_socket() {
        Some(socket) => format!("{database} at {}", socket.display()),
        None => format!("{database} at {}:{}", options.get_host(), options.get_port()),
    }
}

fn options(url: &str) -> StoreResult<PgConnectOptions> {
    let options = PgConnectOptions::from_str(url).map_err(|error| StoreError::Unreachable {
        at: "in `database_url`".to_owned(),
        reason: format!("it is not a Postgres URL: {error}"),
    })?;
    Ok(options.application_name("toolgate").disable_statement_logging())
}

/// One connection, tried once, so that what is wrong is said at once and in the driver's words.
async fn try_connect(options: &PgConnectOptions) -> StoreResult<PgConnection> {
    let unreachable = |reason: String| StoreError::Unreachable {
        at: place(options),
        reason: format!("{reason}; check that Postgres runs there and that `database_url` is right"),
    };
    let mut connection = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options))
        .await
        .map_err(|_| unreachable(format!("no answer in {} s", CONNECT_TIMEOUT.as_secs())))?
        .map_err(|error| unreachable(error.to_string()))?;
    let standby: bool = sqlx::query_scalar("SELECT pg_is_in_recovery()")
        .fetch_one(&mut connection)
        .await
        .map_err(|error| unreachable(error.to_string()))?;
    if standby {
        return Err(unreachable(
            "it is a standby, and the control plane needs the primary".to_owned(),
        ));
    }
    Ok(connection)
}

async fn migrate_over(connection: &mut PgConnection, options: &PgConnectOptions) -> StoreResult<()> {
    migrations()
        .run_direct(connection)
        .await
        .map_err(|error| migration_failed(place(options), &error))
}

/// Brings the schema of a database to this build's version, under an advisory lock.
pub async fn migrate(url: &str) -> StoreResult<()> {
    let options = options(url)?;
    let mut connection = try_connect(&options).await?;
    migrate_over(&mut connection, &options).await?;
    Ok(connection.close().await?)
}

/// Opens the store in a database, migrated; begins a generation when the data has another history than it had.
pub(crate) async fn connect(url: &str) -> StoreResult<SqlStore> {
    let options = options(url)?;
    let mut connection = try_connect(&options).await?;
    migrate_over(&mut connection, &options).await?;
    partitions::create_ahead(&mut connection).await?;
    connection.close().await?;
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(Duration::from_secs(10))
        .connect_lazy_with(options);
    let wakes = Wakes::new();
    let store = SqlStore::new(Database::Postgres(pool.clone()), wakes.clone());
    store.adopt().await?;
    if let Ok(mut tasks) = store.tasks.lock() {
        tasks.spawn(listen(pool.clone(), wakes));
        tasks.spawn(partitions::keep_ahead(pool));
    }
    Ok(store)
}

/// Turns notifications into wake-ups. They only shorten the wait for the next poll, so failures here cost nothing but time.
async fn listen(pool: PgPool, wakes: Wakes) {
    loop {
        if let Err(error) = listen_once(&pool, &wakes).await {
            tracing::debug!(%error, "listening for notifications failed, trying again");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn listen_once(pool: &PgPool, wakes: &Wakes) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen("toolgate").await?;
    loop {
        match listener.try_recv().await? {
            Some(notification) => Topic::ALL
                .into_iter()
                .filter(|topic| topic.name() == notification.payload())
                .for_each(|topic| wakes.wake(topic)),
            // The connection was lost and made anew: whatever was said in between is not known.
            None => Topic::ALL.into_iter().for_each(|topic| wakes.wake(topic)),
        }
    }
}

/// The head, and whether the database still has the history that the data knows.
pub(crate) struct Polled {
    pub(crate) head: Head,
    pub(crate) same_history: bool,
}

/// Reads the head from the primary: on a standby, the statement fails.
pub(crate) async fn head(pool: &PgPool) -> StoreResult<Polled> {
    let row = sqlx::query(HEAD)
        .fetch_one(pool)
        .await
        .map_err(|source| StoreError::Database {
            doing: "reading the head",
            source,
        })?;
    let count = |column: &str| {
        Ok::<_, sqlx::Error>(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or_default())
    };
    Ok(Polled {
        head: Head {
            revision: Revision::new(count("generation")?, count("number")?),
            database_time: row.try_get("now")?,
            stop_sequence: count("stops")?,
            approval_cursor: count("approvals")?,
            sidecar_sequence: count("sidecars")?,
        },
        same_history: row.try_get("same_history")?,
    })
}

/// Writes rows by COPY, in text format.
pub(crate) async fn copy(
    connection: &mut Transaction<'static, Postgres>,
    statement: &str,
    rows: &[Vec<Arg>],
) -> StoreResult<()> {
    let mut copy = connection.copy_in_raw(statement).await?;
    let mut text = String::with_capacity(COPY_CHUNK * 2);
    for row in rows {
        for (index, value) in row.iter().enumerate() {
            if index > 0 {
                text.push('\t');
            }
            push_value(&mut text, value);
        }
        text.push('\n');
        if text.len() >= COPY_CHUNK {
            copy.send(text.as_bytes()).await?;
            text.clear();
        }
    }
    copy.send(text.as_bytes()).await?;
    copy.finish().await?;
    Ok(())
}

fn push_value(text: &mut String, value: &Arg) {
    // INVARIANT: writing to a String cannot fail.
    match value {
        Arg::Int(number) | Arg::MaybeInt(Some(number)) => {
            let _ = write!(text, "{number}");
        }
        Arg::Text(value) | Arg::MaybeText(Some(value)) => push_text(text, value),
        Arg::Bytes(bytes) | Arg::MaybeBytes(Some(bytes)) => {
            text.push_str("\\\\x");
            bytes
                .iter()
                .flat_map(|byte| [byte >> 4, byte & 0x0f])
                .for_each(|nibble| text.push(hex(nibble)));
        }
        Arg::MaybeReal(Some(number)) => {
            let _ = write!(text, "{number}");
        }
        Arg::Flag(flag) => text.push(if *flag { 't' } else { 'f' }),
        Arg::MaybeInt(None) | Arg::MaybeText(None) | Arg::MaybeBytes(None) | Arg::MaybeReal(None) => {
            text.push_str("\\N");
        }
    }
}

fn hex(nibble: u8) -> char {
    char::from(if nibble < 10 {
        b'0' + nibble
    } else {
        b'a' + nibble - 10
    })
}

fn push_text(text: &mut String, value: &str) {
    let mut rest = value;
    while let Some(at) = rest.find(['\\', '\n', '\r', '\t']) {
        let (plain, special) = rest.split_at(at);
        text.push_str(plain);
        text.push('\\');
        let mut characters = special.chars();
        text.push(match characters.next() {
            Some('\n') => 'n',
            Some('\r') => 'r',
            Some('\t') => 't',
            _ => '\\',
        });
        rest = characters.as_str();
    }
    text.push_str(rest);
}

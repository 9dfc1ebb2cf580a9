//! One transaction on either database.

use chain::link::MacKey;
use sqlx::{Postgres, Sqlite, Transaction};

use super::{
    Access,
    value::{Arg, Row, args},
};
use crate::store::{
    error::{StoreError, StoreResult},
    types::{Micros, Topic},
};

/// A transaction. Statements are written once, in the SQL that both databases read: `$n` arguments, `ON CONFLICT`, `RETURNING`;
/// a closing `FOR UPDATE` or `FOR SHARE` is left out on SQLite, whose writing transactions exclude each other.
pub(crate) struct Tx {
    connection: Connection,
    wakes: Vec<Topic>,
    /// Key of the chain, if it has one.
    pub(crate) mac_key: Option<MacKey>,
    access: Access,
}

pub(crate) enum Connection {
    Postgres(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
}

/// The database's clock, Unix microseconds.
pub(crate) const POSTGRES_NOW: &str =
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now";
/// The same on SQLite (by the millisecond).
pub(crate) const SQLITE_NOW: &str = "SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now";

impl Tx {
    pub(crate) fn new(connection: Connection, mac_key: Option<MacKey>, access: Access) -> Self {
        Self {
            connection,
            wakes: Vec::new(),
            mac_key,
            access,
        }
    }

    /// It can take no locks on rows.
    pub(crate) fn reads_only(&self) -> bool {
        matches!(self.access, Access::Read)
    }

    /// Runs a statement; answers how many rows it touched.
    pub(crate) async fn run(&mut self, sql: &str, args: &[Arg]) -> StoreResult<u64> {
        Ok(match &mut self.connection {
            Connection::Postgres(tx) => bound_postgres(sql, args)
                .execute(&mut **tx)
                .await?
                .rows_affected(),
            Connection::Sqlite(tx) => bound_sqlite(unlocked(sql), args)
                .execute(&mut **tx)
                .await?
                .rows_affected(),
        })
    }

    /// All rows of an answer.
    pub(crate) async fn rows(&mut self, sql: &str, args: &[Arg]) -> StoreResult<Vec<Row>> {
        Ok(match &mut self.connection {
            Connection::Postgres(tx) => bound_postgres(sql, args)
                .fetch_all(&mut **tx)
                .await?
                .into_iter()
                .map(Row::Postgres)
                .collect(),
            Connection::Sqlite(tx) => bound_sqlite(unlocked(sql), args)
                .fetch_all(&mut **tx)
                .await?
                .into_iter()
                .map(Row::Sqlite)
                .collect(),
        })
    }

    /// The first row of an answer, if any.
    pub(crate) async fn row(&mut self, sql: &str, args: &[Arg]) -> StoreResult<Option<Row>> {
        Ok(self.rows(sql, args).await?.into_iter().next())
    }

    /// The one row of an answer that always has one.
    pub(crate) async fn one(&mut self, sql: &str, args: &[Arg]) -> StoreResult<Row> {
        self.row(sql, args)
            .await?
            .ok_or_else(|| StoreError::from(sqlx::Error::RowNotFound))
    }

    /// Inserts rows of equal length by as few statements as possible. `head` is everything before `VALUES`, `tail` everything after.
    pub(crate) async fn insert_many(
        &mut self,
        head: &str,
        rows: &[Vec<Arg>],
        tail: &str,
    ) -> StoreResult<u64> {
        let width = rows.first().map_or(1, Vec::len).max(1);
        let mut touched = 0;
        // SQLite looks each parameter up among those before it, so few statements with many are slower than many with few.
        let most = match &self.connection {
            Connection::Postgres(_) => 30_000,
            Connection::Sqlite(_) => 500,
        };
        for chunk in rows.chunks((most / width).max(1)) {
            let mut sql = format!("{head} VALUES ");
            let mut number = 0_usize;
            for (index, row) in chunk.iter().enumerate() {
                sql.push_str(if index == 0 { "(" } else { ", (" });
                for column in 0..row.len() {
                    number += 1;
                    sql.push_str(if column == 0 { "$" } else { ", $" });
                    sql.push_str(&number.to_string());
                }
                sql.push(')');
            }
            sql.push(' ');
            sql.push_str(tail);
            let args: Vec<Arg> = chunk.iter().flatten().cloned().collect();
            touched += match &mut self.connection {
                Connection::Postgres(tx) => bound_postgres(&sql, &args)
                    .persistent(false)
                    .execute(&mut **tx)
                    .await?
                    .rows_affected(),
                Connection::Sqlite(tx) => bound_sqlite(&sql, &args)
                    .persistent(false)
                    .execute(&mut **tx)
                    .await?
                    .rows_affected(),
            };
        }
        Ok(touched)
    }

    /// The database's clock, now (not at the transaction's begin).
    pub(crate) async fn now(&mut self) -> StoreResult<Micros> {
        let sql = match &self.connection {
            Connection::Postgres(_) => POSTGRES_NOW,
            Connection::Sqlite(_) => SQLITE_NOW,
        };
        self.one(sql, &[]).await?.int("now")
    }

    /// The next `count` positions of a feed: locks its row until the commit; answers the first of them.
    pub(crate) async fn take(&mut self, sequence: &str, count: u64) -> StoreResult<u64> {
        let row = self
            .one(
                "UPDATE sequences SET value = value + $2 WHERE name = $1 RETURNING value",
                &args![sequence, count],
            )
            .await?;
        Ok((row.count("value")? + 1).saturating_sub(count))
    }

    /// A condition that a column matches a glob of the language (`*`, `?`), with the argument for `$number`.
    pub(crate) fn matches(&self, column: &str, number: usize, glob: &str) -> (String, Arg) {
        match &self.connection {
            Connection::Postgres(_) => {
                let mut pattern = String::with_capacity(glob.len());
                for character in glob.chars() {
                    match character {
                        '*' => pattern.push('%'),
                        '?' => pattern.push('_'),
                        '%' | '_' | '\\' => pattern.extend(['\\', character]),
                        other => pattern.push(other),
                    }
                }
                (format!("{column} LIKE ${number}"), pattern.into())
            }
            Connection::Sqlite(_) => (
                format!("{column} GLOB ${number}"),
                glob.replace('[', "[[]").into(),
            ),
        }
    }

    /// The connection, where a database has a way of its own.
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Wakes those who wait for a topic, when this transaction commits.
    pub(crate) fn wake(&mut self, topic: Topic) {
        if !self.wakes.contains(&topic) {
            self.wakes.push(topic);
        }
    }

    /// Commits; answers what to wake.
    pub(crate) async fn commit(mut self) -> StoreResult<Vec<Topic>> {
        if let Connection::Postgres(tx) = &mut self.connection {
            // Notifying takes a lock over the whole cluster until the commit: what changes with every call does without.
            for topic in self.wakes.iter().filter(|topic| **topic != Topic::Records) {
                sqlx::query("SELECT pg_notify('toolgate', $1)")
                    .bind(topic.name())
                    .execute(&mut **tx)
                    .await?;
            }
        }
        match self.connection {
            Connection::Postgres(tx) => tx.commit().await?,
            Connection::Sqlite(tx) => tx.commit().await?,
        }
        Ok(self.wakes)
    }
}

type PostgresQuery<'q> = sqlx::query::Query<'q, Postgres, sqlx::postgres::PgArguments>;
type SqliteQuery<'q> = sqlx::query::Query<'q, Sqlite, sqlx::sqlite::SqliteArguments<'q>>;

macro_rules! bind_all {
    ($query:expr, $args:expr) => {{
        let mut query = $query;
        for arg in $args {
            query = match arg {
                Arg::Int(value) => query.bind(*value),
                Arg::MaybeInt(value) => query.bind(*value),
                Arg::Text(value) => query.bind(value.as_str()),
                Arg::MaybeText(value) => query.bind(value.as_deref()),
                Arg::Bytes(value) => query.bind(value.as_slice()),
                Arg::MaybeBytes(value) => query.bind(value.as_deref()),
                Arg::MaybeReal(value) => query.bind(*value),
                Arg::Flag(value) => query.bind(*value),
            };
        }
        query
    }};
}

fn bound_postgres<'q>(sql: &'q str, args: &'q [Arg]) -> PostgresQuery<'q> {
    bind_all!(sqlx::query(sql), args)
}

fn bound_sqlite<'q>(sql: &'q str, args: &'q [Arg]) -> SqliteQuery<'q> {
    bind_all!(sqlx::query(sql), args)
}

fn unlocked(sql: &str) -> &str {
    sql.split_once(" FOR UPDATE")
        .or_else(|| sql.split_once(" FOR SHARE"))
        .map_or(sql, |(before, _)| before)
}

//! Daily partitions of `records`, made ahead of time. Without them, records go to the default partition and nothing is lost.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection, PgPool};

const DAY: i64 = 24 * 3600 * 1_000_000;
/// Days ahead, today included.
const AHEAD: i64 = 3;

/// Makes the partitions of today and the next days.
pub(super) async fn create_ahead(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let now: i64 = sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        .fetch_one(&mut *connection)
        .await?;
    let today = now.div_euclid(DAY);
    for day in today..today + AHEAD {
        let name = format!("records_day_{day}");
        let exists: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
            .bind(&name)
            .fetch_one(&mut *connection)
            .await?;
        if !exists && let Err(error) = create(connection, &name, day).await {
            tracing::warn!(%error, partition = name, "a partition of records was not made; they go to the default one");
        }
    }
    Ok(())
}

async fn create(connection: &mut PgConnection, name: &str, day: i64) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock(hashtext('toolgate partitions'))")
        .execute(&mut *transaction)
        .await?;
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS {name} PARTITION OF records FOR VALUES FROM ({}) TO ({})",
        day * DAY,
        (day + 1) * DAY
    );
    sqlx::query(&sql).execute(&mut *transaction).await?;
    transaction.commit().await
}

/// Looks each hour.
pub(super) async fn keep_ahead(pool: PgPool) {
    loop {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let made = async { create_ahead(&mut *pool.acquire().await?).await }.await;
        if let Err(error) = made {
            tracing::warn!(%error, "partitions of records could not be made ahead");
        }
    }
}

//! Servers for tests, their own: made in temporary folders, on loopback or a unix socket, gone when dropped.

mod postgres;
mod redis;

pub use postgres::{Cluster, ClusterError};
pub use redis::{RedisCluster, RedisError, RedisOptions, RedisServer, Sentinel};

//! Limits: what the desired state says of them, and where the minutes of a fleet are counted.
//!
//! Totals are the store's. Windows may be lost, so [`Windows`] keeps them in Redis where there is one, else in the store that the
//! replicas share, else, for the one process of an embedded store, in memory. When Redis goes away or comes back, what is known of the
//! last minute is carried over, so that no window begins anew.

mod limit;
mod memory;
mod redis;
mod window;
mod windows;

#[cfg(test)]
mod tests;

pub use self::redis::Server as RedisServer;
pub use limit::{limit, lot};
pub use windows::{CountedIn, WindowError, Windows};

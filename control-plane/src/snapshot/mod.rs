//! Desired state in memory, cut to the scopes of sidecars and encoded once for all receivers of a scope.

mod channel;
mod entry;
mod follow;
mod hub;
mod primary;
mod scope;

pub use channel::{Change, Channel, Image, Next, Step, encode};
pub use entry::{Entry, Key};
pub(crate) use follow::follow;
pub use hub::{Hub, HubError};
pub use primary::{Primary, Reading};
pub use scope::{Filter, Reach, Scope};

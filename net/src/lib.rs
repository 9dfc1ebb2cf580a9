//! What both planes need on the wire: the clock, listeners and the accept loop, TLS, problem details,
//! backoff, and the small helpers around them. Nothing here knows what a tool or a policy is.

pub mod backoff;
pub mod body;
pub mod clock;
pub mod crash;
pub mod duration;
pub mod files;
pub mod host;
pub mod listen;
pub mod outbound;
pub mod problem;
pub mod reload;
pub mod serve;
pub mod shutdown;
pub mod tls;
pub mod token;

//! What the room promises.

mod load;
mod mistakes;
mod redis;
mod reference;

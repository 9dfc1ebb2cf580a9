//! What the room promises.

mod load;
mod mistakes;
mod openapi;
mod redis;
mod reference;

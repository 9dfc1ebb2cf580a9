//! What the room promises.

mod cli;
mod load;
mod mistakes;
mod openapi;
mod operators;
mod proxy;
mod redis;
mod reference;

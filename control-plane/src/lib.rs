//! control-plane

pub mod store;

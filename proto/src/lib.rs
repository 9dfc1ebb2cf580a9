//! p
pub mod v1 { #![allow(missing_docs)]
 tonic::include_proto!("toolgate.v1"); }

//! The wire contract between the planes: gRPC services and messages of the package `toolgate.v1`.
//!
//! The contract's text, with the meaning of every field, is in `toolgate/v1/*.proto`; the types in [`v1`] are generated from it.
//! [`body`] holds the JSON bodies of snapshot resources, [`view`] the digest and the signed text of a whole view.

pub mod body;
pub mod view;

/// Version 1 of the contract.
pub mod v1 {
    #![allow(
        missing_docs,
        clippy::all,
        clippy::allow_attributes_without_reason,
        unreachable_pub,
        reason = "generated; documented in the .proto files"
    )]
    tonic::include_proto!("toolgate.v1");
}

/// The lowest version of the contract that this build speaks.
pub const MIN_CONTRACT: u32 = 1;
/// The highest version of the contract that this build speaks.
pub const MAX_CONTRACT: u32 = 1;

//! What the fuzz targets compare the product with.

pub mod classify;
pub mod export;
pub mod extract;
pub mod field_path;
pub mod grammar;
pub mod json;
pub mod openapi;
pub mod token;

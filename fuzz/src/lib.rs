//! What the fuzz targets compare the product with.

pub mod export;
pub mod extract;
pub mod field_path;
pub mod grammar;
pub mod json;

//! What the fuzz targets compare the product with.

pub mod export;
pub mod grammar;
pub mod json;

//! YAML with positions: every key and value knows its line and column, and every reader collects all
//! problems before it gives up.
//!
//! ```
//! let documents = policy::yaml::load("a.yaml", "name: x\n").unwrap();
//! assert_eq!(documents[0].get("name").and_then(|value| value.as_str()), Some("x"));
//! ```

mod build;
mod extent;
mod problem;
mod reader;
mod scalar;
mod value;

pub use build::{MAX_BYTES, MAX_DEPTH, MAX_NODES, load};
pub use problem::{Problem, Problems};
pub use reader::MapReader;
pub use value::{Entry, Kind, Layout, Map, Mark, Node, Style, Value};

#[cfg(test)]
mod tests;

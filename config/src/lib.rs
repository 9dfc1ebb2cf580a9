//! The one configuration schema. The tables in [`model`] are the schema: the typed [`Config`], the parser,
//! the environment overrides, the JSON Schema and the reference page all come from them.
//!
//! ```
//! let environment = config::Environment::default();
//! let config = config::Config::parse("config.yaml", "port: 8080\n", &environment).unwrap();
//! assert_eq!(config.agent_address().to_string(), "127.0.0.1:8080");
//! let problems = config::Config::parse("config.yaml", "prot: 8080\n", &environment).unwrap_err();
//! assert_eq!(problems[0].to_string(), "config.yaml:1:1 unknown key \"prot\" in the configuration; did you mean \"port\"?");
//! ```

mod changes;
mod environment;
mod load;
pub mod model;
mod output;
mod proxy;
mod redis;
mod schema;
mod secret;
#[cfg(test)]
mod tests;
mod units;

pub use changes::{Change, Program};
pub use environment::Environment;
pub use model::Config;
pub use output::{json_schema, reference_markdown};
pub use policy::yaml::Problem;
pub use proxy::{NoProxy, NoProxyError, ProxyUrl, ProxyUrlError};
pub use redis::{Login, RedisMode, RedisUrl, RedisUrlError};
pub use secret::Secret;

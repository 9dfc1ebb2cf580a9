//! Command-line programs as upstreams.
//!
//! A call comes with the argument vector that the gate decided about ([`tools::program`]), and that is what is run: by its
//! absolute path, without a shell, in a process group and an environment of its own. Whatever a program does, a call takes
//! bounded time and memory, and its process group is gone when it ends.

mod answer;
mod capture;
mod run;
mod spec;
#[cfg(test)]
mod tests;
mod upstream;

pub use spec::CliSpec;
pub use upstream::CliUpstream;

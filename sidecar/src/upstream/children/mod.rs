//! The programs that this process runs, and everything that comes of them.
//!
//! Each is the leader of a process group, which is killed with it. A program can leave its group and its parent, so a process
//! that owns its children ([`Children::of_process`]) does more: it is the parent of every orphan among its descendants
//! (`PR_SET_CHILD_SUBREAPER`), tells by a mark in the environment ([`mark`]) from which run one comes, kills what its run left
//! behind, and reaps it. When this process is killed itself, its [`keeper`] ends what is marked; when that is killed too, the
//! next start with the same directory does.
//!
//! INVARIANT: a process whose parent this one is keeps its id until this one has reaped it, so no other can be killed in its place.

mod family;
mod keeper;
mod mark;
mod proc;
mod run;
mod stale;
#[cfg(test)]
mod tests;

pub use family::{Children, ChildrenError};
pub use keeper::keep_if_asked;
pub(super) use run::{Run, TERM_END};

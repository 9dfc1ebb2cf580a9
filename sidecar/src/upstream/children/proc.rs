//! What the kernel tells about processes.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};

/// Of an environment no more is read.
const ENVIRONMENT_BYTES: u64 = 1 << 20;

/// A process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) parent: i32,
    pub(super) group: i32,
    /// When it began, in ticks since the machine started. With the id it names a process for good.
    pub(super) start: u64,
}

/// A process, unless it is gone.
pub(super) fn status(id: i32) -> Option<Status> {
    parsed(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

fn parsed(stat: &str) -> Option<Status> {
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let start = fields.nth(16)?.parse().ok()?;
    Some(Status { parent, group, start })
}

/// A variable of the environment that a process was started with; `None` also where that may not be read.
pub(super) fn variable(id: i32, name: &str) -> Option<String> {
    let mut environment = Vec::new();
    let file = File::open(format!("/proc/{id}/environ")).ok()?;
    file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment).ok()?;
    environment.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

/// The ids of all processes that can be seen.
pub(super) fn all() -> Vec<i32> {
    numbers("/proc")
}

/// The ids of the processes whose parent is this one.
pub(super) fn own_children() -> Vec<i32> {
    let own = std::process::id();
    // A child belongs to one thread of its parent. Where the kernel does not list them, everything is looked at.
    match fs::read_to_string(format!("/proc/self/task/{own}/children")) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let is_own = |id: &i32| status(*id).is_some_and(|status| u32::try_from(status.parent) == Ok(own));
            all().into_iter().filter(is_own).collect()
        }
        Ok(_) | Err(_) => numbers("/proc/self/task")
            .into_iter()
            .filter_map(|thread| fs::read_to_string(format!("/proc/self/task/{thread}/children")).ok())
            .flat_map(|ids| {
                ids.split_ascii_whitespace()
                    .filter_map(|id| id.parse().ok())
                    .collect::<Vec<_>>()
            })
            .collect(),
    }
}

fn numbers(folder: &str) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_it_is_called() {
        let stat = "71 (a) R 1 (b) S 12 34 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10";
        let expected = Status {
            parent: 12,
            group: 34,
            start: 98765,
        };
        assert_eq!(parsed(stat), Some(expected));
        for bad in ["", "71", "71 (a)", "71 (a) S x 1", "71 (a) S 1 2 3"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
        let own = status(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert_eq!(own.parent, nix::unistd::getppid().as_raw());
    }
}

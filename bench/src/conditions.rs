//! What a figure was measured on.

use std::fmt;
use std::fs;
use std::process::Command;

/// The machine, the build and the moment.
#[derive(Debug, Clone)]
pub struct Conditions {
    cpu: String,
    cores: usize,
    memory: String,
    kernel: String,
    commit: String,
    load: String,
    profile: &'static str,
}

impl Conditions {
    /// Of this machine, now.
    #[must_use]
    pub fn read() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            cpu: field(&info, "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory: field(&memory, "MemTotal"),
            kernel: file("/proc/sys/kernel/osrelease"),
            commit: commit(),
            load: file("/proc/loadavg"),
            profile: if cfg!(debug_assertions) {
                "quick (not a release build)"
            } else {
                "release"
            },
        }
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} cores, {} memory, Linux {}, commit {}, profile {}, load before the run {}",
            self.cpu, self.cores, self.memory, self.kernel, self.commit, self.profile, self.load
        )
    }
}

fn field(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or("unknown", |(_, value)| value.trim()).to_owned()
}

fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn commit() -> String {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .output();
    let text = output.ok().filter(|output| output.status.success());
    text.map_or_else(
        || "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

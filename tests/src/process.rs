//! A child process whose end is certain.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running program; killed and reaped when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; what it prints goes to a log file that a failing test can show.
    #[must_use]
    pub fn spawn(mut command: Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::from(file.try_clone().unwrap()))
            .stderr(Stdio::from(file))
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self {
            child,
            log: log.to_owned(),
        }
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it printed so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, signal).unwrap();
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it at once, as a crash would, and reaps it.
    pub fn kill(&mut self) {
        if self.is_running() {
            self.child.kill().unwrap();
        }
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits for that.
    pub fn terminate(&mut self) -> ExitStatus {
        if self.is_running() {
            self.signal(Signal::SIGTERM);
        }
        self.wait()
    }

    /// Waits until it has ended itself by SIGKILL, at the point that it was told.
    pub fn crashed(&mut self) {
        use std::os::unix::process::ExitStatusExt;
        let status = self.wait();
        assert_eq!(
            status.signal(),
            Some(Signal::SIGKILL as i32),
            "{status}:\n{}",
            self.log()
        );
    }

    /// Waits for its end.
    #[allow(
        clippy::disallowed_methods,
        reason = "a test's thread may wait; nothing else runs on it"
    )]
    pub fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                begun.elapsed() < crate::wait::PATIENCE,
                "process {} does not end:\n{}",
                self.id(),
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            eprintln!("--- end of {} ---", self.log.display());
            for line in tail.iter().rev() {
                eprintln!("{line}");
            }
        }
    }
}

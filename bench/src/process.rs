//! Programs under measurement: started, watched through /proc, ended.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::connection::Connection;
use crate::error::{During as _, Result, unexpected};

/// Clock ticks per second in /proc: fixed on Linux.
const TICKS: f64 = 100.0;
const PATIENCE: Duration = Duration::from_secs(60);

/// A running program; ended when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts a program; what it prints goes to `<name>.log` in `folder`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Result<Self> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.join(format!("{name}.log")))
            .during("make a log file")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().during("make a log file")?)
            .stderr(log)
            .spawn()
            .during(&format!("start {name} ({})", command.get_program().display()))?;
        Ok(Self {
            name: name.to_owned(),
            child,
        })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            // It may have ended already.
            let _ = kill(Pid::from_raw(id), signal);
        }
    }

    /// Waits until `GET path` answers 200; how long that took. Looks each half millisecond.
    ///
    /// # Errors
    /// When the program ends, or a minute passes.
    pub async fn ready(&mut self, address: SocketAddr, path: &str) -> Result<Duration> {
        let begun = Instant::now();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        loop {
            if let Ok(mut connection) = Connection::open(address).await
                && let Ok(answer) = connection.exchange(request.as_bytes()).await
                && answer.status == 200
            {
                return Ok(begun.elapsed());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(unexpected(format!("{} ended: {status}; see its log", self.name)));
            }
            if begun.elapsed() > PATIENCE {
                return Err(unexpected(format!(
                    "{} is not ready after {PATIENCE:?}",
                    self.name
                )));
            }
            crate::pace::pause(Duration::from_micros(500)).await?;
        }
    }

    /// CPU time of the process and its children so far.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.family().into_iter().map(cpu).sum()
    }

    /// Resident memory of the process and its children, in bytes.
    #[must_use]
    pub fn resident(&self) -> u64 {
        self.family().into_iter().map(resident).sum()
    }

    fn family(&self) -> Vec<u32> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        std::iter::once(id).chain(children).collect()
    }

    /// Asks the program to end, and waits for that.
    pub async fn end(mut self) {
        self.signal(Signal::SIGCONT);
        self.signal(Signal::SIGTERM);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(15) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::SIGCONT);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn cpu(id: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold spaces; user and system time are the 12th and 13th field behind it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: f64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    Duration::from_secs_f64(ticks / TICKS)
}

fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

/// A loopback address on which nobody listens now.
///
/// # Errors
/// When the system gives none.
pub fn free_address() -> Result<SocketAddr> {
    std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .and_then(|listener| listener.local_addr())
        .during("find a free port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_of_this_process_are_read() {
        let id = std::process::id();
        assert!(resident(id) > 1 << 20);
        let begun = cpu(id);
        let mut sum = 0_u64;
        while cpu(id) == begun {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(cpu(id) > begun);
    }
}

//! The child process: started in a group of its own, listened to, and ended with everything that it started.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nix::sys::signal::Signal;
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::lines::{Line, Lines};
use crate::control::redact;
use crate::upstream::StdioSpec;
use crate::upstream::children::{Children, Run, TERM_END};
use crate::upstream::mcp::duplex::DuplexLink;
use crate::upstream::mcp::failure::Failure;

/// How long a child may take to end after its standard input was closed.
const QUIET_END: Duration = Duration::from_millis(200);
/// How long what a child wrote before it ended is read.
const LAST_WORDS: Duration = Duration::from_millis(500);
const STDERR_LINE: usize = 4096;
/// Variables of the sidecar's own, which hold its credentials, are not for upstreams.
const OWN_PREFIX: &str = "TOOLGATE_";
/// Its credentials under the names that existing installations use.
const OWN_NAMES: [&str; 2] = ["MESH_ADMIN_TOKEN", "MESH_TRACE_KEY"];

/// A child and its streams.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    run: Run,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

/// Starts the program.
pub(super) fn start(spec: &StdioSpec, children: &Arc<Children>) -> Result<Running, Failure> {
    let mut command = Command::new(&spec.command);
    for (key, _) in std::env::vars_os() {
        if is_own(&key.to_string_lossy()) {
            command.env_remove(key);
        }
    }
    command
        .args(&spec.args)
        .envs(spec.env.iter().map(|(key, value)| (key, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut child, run) = children
        .spawn(&mut command)
        .map_err(|error| Failure::Unreachable(format!("cannot start {:?}: {error}", spec.command)))?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Running {
            child,
            run,
            stdin,
            stdout,
            stderr,
        }),
        _ => Err(Failure::Unreachable(format!(
            "{:?} has no standard streams",
            spec.command
        ))),
    }
}

fn is_own(variable: &str) -> bool {
    variable.starts_with(OWN_PREFIX) || OWN_NAMES.contains(&variable)
}

/// Carries messages between the child and its link until either ends, then ends the child.
pub(super) async fn attend(running: Running, link: Arc<DuplexLink>, queue: mpsc::Receiver<Bytes>) {
    let Running {
        mut child,
        run,
        stdin,
        stdout,
        stderr,
    } = running;
    let reason = {
        let reading = read(stdout, &link);
        tokio::pin!(reading);
        let writing = write(stdin, queue);
        tokio::pin!(writing);
        let logging = log(stderr, &link);
        tokio::pin!(logging);
        let mut is_writable = true;
        loop {
            tokio::select! {
                () = link.closing() => break "it was closed".to_owned(),
                reason = &mut reading => break reason,
                () = &mut writing, if is_writable => is_writable = false,
                () = &mut logging => {}
                status = child.wait() => {
                    let _ = timeout(LAST_WORDS, &mut reading).await;
                    break match status {
                        Ok(status) => format!("its process ended ({status})"),
                        Err(error) => format!("its process cannot be waited for: {error}"),
                    };
                }
            }
        }
        // The writer is dropped here, which closes the child's standard input.
    };
    link.close_with(&reason);
    finish(&mut child, &run).await;
    run.end().await;
}

/// Ends the child; afterwards it has been reaped.
async fn finish(child: &mut Child, run: &Run) {
    if timeout(QUIET_END, child.wait()).await.is_err() {
        run.signal(Signal::SIGTERM);
        if timeout(TERM_END, child.wait()).await.is_err() {
            run.signal(Signal::SIGKILL);
            let _ = child.wait().await;
        }
    }
}

async fn read(stdout: ChildStdout, link: &Arc<DuplexLink>) -> String {
    let mut lines = Lines::new(stdout, link.limits().message_bytes);
    loop {
        match lines.next().await {
            Ok(Some(Line::Text(text))) => link.receive(text),
            Ok(Some(Line::Overlong { head, tail })) => link.receive_overlong(&head, &tail),
            Ok(None) => return "its process closed its standard output".to_owned(),
            Err(error) => return format!("its standard output cannot be read: {error}"),
        }
    }
}

/// Writes what is queued; ends when the child no longer reads. Whoever waits for an answer then learns of the end by the other stream.
async fn write(stdin: ChildStdin, mut queue: mpsc::Receiver<Bytes>) {
    let mut stdin = BufWriter::new(stdin);
    while let Some(line) = queue.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
        while let Ok(line) = queue.try_recv() {
            if stdin.write_all(&line).await.is_err() {
                return;
            }
        }
        if stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn log(stderr: ChildStderr, link: &DuplexLink) {
    let mut lines = Lines::new(stderr, STDERR_LINE);
    while let Ok(Some(line)) = lines.next().await {
        let text = match line {
            Line::Text(text) => text,
            Line::Overlong { head, .. } => head,
        };
        tracing::info!(upstream = %link.name(), "stderr: {}", loggable(&text));
    }
    std::future::pending().await
}

/// What an upstream says, with what looks like a secret masked.
fn loggable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    redact::masked(text.trim_end()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{is_own, loggable};

    #[test]
    fn variables_that_hold_our_credentials_are_not_for_upstreams() {
        for name in [
            "TOOLGATE_ADMIN_TOKEN",
            "TOOLGATE_MASTER_KEY",
            "MESH_ADMIN_TOKEN",
            "MESH_TRACE_KEY",
        ] {
            assert!(is_own(name), "{name}");
        }
        for name in ["PATH", "HOME", "GITHUB_TOKEN", "MESH_REGION"] {
            assert!(!is_own(name), "{name}");
        }
    }

    #[test]
    fn a_secret_that_an_upstream_prints_does_not_reach_the_log() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let logged = loggable(format!("starting with {token}\n").as_bytes());
        assert!(!logged.contains(&token), "{logged}");
        assert!(logged.starts_with("starting with"), "{logged}");
    }
}

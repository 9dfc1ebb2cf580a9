//! Running a program once: started as the leader of a process group, fed, listened to, and ended with everything in the group.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::Finished;
use super::capture::Captured;
use crate::upstream::children::{Children, Run, TERM_END};

/// How long what a program wrote before it ended is read, where something that cannot be killed holds its output open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What an answer holds beside the two outputs, at most.
const FRAME_BYTES: usize = 1024;

/// What is run, and how.
#[derive(Debug)]
pub(super) struct Order {
    /// The absolute path.
    pub(super) path: PathBuf,
    pub(super) argv: Vec<String>,
    pub(super) stdin: Option<String>,
    /// The whole environment.
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) working_dir: Option<PathBuf>,
    pub(super) max_output_bytes: usize,
    /// The largest answer.
    pub(super) answer_bytes: usize,
    pub(super) timeout: Duration,
}

/// Why a run came to no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(std::io::Error),
    /// It could not be waited for.
    #[error("it cannot be waited for: {0}")]
    Wait(std::io::Error),
    /// It took too long and was ended.
    #[error("it did not end in time and was ended")]
    TimedOut,
    /// It was ended from outside.
    #[error("it was ended")]
    Ended,
}

/// How the time of a program came to its end.
enum How {
    Exited(std::io::Result<ExitStatus>),
    Over(RunError),
}

/// Runs a program until it ends, its time is over, or `end`. When this returns nothing is left of it and what it started.
pub(super) async fn run(
    order: Order,
    children: Arc<Children>,
    end: CancellationToken,
) -> Result<Finished, RunError> {
    let began = Instant::now();
    let (mut child, run) = children.spawn(&mut command(&order)).map_err(RunError::Start)?;
    let stdin = child.stdin.take();
    let streams = child.stdout.take().zip(child.stderr.take());
    let room = order.answer_bytes.saturating_sub(FRAME_BYTES) / 2;
    let kept = order.max_output_bytes.min(room);
    let (mut stdout, mut stderr) = (Captured::new(kept), Captured::new(kept));
    let moving = async {
        let feeding = feed(stdin, order.stdin.as_deref());
        match streams {
            Some((out, err)) => {
                tokio::join!(feeding, stdout.fill(out), stderr.fill(err));
            }
            None => feeding.await,
        }
    };
    let how = attend(&mut child, run, moving, began + order.timeout, &end).await;
    match how {
        How::Over(error) => Err(error),
        How::Exited(Err(error)) => Err(RunError::Wait(error)),
        How::Exited(Ok(status)) => Ok(Finished {
            stdout: stdout.text("stdout", room),
            stderr: stderr.text("stderr", room),
            exit_code: exit_code(status),
            took: began.elapsed(),
        }),
    }
}

/// Moves data until the program has ended, and ends it where its time is over. Afterwards the child has been reaped.
async fn attend(
    child: &mut Child,
    run: Run,
    moving: impl Future<Output = ()>,
    deadline: Instant,
    end: &CancellationToken,
) -> How {
    tokio::pin!(moving);
    let mut is_moving = true;
    let mut how = loop {
        tokio::select! {
            biased;
            () = end.cancelled() => break How::Over(RunError::Ended),
            status = child.wait() => break How::Exited(status),
            () = sleep_until(deadline) => break How::Over(RunError::TimedOut),
            // A program may close its streams and live on.
            () = &mut moving, if is_moving => is_moving = false,
        }
    };
    if let How::Over(_) = how {
        // Its output is read on, or it could not write what it has to say before it ends.
        let ending = finish(child, &run);
        tokio::pin!(ending);
        let ended = loop {
            tokio::select! {
                ended = &mut ending => break ended,
                () = &mut moving, if is_moving => is_moving = false,
            }
        };
        if let Err(error) = ended {
            how = How::Exited(Err(error));
        }
    }
    run.end().await;
    if is_moving && matches!(how, How::Exited(_)) {
        let _ = timeout(LAST_WORDS, &mut moving).await;
    }
    how
}

fn command(order: &Order) -> Command {
    let mut command = Command::new(&order.path);
    command
        .args(&order.argv)
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .stdin(if order.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = &order.working_dir {
        command.current_dir(folder);
    }
    command
}

/// SIGTERM to the group, then SIGKILL; afterwards the child has been reaped.
async fn finish(child: &mut Child, run: &Run) -> std::io::Result<()> {
    run.signal(Signal::SIGTERM);
    if timeout(TERM_END, child.wait()).await.is_err() {
        run.signal(Signal::SIGKILL);
        child.wait().await?;
    }
    Ok(())
}

async fn feed(stdin: Option<ChildStdin>, data: Option<&str>) {
    if let (Some(mut stdin), Some(data)) = (stdin, data) {
        // A program need not read what it is given.
        let _ = stdin.write_all(data.as_bytes()).await;
    }
}

fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(-1)
}

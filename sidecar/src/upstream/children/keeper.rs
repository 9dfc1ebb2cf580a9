//! The keeper: a small process beside this one that ends its programs when it is killed.
//!
//! It is the same executable, and waits at a pipe that nobody else holds. Its end is the end of this process, however it came.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::SigSet;

use super::stale;

/// The argument by which an executable is asked to be a keeper.
const ARGUMENT: &str = "keep-programs";
/// This executable, also after another one was installed in its place.
const EXECUTABLE: &str = "/proc/self/exe";
/// The longest mark, and the longest last word.
const MARK_BYTES: u64 = 1024;
/// What is said to a keeper that is no longer needed.
const DISMISSAL: &[u8] = b"done\n";
/// How long a program may take to start.
const STARTING: Duration = Duration::from_millis(200);

/// A running keeper.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Keeper {
    /// Starts one for the programs whose marks begin with this.
    pub(super) fn start(prefix: &str) -> io::Result<Self> {
        let mut child = Command::new(EXECUTABLE)
            .arg0("toolgate-keeper")
            .arg(ARGUMENT)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let mut pipe = child.stdin.take();
        if let Some(pipe) = &mut pipe {
            pipe.write_all(format!("{prefix}\n").as_bytes())?;
        }
        Ok(Self { child, pipe })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lets it look once more, and end.
    pub(super) fn dismiss(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // One that has ended needs no word.
            let _ = pipe.write_all(DISMISSAL);
        }
    }

    /// Whether it runs; it is reaped where it does not.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// Whether this process was asked to be a keeper; then it has been one, and is to end. The executable of a process that owns its
/// children MUST begin with this, before it starts a thread.
#[must_use]
pub fn keep_if_asked() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let is_asked = arguments.next().is_some_and(|first| first == ARGUMENT) && arguments.next().is_none();
    if is_asked {
        keep();
    }
    is_asked
}

fn keep() {
    // What ends the sidecar in good order must not end its keeper before it.
    let _ = SigSet::all().thread_block();
    let _ = nix::unistd::setsid();
    let _ = std::env::set_current_dir("/");
    let _ = prctl::set_name(c"toolgate-keeper");
    let mut input = BufReader::new(io::stdin().lock());
    let mut prefix = String::new();
    let read = (&mut input).take(MARK_BYTES).read_line(&mut prefix);
    if read.is_err() || !prefix.ends_with('\n') {
        return;
    }
    let mut last = Vec::new();
    let _ = input.take(MARK_BYTES).read_to_end(&mut last);
    let mut killed = stale::end(prefix.trim_end());
    if last != DISMISSAL {
        // What was being started just then bears its mark a moment later.
        stale::pause(STARTING);
        killed += stale::end(prefix.trim_end());
    }
    if killed > 0 {
        // Nobody may be reading.
        let _ = writeln!(
            io::stderr(),
            "the sidecar was killed; {killed} processes of its programs were ended"
        );
    }
}

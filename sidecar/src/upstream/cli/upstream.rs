//! A program that is configured as an upstream.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use policy::decide::{Floor, FloorKind};
use serde_json::value::to_raw_value;
use tokio::sync::{Semaphore, broadcast, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::id::UpstreamName;
use tools::model::{Tool, ToolKind};
use tools::program::{Bin, Declaration, Program};

use super::run::{self, Order, RunError};
use super::spec::CliSpec;
use crate::upstream::children::Children;
use crate::upstream::{
    Connection, DeclaredCatalogue, DeclaredTool, Notice, UpstreamAnswer, UpstreamError, UpstreamRequest,
    UpstreamState,
};

/// The longest run where no rule says another bound.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Where systems install programs.
const SYSTEM_FOLDERS: [&str; 6] = [
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/sbin",
    "/usr/sbin",
    "/usr/local/sbin",
];
/// The language of what programs write.
const LANG: &str = "en_US.UTF-8";

/// A program that is configured as an upstream.
#[derive(Debug)]
pub struct CliUpstream {
    spec: CliSpec,
    /// The program's absolute path, or why there is none.
    path: Result<PathBuf, String>,
    env: Vec<(OsString, OsString)>,
    catalogue: watch::Sender<Arc<DeclaredCatalogue>>,
    pub(in crate::upstream) notices: broadcast::Sender<Notice>,
    room: Arc<Semaphore>,
    children: Arc<Children>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl CliUpstream {
    /// Looks for the program, and declares its tools when it is there. Programs end with `stop`.
    pub(in crate::upstream) fn start(
        spec: CliSpec,
        children: &Arc<Children>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let path = found(&spec);
        let mut catalogue = DeclaredCatalogue {
            kind: ToolKind::Cli,
            ..DeclaredCatalogue::unread(Arc::clone(&spec.name))
        };
        match &path {
            Ok(path) => {
                tracing::info!(upstream = %spec.name, path = %path.display(), "the program is there");
                catalogue.is_read = true;
                let name = file_name(path);
                let declarations = spec.program.declarations(bin(&spec, &name));
                catalogue.tools = declarations.iter().filter_map(declared).collect();
            }
            Err(error) => tracing::error!(upstream = %spec.name, "the program cannot be run: {error}"),
        }
        Arc::new(Self {
            env: environment(&spec),
            catalogue: watch::Sender::new(Arc::new(catalogue)),
            notices: broadcast::Sender::new(1),
            room: Arc::new(Semaphore::new(spec.max_calls)),
            children: Arc::clone(children),
            tasks: tasks.clone(),
            stop: stop.clone(),
            path,
            spec,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.spec.name
    }

    pub(in crate::upstream) fn catalogue(&self) -> watch::Receiver<Arc<DeclaredCatalogue>> {
        self.catalogue.subscribe()
    }

    pub(in crate::upstream) fn state(&self) -> UpstreamState {
        UpstreamState {
            name: Arc::clone(&self.spec.name),
            transport: "cli",
            connection: match &self.path {
                Ok(_) => Connection::Ready,
                Err(_) => Connection::Failed,
            },
            last_error: self.path.as_ref().err().cloned(),
            tools: self.catalogue.borrow().tools.len(),
        }
    }

    /// Its commands.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.spec.program
    }

    /// The floor of its dispatcher, of what is not declared, and of a program without commands.
    #[must_use]
    pub fn floor(&self) -> Floor {
        Floor {
            kind: FloorKind::Dispatcher,
            action: self.spec.default_action,
        }
    }

    /// The tool of a command that is not declared, under its own name; `None` where there can be none.
    #[must_use]
    pub fn undeclared(&self, local: &str) -> Option<Tool> {
        let path = self.path.as_ref().ok()?;
        let file = file_name(path);
        let upstream = UpstreamName::try_from(&*self.spec.name).ok()?;
        self.spec
            .program
            .undeclared_tool(&upstream, bin(&self.spec, &file), local)
    }

    /// Runs the argument vector that was decided about.
    ///
    /// # Errors
    /// When it was not run to its end. A program that ends by itself, with whatever code, has answered.
    pub(in crate::upstream) async fn call(
        &self,
        request: UpstreamRequest,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let order = self.order(&request)?;
        let bound = order.timeout;
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return Err(UpstreamError::Busy {
                upstream: Arc::clone(&self.spec.name),
                limit: self.spec.max_calls,
            });
        };
        let (tell, mut told) = oneshot::channel();
        let end = self.stop.child_token();
        let running = run::run(order, Arc::clone(&self.children), end.clone());
        // A task of its own: the program is ended in good order also when nobody waits for it any more.
        self.tasks.spawn(async move {
            let outcome = running.await;
            drop(room);
            let _ = tell.send(outcome);
        });
        let _ended_when_dropped = end.clone().drop_guard();
        let outcome = tokio::select! {
            biased;
            outcome = &mut told => outcome,
            () = request.cancel.cancelled() => {
                end.cancel();
                told.await
            }
        };
        match outcome.unwrap_or(Err(RunError::Ended)) {
            Ok(finished) => Ok(finished.answer()),
            Err(error) => Err(self.failed(&error, bound, request.cancel.is_cancelled())),
        }
    }

    /// What is to be run for a request.
    fn order(&self, request: &UpstreamRequest) -> Result<Order, UpstreamError> {
        if self.stop.is_cancelled() {
            return Err(self.unavailable("it is no longer configured".to_owned()));
        }
        let path = self.path.clone().map_err(|detail| self.unavailable(detail))?;
        let Some(call) = &request.program else {
            return Err(self.unavailable("no argument vector was decided about".to_owned()));
        };
        Ok(Order {
            path,
            argv: call.argv.clone(),
            stdin: call.stdin.clone(),
            env: self.env.clone(),
            working_dir: self.spec.working_dir.clone(),
            max_output_bytes: self.spec.max_output_bytes,
            answer_bytes: self.spec.answer_bytes,
            timeout: call.timeout.or(request.timeout).unwrap_or(TIMEOUT),
        })
    }

    fn unavailable(&self, detail: String) -> UpstreamError {
        UpstreamError::Unavailable {
            upstream: Arc::clone(&self.spec.name),
            detail,
        }
    }

    fn failed(&self, error: &RunError, bound: Duration, is_cancelled: bool) -> UpstreamError {
        let upstream = Arc::clone(&self.spec.name);
        match error {
            RunError::Start(_) => self.unavailable(error.to_string()),
            RunError::TimedOut => UpstreamError::Timeout {
                upstream,
                after: bound,
            },
            RunError::Ended if is_cancelled => UpstreamError::Cancelled { upstream },
            RunError::Wait(_) | RunError::Ended => UpstreamError::Lost {
                upstream,
                detail: error.to_string(),
            },
        }
    }
}

fn declared(declaration: &Declaration) -> Option<DeclaredTool> {
    Some(DeclaredTool {
        name: declaration.local.as_str().into(),
        declared: to_raw_value(&declaration.declared).ok()?.into(),
    })
}

/// A program that was found on `PATH`, or in a folder of the system, is what its name says.
fn bin<'b>(spec: &CliSpec, name: &'b str) -> Bin<'b> {
    let folder = spec.bin.parent().unwrap_or(Path::new(""));
    Bin {
        name,
        floor: spec.default_action.as_str(),
        is_installed: folder == Path::new("")
            || SYSTEM_FOLDERS.iter().any(|system| folder == Path::new(system)),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The absolute path of a program that can be run, and whose folder to run in is there.
fn found(spec: &CliSpec) -> Result<PathBuf, String> {
    if let Some(folder) = spec.working_dir.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(format!("working_dir {} is not a folder", folder.display()));
    }
    if spec.bin.components().count() > 1 || spec.bin.is_absolute() {
        let path = std::path::absolute(&spec.bin)
            .map_err(|error| format!("the path of {} is not usable: {error}", spec.bin.display()))?;
        return if is_program(&path) {
            Ok(path)
        } else {
            Err(format!("{} is not a program that can be run", path.display()))
        };
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&spec.bin))
        .find(|path| is_program(path))
        .ok_or_else(|| {
            format!(
                "there is no program {} on PATH; install it, or give its path as bin",
                spec.bin.display()
            )
        })
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The whole environment of a program: nothing of the sidecar's own but `PATH` and `HOME`.
fn environment(spec: &CliSpec) -> Vec<(OsString, OsString)> {
    let own = |name: &str| Some((OsString::from(name), env::var_os(name)?));
    let configured = spec.env.iter().map(|(name, value)| (name.into(), value.into()));
    own("PATH")
        .into_iter()
        .chain(own("HOME"))
        .chain([(OsString::from("LANG"), OsStr::new(LANG).to_owned())])
        .chain(configured)
        .collect()
}

//! A Postgres cluster for tests, their own: made in a temporary folder, reached by a unix socket only, gone when dropped.
//!
//! When the tests run as root, the server runs as the user `postgres`, since Postgres refuses root.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// Where packages put the server's programs, one folder per major version.
const INSTALLED: &str = "/usr/lib/postgresql";

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    folder: tempfile::TempDir,
    bin: PathBuf,
}

/// Why there is no cluster to test on. A test that gets this fails.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Postgres is not installed.
    #[error(
        "no Postgres server in {INSTALLED}/*/bin; install it with `make setup` (Debian: apt-get install postgresql)"
    )]
    NotInstalled,
    /// A folder or file could not be made.
    #[error("a test cluster's folder could not be made: {0}")]
    Folder(#[from] std::io::Error),
    /// A program of Postgres failed.
    #[error("{program} failed: {output}")]
    Failed {
        /// Its name.
        program: String,
        /// What it said.
        output: String,
    },
}

impl Cluster {
    /// Makes and starts a cluster.
    pub fn start() -> Result<Self, ClusterError> {
        let bin = newest_bin().ok_or(ClusterError::NotInstalled)?;
        let folder = tempfile::Builder::new()
            .prefix("toolgate-pg-")
            .tempdir_in("/tmp")?;
        // The server's user must be able to enter and write.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777))?;
        let cluster = Self { folder, bin };
        let data = cluster.data();
        cluster.run(
            "initdb",
            &[
                OsStr::new("-D"),
                data.as_os_str(),
                OsStr::new("-U"),
                OsStr::new("postgres"),
                OsStr::new("--auth=trust"),
                OsStr::new("--encoding=UTF8"),
                OsStr::new("--no-sync"),
                OsStr::new("--locale=C.UTF-8"),
            ],
        )?;
        cluster.boot()?;
        Ok(cluster)
    }

    /// Makes a database; answers its URL.
    pub fn database(&self, name: &str) -> Result<String, ClusterError> {
        self.run(
            "createdb",
            &[
                OsStr::new("-h"),
                self.folder.path().as_os_str(),
                OsStr::new("-U"),
                OsStr::new("postgres"),
                OsStr::new(name),
            ],
        )?;
        Ok(self.url(name))
    }

    /// The URL of a database of this cluster.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{socket}/{database}")
    }

    /// Runs a program of Postgres (`psql`, `pg_dump`, `pg_restore`, …) with this cluster's host and user in its environment; answers
    /// what it printed.
    pub fn tool(&self, program: &str, args: &[&str]) -> Result<Vec<u8>, ClusterError> {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        Ok(self.run(program, &args)?.stdout)
    }

    /// Stops the server; open connections break at once.
    pub fn stop(&self) -> Result<(), ClusterError> {
        self.control(&["-m", "immediate", "-w", "stop"])
    }

    /// Starts the server again.
    pub fn boot(&self) -> Result<(), ClusterError> {
        let settings = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c fsync=off -c full_page_writes=off \
             -c max_connections=200 -c shared_buffers=64MB",
            self.folder.path().display()
        );
        let log = self.folder.path().join("log").display().to_string();
        self.control(&["-w", "-t", "60", "-l", &log, "-o", &settings, "start"])
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn control(&self, args: &[&str]) -> Result<(), ClusterError> {
        let data = self.data();
        let mut all = vec![OsStr::new("-D"), data.as_os_str()];
        all.extend(args.iter().map(OsStr::new));
        self.run("pg_ctl", &all).map(|_| ())
    }

    fn run(&self, program: &str, args: &[&OsStr]) -> Result<Output, ClusterError> {
        let path = self.bin.join(program);
        let mut command = if nix::unistd::geteuid().is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        // The started server must not hold a pipe of ours open.
        let log = self.folder.path().join(format!("{program}.out"));
        let piped = program != "pg_ctl";
        if piped {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        } else {
            let file = fs::File::create(&log)?;
            command.stdout(file.try_clone()?).stderr(file);
        }
        let output = command
            .args(args)
            .env("PGHOST", self.folder.path())
            .env("PGUSER", "postgres")
            .current_dir("/tmp")
            .stdin(Stdio::null())
            .output()?;
        if output.status.success() {
            return Ok(output);
        }
        let said = if piped {
            output.stderr
        } else {
            fs::read(&log).unwrap_or_default()
        };
        Err(ClusterError::Failed {
            program: program.to_owned(),
            output: String::from_utf8_lossy(&said).trim().to_owned(),
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn newest_bin() -> Option<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(Path::new(INSTALLED))
        .ok()?
        .filter_map(Result::ok)
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .filter(|(_, bin)| bin.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop().map(|(_, bin)| bin)
}

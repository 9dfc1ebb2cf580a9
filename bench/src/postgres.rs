//! A Postgres cluster of the benchmark's own: in a temporary folder, on a unix socket, durable as a real one is.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{During as _, Result, unexpected};

/// Where packages put the server's programs, one folder per major version.
const INSTALLED: &str = "/usr/lib/postgresql";

/// A running cluster; stopped when dropped.
#[derive(Debug)]
pub struct Cluster {
    folder: tempfile::TempDir,
    programs: PathBuf,
}

impl Cluster {
    /// Makes and starts one. As root the server runs as the user `postgres`.
    ///
    /// # Errors
    /// When Postgres is not installed or does not start.
    pub fn start() -> Result<Self> {
        let programs = newest().ok_or_else(|| {
            unexpected(
                "no Postgres server is installed; `make setup` installs one (apt-get install postgresql)",
            )
        })?;
        let folder = tempfile::Builder::new()
            .prefix("toolgate-bench-pg-")
            .tempdir_in("/tmp")
            .during("make a folder")?;
        // The server's user must be able to enter and write.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).during("open a folder")?;
        let cluster = Self { folder, programs };
        let data = cluster.data();
        cluster.run(
            "initdb",
            &["-D", &data, "-U", "postgres", "--auth=trust", "--locale=C.UTF-8"],
        )?;
        let socket = cluster.socket();
        let settings = format!(
            "-c listen_addresses= -c unix_socket_directories={socket} -c shared_buffers=256MB -c max_wal_size=4GB"
        );
        let log = format!("{socket}/log");
        cluster.run(
            "pg_ctl",
            &[
                "-D", &data, "-w", "-t", "60", "-l", &log, "-o", &settings, "start",
            ],
        )?;
        Ok(cluster)
    }

    /// Its version and the settings that differ from Postgres' defaults.
    #[must_use]
    pub fn describe(&self) -> String {
        let major = self.programs.parent().and_then(Path::file_name);
        let major = major.map_or_else(|| "?".into(), |name| name.to_string_lossy());
        format!("Postgres {major}, fsync on, shared_buffers 256 MB")
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "postgres://postgres@{}/postgres",
            self.socket().replace('/', "%2F")
        )
    }

    fn socket(&self) -> String {
        self.folder.path().display().to_string()
    }

    fn data(&self) -> String {
        format!("{}/data", self.socket())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let path = self.programs.join(program);
        let mut command = if nix::unistd::geteuid().is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        let said = self.folder.path().join(format!("{program}.out"));
        let log = fs::File::create(&said).during("make a log file")?;
        command
            .args(arguments)
            .current_dir("/tmp")
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone().during("make a log file")?)
            .stderr(log);
        let status = command.status().during(&format!("run {program}"))?;
        if status.success() {
            return Ok(());
        }
        let said = fs::read_to_string(said).unwrap_or_default();
        Err(unexpected(format!("{program} failed: {}", said.trim())))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.data();
        let _ = self.run("pg_ctl", &["-D", &data, "-m", "immediate", "-w", "stop"]);
    }
}

fn newest() -> Option<PathBuf> {
    let versions = fs::read_dir(INSTALLED).ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        let major: u32 = entry.file_name().to_str()?.parse().ok()?;
        let programs = entry.path().join("bin");
        programs.join("initdb").exists().then_some((major, programs))
    });
    versions.max().map(|(_, programs)| programs)
}

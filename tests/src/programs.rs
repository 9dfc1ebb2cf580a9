//! Where the programs under test and the real servers and clients are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Process;
use crate::wait;

/// A program of this build: `toolgate`, `toolgate-control-plane`, `toolgate-sidecar`, `fixture-mcp`.
///
/// `make test` builds them with `--features sidecar/crash-points,control-plane/crash-points`, which `tests/tests/kills.rs` needs.
#[must_use]
pub fn built(name: &str) -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    if folder.ends_with("deps") {
        folder.pop();
    }
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not built; `make test` builds it before the tests run",
        path.display()
    );
    path
}

/// The root of the checkout.
#[must_use]
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A program of one of the Python environments that `make setup` makes: `servers`, `clients-1`, `clients-2`, `mesh`.
#[must_use]
pub fn python(environment: &str, program: &str) -> PathBuf {
    existing(
        checkout()
            .join("target/venvs")
            .join(environment)
            .join("bin")
            .join(program),
    )
}

/// A program of the npm packages that `make setup` installs.
#[must_use]
pub fn npm(program: &str) -> PathBuf {
    existing(checkout().join("tests/servers/node_modules/.bin").join(program))
}

/// The fixture of the conformance suite, which speaks one era, and its URL.
pub async fn conformance_fixture(place: &Path, era: &str) -> (Process, String) {
    let mut command = Command::new("node");
    command
        .arg(checkout().join("tests/conformance/fixture/server.mjs"))
        .arg(era);
    let process = Process::spawn(command, &place.join(format!("{era}.log")));
    let url = wait::until("the fixture says where it is", || async {
        process
            .log()
            .lines()
            .find(|line| line.starts_with("http://"))
            .map(str::to_owned)
    })
    .await;
    (process, url)
}

fn existing(path: PathBuf) -> PathBuf {
    assert!(
        path.exists(),
        "{} is missing; `make setup` installs it",
        path.display()
    );
    path
}

//! What is decided about processes, and what is ended where this process is not the parent. The lookups of a process that owns its
//! children are shown end to end (`tests/tests/leftovers.rs`), for here other tests have children too.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::mark::{Found, Mark, VARIABLE};
use super::{proc, stale};

#[test]
fn a_mark_names_an_installation_a_process_and_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let (first, found) = Mark::kept_in(folder.path()).unwrap();
    assert_eq!(found, Found::New);
    let (second, found) = Mark::kept_in(folder.path()).unwrap();
    assert_eq!(found, Found::Before);
    assert_eq!(first.of_installation(), second.of_installation());
    assert_ne!(first.of_process(), second.of_process());
    assert!(first.of_run(7).starts_with(&first.of_installation()));
    assert_eq!(first.run(&first.of_run(7)), Some(7));
    assert_eq!(second.run(&first.of_run(7)), None);
    for other in ["", "7", &first.of_process(), &format!("{}x", first.of_process())] {
        assert_eq!(first.run(other), None, "{other}");
    }
    // A file that was damaged is no installation.
    std::fs::write(folder.path().join("programs"), ".").unwrap();
    assert_eq!(Mark::kept_in(folder.path()).unwrap().1, Found::New);
}

fn shell(mark: &str, text: &str) -> Child {
    Command::new("/bin/sh")
        .args(["-c", text])
        .env(VARIABLE, mark)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The first child of a process.
fn child_of(parent: u32) -> i32 {
    let began = Instant::now();
    loop {
        let is_child =
            |id: &i32| proc::status(*id).is_some_and(|status| u32::try_from(status.parent) == Ok(parent));
        if let Some(id) = proc::all().into_iter().find(is_child) {
            return id;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{parent} has no child");
    }
}

#[test]
fn what_bears_the_mark_is_ended_with_what_came_of_it_and_nothing_else() {
    let mark = Mark::fresh();
    let mut marked = shell(
        &mark.of_run(1),
        "trap '' TERM; env -i setsid sleep 300 & wait; sleep 300",
    );
    let hidden = child_of(marked.id());
    let mut other = shell(&Mark::fresh().of_run(1), "exec sleep 300");
    assert!(stale::end(&mark.of_process()) >= 2);
    marked.wait().unwrap();
    assert!(proc::variable(hidden, "PATH").is_none());
    assert_eq!(other.try_wait().unwrap(), None);
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(stale::end(&mark.of_installation()), 0);
}

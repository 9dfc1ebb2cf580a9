//! A program that misbehaves on purpose, and what of it still runs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::wait;

/// What the script does, by its first argument.
const SCRIPT: &str = r#"#!/bin/bash
cd "$(dirname "$0")"
case "$1" in
  env) env; ls /proc/self/fd | wc -l ;;
  echo) shift; printf '%s\n' "$@" ;;
  flood) head -c 3000000 /dev/zero | tr '\0' x; echo end >&2 ;;
  bytes) printf 'a\377b' ;;
  fail) echo no >&2; exit 3 ;;
  signal) kill -SEGV $$ ;;
  deaf) trap '' TERM; echo $$ > deaf.pid; while :; do sleep 0.1; done ;;
  closes) echo $$ > closes.pid; exec >&- 2>&-; sleep 300 ;;
  forks) (trap '' TERM; sleep 300) & echo $! > forks.pid; echo parent; exit 0 ;;
  slow) echo $$ > slow.pid; sleep 300 ;;
  input) cat ;;
  blind) exec sleep 0 ;;
  daemon)
    (setsid bash -c 'trap "" TERM HUP; echo $$ > daemon.pid; exec sleep 300' &)
    until [ -s daemon.pid ]; do sleep 0.01; done
    echo parent ;;
  nameless)
    (env -i setsid bash -c 'trap "" TERM HUP; echo $$ > nameless.pid; exec >&- 2>&-; sleep 300' &)
    until [ -s nameless.pid ]; do sleep 0.01; done ;;
  swarm)
    for i in $(seq 20); do
      (setsid bash -c 'trap "" TERM; for j in 1 2 3 4; do (setsid sleep 300 &); done; sleep 300 & wait' &)
    done
    until [ "$(pgrep -f -c 'sleep 300')" -gt 20 ]; do sleep 0.01; done ;;
  run-away)
    # Each starts the next one in a session of its own, and ends.
    [ -e "$2" ] || echo $$ > run-away.pid
    setsid "$0" run-away run-away.pid > /dev/null 2>&1 < /dev/null &
    [ -e "$2" ] || sleep 0.3 ;;
  short-lived)
    for i in $(seq 50); do (setsid true &); done
    echo $$ > short-lived.pid
    sleep 300 ;;
  family)
    (setsid bash -c 'trap "" TERM HUP; echo $$ > family.pid; sleep 300 & exec sleep 300' &)
    sleep 300 ;;
esac
"#;

/// The script as a program with commands.
const TOOL: &str = r#"  - name: mischief
    bin: FOLDER/mischief
    working_dir: FOLDER/work
    env: {GREETING: "hello ${NAME}"}
    default_action: allow
    max_output_bytes: 1MiB
    max_calls: 2
    commands:
      env:
      echo: {allowed_args: ["-n", "--name"]}
      flood:
      bytes:
      fail:
      signal:
      deaf: {timeout: 500ms}
      closes: {timeout: 500ms}
      forks:
      slow:
      input:
      blind:
      daemon:
      nameless:
      swarm:
      run-away:
      short-lived:
      family:
"#;

/// Writes the script into a folder, in which it runs; its entry in `cli_tools`. It begins in the folder's `work`.
#[must_use]
pub fn tool(folder: &Path) -> String {
    let script = folder.join("mischief");
    std::fs::write(&script, SCRIPT).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir_all(folder.join("work")).unwrap();
    TOOL.replace("FOLDER", &folder.display().to_string())
}

/// The processes that run in a folder, whatever they have made of their environment, session and parent. One that has ended runs nowhere.
#[must_use]
pub fn running_in(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id: &u32| {
        std::fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|place| place.starts_with(folder))
    })
    .collect()
}

/// Waits until a script has written this file, and gives the id in it.
pub async fn id_in(file: &Path) -> u32 {
    wait::until(&format!("{} is written", file.display()), || async {
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    })
    .await
}

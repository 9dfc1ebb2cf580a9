//! What a call of a program costs over running it: the same program, run by the benchmark itself and as a tool.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::Extent;
use super::calls::echo;
use crate::connection::Connection;
use crate::error::{During as _, Result, unexpected};
use crate::histogram::Histogram;
use crate::planes::{ControlPlane, Home, PROGRAM, PROGRAMS_AGENT, Serves};
use crate::report::{Report, spread};

/// Calls in turn of each way, so that both meet the same machine.
const TURN: usize = 20;

/// Runs and calls the program in turns.
///
/// # Errors
/// When the sidecar does not start, or a call fails.
pub async fn run(folder: &Path, plane: &ControlPlane, extent: Extent, report: &mut Report) -> Result<()> {
    let (_echo, upstream) = echo(folder, "echo-programs", 1).await?;
    let serves = Serves {
        agents: "*",
        url: format!("http://{upstream}/mcp"),
        others: false,
        program: true,
    };
    let sidecar = Home::make(folder, "programs", plane, &serves)
        .await?
        .start()
        .await?;
    let (mut plain, mut governed, mut added) = (Vec::new(), Vec::new(), Vec::new());
    let mut number = 0;
    for _ in 0..extent.rounds {
        let (mut execs, mut calls) = (Histogram::default(), Histogram::default());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs_f64(extent.seconds) {
            for _ in 0..TURN {
                number += 1;
                execs.record(exec(number).await?);
            }
            let mut connection = Connection::open(sidecar.address).await.during("connect")?;
            for _ in 0..TURN {
                number += 1;
                calls.record(call(&mut connection, sidecar.address, number).await?);
            }
        }
        let micros = |histogram: &Histogram| histogram.quantile(0.5).as_secs_f64() * 1e6;
        plain.push(micros(&execs));
        governed.push(micros(&calls));
        added.push(micros(&calls) - micros(&execs));
    }
    let conditions = format!(
        "`{PROGRAM}` without output, run with both outputs captured; {} rounds of {} s, runs and calls in turns of {TURN}; REST, one connection; records on, `spool.sync: auto`",
        extent.rounds, extent.seconds
    );
    report.add(
        "plain run of a program, p50",
        "-",
        spread(&plain, "us"),
        &conditions,
    );
    report.add(
        "call of a program, p50",
        "-",
        spread(&governed, "us"),
        &conditions,
    );
    report.add("added by the call, p50", "-", spread(&added, "us"), &conditions);
    sidecar.process.end().await;
    Ok(())
}

/// As a sidecar runs it: the same arguments and environment, a process group of its own, both outputs captured.
async fn exec(number: u64) -> Result<Duration> {
    let begun = Instant::now();
    let output = tokio::process::Command::new(PROGRAM)
        .arg(number.to_string())
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME"))
        .env("LANG", "en_US.UTF-8")
        .process_group(0)
        .stdin(Stdio::null())
        .output()
        .await
        .during("run a program")?;
    if output.status.success() {
        Ok(begun.elapsed())
    } else {
        Err(unexpected(format!("{PROGRAM}: {}", output.status)))
    }
}

async fn call(connection: &mut Connection, address: SocketAddr, number: u64) -> Result<Duration> {
    let body = format!("{{\"params\":{{\"args\":[\"{number}\"]}}}}");
    let request = format!(
        "POST /tool/program.run HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         authorization: Bearer agent:{PROGRAMS_AGENT}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let begun = Instant::now();
    let answer = connection
        .exchange(request.as_bytes())
        .await
        .during("call a program")?;
    if answer.status == 200 {
        Ok(begun.elapsed())
    } else {
        Err(unexpected(format!(
            "a program's call answered {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        )))
    }
}

//! Runs a compiler as a child process: input from a file in memory, output and diagnostics through pipes, a time limit. Its
//! crash or hang never reaches the application. Often it is forked from one that is loaded already (`server`).

use super::server;
use crate::util::fds;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// No kernel takes a compiler that long; a hang does.
pub const TIME_LIMIT: Duration = Duration::from_secs(300);

/// What a child left behind.
#[derive(Debug)]
pub struct Finished {
    /// Exited with status 0.
    pub success: bool,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error, and a line on how it ended if that was unusual.
    pub diagnostics: String,
}

/// Runs `command` on `input`. `Err` only when it cannot be started.
pub fn run(command: Command, input: &[u8]) -> std::io::Result<Finished> {
    match server::run(&command, input, TIME_LIMIT) {
        Some(finished) => Ok(finished),
        None => run_alone(command, input),
    }
}

/// What is said of a compiler that took too long.
pub fn stopped(after: Duration) -> String {
    format!(
        "the compiler was stopped after {} seconds\n",
        after.as_secs()
    )
}

/// Runs `command` in a process of its own.
pub fn run_alone(mut command: Command, input: &[u8]) -> std::io::Result<Finished> {
    let started = Instant::now();
    let mut child = command
        // Writing to a pipe whose reader has died raises a signal that ends most applications.
        .stdin(fds::memory_file(c"pumice-source", input)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut out = Vec::new();
    let mut diagnostics = Vec::new();
    let mut timed_out = false;
    let (done, finished) = mpsc::channel::<()>();
    let status = std::thread::scope(|scope| {
        scope.spawn(|| stderr.map(|mut pipe| pipe.read_to_end(&mut diagnostics)));
        let (child_done, out) = (done, &mut out);
        scope.spawn(move || {
            let _ = stdout.map(|mut pipe| pipe.read_to_end(out));
            let _ = child_done.send(());
        });
        if finished.recv_timeout(TIME_LIMIT).is_err() {
            timed_out = true;
            let _ = child.kill();
        }
        child.wait()
    });
    let mut diagnostics = String::from_utf8_lossy(&diagnostics).into_owned();
    // An application that ignores SIGCHLD makes the status unknowable; then the output tells.
    let success = match &status {
        Ok(status) => status.success(),
        Err(_) => !out.is_empty(),
    };
    if timed_out {
        diagnostics += &stopped(started.elapsed());
    } else if let Ok(status) = status {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            diagnostics += &format!("the compiler crashed (signal {signal})\n");
        }
    }
    Ok(Finished {
        success: success && !timed_out,
        stdout: out,
        diagnostics,
    })
}

//! A compiler in a process of its own: input and output through pipes, each with a thread, since Windows cannot wait for several
//! of them at once; no window; at the time limit it is ended.

use super::{stopped, Finished, TIME_LIMIT};
use std::io::{Error, Read, Write};
use std::os::windows::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

/// CREATE_NO_WINDOW: an application without a console gets none for the compiler.
const NO_WINDOW: u32 = 0x0800_0000;
/// The least status of a process that an exception has ended.
const EXCEPTION: i32 = 0xc000_0000u32 as i32;

/// Runs `command` in a process of its own.
pub fn run_alone(mut command: Command, input: &[u8]) -> std::io::Result<Finished> {
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .creation_flags(NO_WINDOW)
        .spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) = pipes else {
        return Err(Error::other("a child without pipes"));
    };
    let (done, both_done) = mpsc::channel();
    let (out, diagnostics, timed_out) = std::thread::scope(|scope| {
        // A child that reads no further has said why.
        scope.spawn(move || stdin.write_all(input));
        let first = done.clone();
        let out = scope.spawn(move || {
            let mut bytes = Vec::new();
            let _ = stdout.read_to_end(&mut bytes);
            let _ = first.send(());
            bytes
        });
        let diagnostics = scope.spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            let _ = done.send(());
            bytes
        });
        let mut timed_out = false;
        for _ in 0..2 {
            let rest = TIME_LIMIT.saturating_sub(started.elapsed());
            if both_done.recv_timeout(rest).is_err() {
                timed_out = true;
                let _ = child.kill();
                break;
            }
        }
        (
            out.join().unwrap_or_default(),
            diagnostics.join().unwrap_or_default(),
            timed_out,
        )
    });
    let status = child.wait()?;
    let mut diagnostics = String::from_utf8_lossy(&diagnostics).into_owned();
    if timed_out {
        diagnostics += &stopped(started.elapsed());
    } else if let Some(code @ EXCEPTION..=-1) = status.code() {
        diagnostics += &format!("the compiler crashed (exception {code:#x})\n");
    }
    Ok(Finished {
        success: status.success() && !timed_out,
        stdout: out,
        diagnostics,
    })
}

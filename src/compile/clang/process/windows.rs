//! Runs a compiler in a process of its own: input and output through pipes, each with a thread,
//! since Windows cannot wait for several of them at once. It is terminated at the time limit, and
//! at the end of this process (`util/child.rs`).

use super::{stopped, time_limit, Finished, TOO_MUCH};
use crate::compile::clang::printed::Printed;
use crate::util::child::Child;
use crate::util::thread;
use std::io::{Error, Read, Write};
use std::process::Command;
use std::sync::mpsc;
use std::time::Instant;

/// The least status of a process that an exception has ended.
const EXCEPTION: u32 = 0xc000_0000;

/// Reads a pipe to its end, or to the bound.
fn read_all(mut pipe: impl Read, mut to: Printed) -> Printed {
    let mut chunk = vec![0; 64 << 10];
    while let Ok(size @ 1..) = pipe.read(&mut chunk) {
        to.add(chunk.get(..size).unwrap_or_default());
        if to.is_too_much() {
            break;
        }
    }
    to
}

/// Runs `command` in a process of its own.
pub fn run_alone(command: Command, input: &[u8]) -> std::io::Result<Finished> {
    let started = Instant::now();
    let mut child = Child::spawn(&command)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(Error::other("a child without pipes"));
    };
    let (done, both_done) = mpsc::channel();
    let (out, diagnostics, timed_out) = std::thread::scope(|scope| -> std::io::Result<_> {
        let first = done.clone();
        let spawned = || {
            // A child that reads no further has said why.
            thread::spawn_scoped(scope, "pumice-pipe", move || drop(stdin.write_all(input)))?;
            let out = thread::spawn_scoped(scope, "pumice-pipe", move || {
                let printed = read_all(stdout, Printed::output());
                let _ = first.send(());
                printed
            })?;
            let diagnostics = thread::spawn_scoped(scope, "pumice-pipe", move || {
                let printed = read_all(stderr, Printed::diagnostics());
                let _ = done.send(());
                printed
            })?;
            Ok((out, diagnostics))
        };
        // Threads that there are read until the child ends.
        let (out, diagnostics) = spawned().inspect_err(|_: &Error| child.kill())?;
        let mut timed_out = false;
        for _ in 0..2 {
            let rest = time_limit().saturating_sub(started.elapsed());
            if both_done.recv_timeout(rest).is_err() {
                timed_out = true;
                child.kill();
                break;
            }
        }
        let no_output = |_| Error::other("no output");
        Ok((
            out.join().map_err(no_output)?,
            diagnostics.join().map_err(no_output)?,
            timed_out,
        ))
    })?;
    let too_much = out.is_too_much();
    if too_much {
        child.kill();
    }
    let status = child.wait()?;
    let mut diagnostics = diagnostics.into_text();
    if too_much {
        diagnostics += TOO_MUCH;
    } else if timed_out {
        diagnostics += &stopped(time_limit());
    } else if let code @ EXCEPTION.. = status {
        diagnostics += &format!("the compiler crashed (exception {code:#x})\n");
    }
    Ok(Finished {
        success: status == 0 && !timed_out && !too_much,
        stdout: out.into_bytes(),
        diagnostics,
        killed: false,
    })
}

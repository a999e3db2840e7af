//! A compiler in a process of its own: input from a file in memory, output and diagnostics through pipes that one thread waits
//! for.

use super::{server, stopped, Finished, TIME_LIMIT};
use crate::util::fds;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Reads what has come through a pipe, and closes it at its end.
fn take_some(pipe: &mut Option<impl Read>, chunk: &mut [u8], to: &mut Vec<u8>) {
    let Some(open) = pipe else { return };
    match open.read(chunk) {
        Ok(size) if size > 0 => to.extend(chunk.get(..size).unwrap_or_default()),
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        _ => *pipe = None,
    }
}

/// What a child reads: a file in memory, or, where files may not be that large, a socket and what is to be sent through it.
fn input_for(input: &[u8]) -> std::io::Result<(Stdio, Option<UnixStream>)> {
    // Writing to a pipe whose reader has died raises a signal that ends most applications.
    match fds::memory_file(c"pumice-source", input) {
        Ok(file) => Ok((file.into(), None)),
        Err(error) if error.raw_os_error() == Some(libc::EFBIG) => {
            let (ours, theirs) = UnixStream::pair()?;
            Ok((OwnedFd::from(theirs).into(), Some(ours)))
        }
        Err(error) => Err(error),
    }
}

/// Between two looks at a socket that is full.
const LOOK: Duration = Duration::from_millis(5);

/// Runs `command` in a process of its own. No thread is needed for it.
pub fn run_alone(mut command: Command, input: &[u8]) -> std::io::Result<Finished> {
    let started = Instant::now();
    let (stdin, mut to) = input_for(input)?;
    let _library = server::guard(&mut command);
    let mut child = command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // With the child's end of a socket, which must have one owner to be seen to close.
    drop(command);
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let (mut out, mut diagnostics) = (Vec::new(), Vec::new());
    let (mut chunk, mut left) = (vec![0; 64 << 10], input);
    let mut timed_out = false;
    while stdout.is_some() || stderr.is_some() {
        let rest = TIME_LIMIT.saturating_sub(started.elapsed());
        if rest.is_zero() {
            timed_out = true;
            let _ = child.kill();
            break;
        }
        if let Some(socket) = &to {
            match fds::send_some(socket.as_fd(), left) {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // It reads no more.
                Err(_) => left = &[],
            }
        }
        if left.is_empty() {
            to = None;
        }
        let wanted = [
            stdout.as_ref().map(|pipe| pipe.as_fd()),
            stderr.as_ref().map(|pipe| pipe.as_fd()),
        ];
        let patience = if to.is_some() { LOOK } else { rest };
        let Ok(ready) = fds::readable(wanted, patience) else {
            let _ = child.kill();
            break;
        };
        if ready[0] {
            take_some(&mut stdout, &mut chunk, &mut out);
        }
        if ready[1] {
            take_some(&mut stderr, &mut chunk, &mut diagnostics);
        }
    }
    let status = child.wait();
    let diagnostics = String::from_utf8_lossy(&diagnostics).into_owned();
    let mut diagnostics = server::without_complaints(diagnostics);
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

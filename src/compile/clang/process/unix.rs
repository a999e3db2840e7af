//! Runs a compiler in a process of its own: input from a file in memory, output and diagnostics
//! through pipes that one thread polls.

use super::{server, stopped, time_limit, Finished, TOO_MUCH};
use crate::compile::clang::printed::Printed;
use crate::util::fds;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Reads the available bytes of a pipe, and closes it at its end.
fn take_some(
    pipe: &mut Option<impl Read>,
    chunk: &mut [u8],
    to: &mut Printed,
) -> std::io::Result<()> {
    let Some(open) = pipe else { return Ok(()) };
    match open.read(chunk) {
        Ok(size) if size > 0 => to.add(chunk.get(..size).unwrap_or_default()),
        Ok(_) => *pipe = None,
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Returns the input of a child: a file in memory or, where files may not be that large, a socket
/// and the bytes to send through it.
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

/// The interval between two polls of a socket that is full.
const LOOK: Duration = Duration::from_millis(5);

/// Waits for a child that has closed its output, until the deadline. Returns its status, and
/// whether the deadline passed.
fn wait(child: &mut Child, until: Instant) -> (std::io::Result<ExitStatus>, bool) {
    let mut pause = Duration::from_micros(50);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return (Ok(status), false),
            Ok(None) if Instant::now() < until => {}
            Ok(None) => {
                let _ = child.kill();
                return (child.wait(), true);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (Err(error), false),
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOOK);
    }
}

/// The signals of a crash.
const CRASHES: [i32; 7] = [
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGTRAP,
];

/// Runs `command` in a process of its own, without another thread.
pub fn run_alone(mut command: Command, input: &[u8]) -> std::io::Result<Finished> {
    let until = Instant::now() + time_limit();
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
    let (mut out, mut diagnostics) = (Printed::output(), Printed::diagnostics());
    let (mut chunk, mut left) = (vec![0; 64 << 10], input);
    let mut step = || -> std::io::Result<bool> {
        if let Some(socket) = &to {
            match fds::send_some(socket.as_fd(), left) {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
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
        let rest = until.saturating_duration_since(Instant::now());
        let patience = if to.is_some() { rest.min(LOOK) } else { rest };
        let ready = fds::readable(wanted, patience)?;
        if ready[0] {
            take_some(&mut stdout, &mut chunk, &mut out)?;
        }
        if ready[1] {
            take_some(&mut stderr, &mut chunk, &mut diagnostics)?;
        }
        Ok((stdout.is_some() || stderr.is_some()) && !out.is_too_much())
    };
    let (mut timed_out, mut failed) = (false, None);
    loop {
        match step() {
            Ok(true) if Instant::now() < until => {}
            Ok(more) => {
                timed_out = more;
                break;
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    if timed_out || failed.is_some() || out.is_too_much() {
        let _ = child.kill();
    }
    let (status, late) = wait(&mut child, until);
    if let Some(error) = failed {
        return Err(error);
    }
    let mut diagnostics = server::without_complaints(diagnostics.into_text());
    let too_much = out.is_too_much();
    let out = out.into_bytes();
    // An application that ignores SIGCHLD makes the status unknowable; then the output tells.
    let success = match &status {
        Ok(status) => status.success(),
        Err(_) => !out.is_empty(),
    };
    let mut killed = false;
    if too_much {
        diagnostics += TOO_MUCH;
    } else if timed_out || late {
        diagnostics += &stopped(time_limit());
    } else if let Ok(status) = status {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            killed = !CRASHES.contains(&signal);
            let how = if killed { "was killed" } else { "crashed" };
            diagnostics += &format!("the compiler {how} (signal {signal})\n");
        }
    }
    Ok(Finished {
        success: success && !timed_out && !late && !too_much,
        stdout: out,
        diagnostics,
        killed,
    })
}

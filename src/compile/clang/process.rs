//! Runs a compiler as a child process: input from a file in memory, output and diagnostics through pipes, a time limit. Its
//! crash or hang never reaches the application. Often it is forked from one that is loaded already (`server`). As many run
//! at a time as there are cores.

use super::limit::CompilerLimit;
use super::scratch::Scratch;
use super::server;
use crate::util::{self, fds, files, trace};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
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

/// The compilers of this process.
static LIMIT: LazyLock<CompilerLimit> = LazyLock::new(|| CompilerLimit::new(util::cores()));

/// Bytes of arguments that go into a file: servers take twice as much, Linux 128 KiB in one argument.
const LONG: usize = 32 << 10;

/// Runs `command` on `input`. `Err` only when it cannot be started.
pub fn run(command: Command, input: &[u8]) -> std::io::Result<Finished> {
    let (command, _arguments) = shortened(command)?;
    let _turn = LIMIT.take();
    let _span = trace::span("compile", || {
        let of_ir = command.get_args().any(|word| word == "ir");
        let read = if of_ir { "LLVM IR" } else { "OpenCL C" };
        format!("clang, {read}")
    });
    match server::run(&command, input, TIME_LIMIT) {
        Some(finished) => Ok(finished),
        None => run_alone(command, input),
    }
}

/// The command with its arguments in a file, if they are long, and where the file is.
fn shortened(command: Command) -> std::io::Result<(Command, Option<Scratch>)> {
    let length: usize = command.get_args().map(|argument| argument.len() + 1).sum();
    let mut arguments = command.get_args();
    // What clang takes in front of all others.
    let first = arguments.next().filter(|first| *first == "-cc1");
    let (true, Some(first)) = (length > LONG, first) else {
        return Ok((command, None));
    };
    let mut text = Vec::with_capacity(length + length / 8);
    for argument in arguments {
        text.push(b'"');
        for &byte in argument.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.extend(b"\"\n");
    }
    let scratch = Scratch::new()?;
    let path = scratch.dir().join("arguments");
    files::limited(|| std::fs::write(&path, text))?;
    let mut at = std::ffi::OsString::from("@");
    at.push(path);
    let mut short = Command::new(command.get_program());
    short.arg(first).arg(at);
    Ok((short, Some(scratch)))
}

/// Reads what has come through a pipe, and closes it at its end.
fn take_some(pipe: &mut Option<impl Read>, chunk: &mut [u8], to: &mut Vec<u8>) {
    let Some(open) = pipe else { return };
    match open.read(chunk) {
        Ok(size) if size > 0 => to.extend(chunk.get(..size).unwrap_or_default()),
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        _ => *pipe = None,
    }
}

/// What is said of a compiler that took too long.
pub fn stopped(after: Duration) -> String {
    format!(
        "the compiler was stopped after {} seconds\n",
        after.as_secs()
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The dynamic linker's complaint about a library that it cannot load is nobody's business.
    #[test]
    fn complaints() {
        let text = "a.cl:1: error\nERROR: ld.so: object '/proc/7/fd/9' from LD_PRELOAD cannot be preloaded: ignored.\nend";
        let left = server::without_complaints(text.to_owned());
        assert_eq!(left, "a.cl:1: error\nend");
    }

    /// Long arguments reach the compiler as they are, with whatever is in them.
    #[test]
    fn long_arguments() {
        let Some(toolchain) = super::super::toolchain::get() else {
            return crate::left_out::left_out("no clang");
        };
        let long = "x".repeat(400 << 10);
        for alone in [true, false, false] {
            let mut clang = Command::new(&toolchain.clang);
            clang.args(["-cc1", "-E", "-P", "-o", "-", "-x", "cl"]);
            clang.arg(format!("-DLONG={long}"));
            clang.args([r#"-DTEXT="a \"b\" \\ ' @c""#, "-DNOT_LAST=1", "-"]);
            let input = b"LONG TEXT NOT_LAST\n";
            let finished = if alone {
                let (clang, _arguments) = shortened(clang).unwrap();
                run_alone(clang, input).unwrap()
            } else {
                run(clang, input).unwrap()
            };
            assert!(finished.success, "{}", finished.diagnostics);
            let text = String::from_utf8(finished.stdout).unwrap();
            assert_eq!(text.trim(), format!(r#"{long} "a \"b\" \\ ' @c" 1"#));
        }
        let (short, arguments) = shortened(Command::new("clang")).unwrap();
        assert!(arguments.is_none() && short.get_program() == "clang");
    }
}

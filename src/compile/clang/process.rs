//! Runs a compiler as a child process with a time limit (`process/unix.rs`, `process/windows.rs`)
//! and a bound on its output (`printed.rs`). Its crash or hang never reaches the application. Often
//! it is forked from one that is loaded already (`server`). As many run at a time as there are
//! cores.

use super::limit::CompilerLimit;
use super::scratch::Scratch;
use super::server;
use crate::util::{self, config, trace};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;
use std::time::Duration;

#[cfg(unix)]
#[path = "process/unix.rs"]
mod alone;
#[cfg(windows)]
#[path = "process/windows.rs"]
mod alone;

pub use alone::run_alone;

/// Returns the time limit of a compiler, which only a hang exceeds.
pub fn time_limit() -> Duration {
    Duration::from_secs(config::get().clang_seconds)
}

/// The result of a child process.
#[derive(Debug)]
pub struct Finished {
    /// Set if it exited with status 0.
    pub success: bool,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error, and a line on how it ended if that was unusual.
    pub diagnostics: String,
    /// Set if another process ended it by a signal: the system for want of memory, or a user.
    pub killed: bool,
}

/// The number of compilers that other processes have ended, twice in a row.
static KILLED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of compilers of this process that other processes have ended. A result made
/// while it rose may not be the best that the compiler makes.
pub fn killed() -> u64 {
    KILLED.load(Ordering::Relaxed)
}

/// The limit of the compilers of this process.
static LIMIT: LazyLock<CompilerLimit> = LazyLock::new(|| CompilerLimit::new(util::cores()));

/// The bytes of arguments from which on they go into a file: servers take twice as much, Linux 128
/// KiB in one argument.
const LONG: usize = 32 << 10;

/// Runs `command` on `input`, and again if another process ends it. An error says that it cannot be
/// started.
pub fn run(command: Command, input: &[u8]) -> std::io::Result<Finished> {
    let (command, _arguments) = shortened(command)?;
    let _turn = LIMIT.take();
    let _span = trace::span("compile", || {
        let of_ir = command.get_args().any(|word| word == "ir");
        let read = if of_ir { "LLVM IR" } else { "OpenCL C" };
        format!("clang, {read}")
    });
    let mut finished = match server::run(&command, input, time_limit()) {
        Some(finished) => finished,
        None => run_alone(same(&command), input)?,
    };
    if finished.killed {
        finished = run_alone(command, input)?;
        KILLED.fetch_add(finished.killed.into(), Ordering::Relaxed);
    }
    if !finished.success && finished.diagnostics.trim().is_empty() {
        finished.diagnostics = "the compiler failed and did not say why\n".to_owned();
    }
    Ok(finished)
}

/// Returns a command with the same program and arguments.
fn same(command: &Command) -> Command {
    let mut same = Command::new(command.get_program());
    same.args(command.get_args());
    same
}

/// Runs LLVM within `clang` on `input` with the arguments `words` (`server/preload/llvm.rs`).
/// Returns `None` if there is no server, or if it did not report an end; clang itself must be run
/// then.
pub fn run_llvm(clang: &Path, words: &[&str], input: &[u8]) -> Option<Finished> {
    let _turn = LIMIT.take();
    let _span = trace::span("compile", || "LLVM, LLVM IR".to_owned());
    server::work(clang, words, input, time_limit())
}

/// Returns the command with its arguments in a file, if they are long, and the directory of the
/// file.
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
        for &byte in argument.as_encoded_bytes() {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.extend(b"\"\n");
    }
    let mut scratch = Scratch::new()?;
    let path = scratch.write("arguments".as_ref(), &text)?;
    let mut at = std::ffi::OsString::from("@");
    at.push(path);
    let mut short = Command::new(command.get_program());
    short.arg(first).arg(at);
    Ok((short, Some(scratch)))
}

/// Returns the message for a compiler that exceeded the time limit.
pub fn stopped(after: Duration) -> String {
    format!(
        "the compiler was stopped after {} seconds\n",
        after.as_secs()
    )
}

/// The message for a compiler whose output has no end.
pub const TOO_MUCH: &str = "the compiler was stopped, as its output had no end\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the dynamic linker's complaint about a library that it cannot load is removed.
    #[cfg(unix)]
    #[test]
    fn complaints() {
        let text = "a.cl:1: error\nERROR: ld.so: object '/proc/7/fd/9' from LD_PRELOAD cannot be preloaded: ignored.\nend";
        let left = server::without_complaints(text.to_owned());
        assert_eq!(left, "a.cl:1: error\nend");
    }

    /// Checks that long arguments reach the compiler unchanged, with any characters.
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

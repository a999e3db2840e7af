//! Workers: processes that compile LLVM's IR to object files, one after another.
//!
//! A small kernel takes clang 20 ms as a forked job, of which LLVM's passes are less than half: its
//! memory is cold, it initialises for any language, and `-O3` has passes for code that no other
//! compiler has processed. A worker is a process that a server forks once, in which LLVM's C
//! interface is called for each job (`preload/llvm.rs`): 8 ms.
//!
//! A worker runs one job at a time. One that ends, exceeds the time limit or fails is discarded,
//! with whatever state it was in; clang then decides, in a process of its own. Where LLVM is no
//! library that clang is linked against there are none.

use super::{
    break_off, forget, is_usable, job, message, place, server, JobError, ProcessState, LOCK_LIMIT,
};
use crate::compile::clang::process::{self, Finished};
use crate::util::fds;
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The message to a server that starts a worker.
const HIRE: &str = "-pumice-worker";
/// The bytes of input after which a worker is ended, for the memory that it has taken.
const LARGE: usize = 1 << 20;
/// The statuses of jobs: done, and that there is no LLVM.
const DONE: u8 = 0;
const UNABLE: u8 = 2;

struct Worker {
    program: PathBuf,
    owner: u32,
    place: ProcessState,
    /// The socket for its jobs.
    socket: OwnedFd,
}

/// The workers without a job.
static IDLE: Mutex<Vec<Worker>> = Mutex::new(Vec::new());
/// Set if LLVM cannot be called.
static NONE: AtomicBool = AtomicBool::new(false);

/// Runs a job in a worker of the program. Returns `None` if there is none, or it failed.
pub fn work(program: &Path, words: &[&str], input: &[u8], limit: Duration) -> Option<Finished> {
    if !is_usable() || NONE.load(Ordering::Relaxed) {
        return None;
    }
    let words = words.iter().map(OsStr::new);
    let message = message(std::iter::once(program.as_os_str()).chain(words))?;
    // One that has had nothing to do for a while has ended.
    for _ in 0..2 {
        let worker = take(program)?;
        let end = match job(&worker.socket, &message, input, limit) {
            Ok(end) => end,
            Err(JobError::Gone) => continue,
            Err(JobError::Broken) => {
                break_off();
                return None;
            }
        };
        if end.timed_out {
            return Some(Finished {
                success: false,
                stdout: Vec::new(),
                diagnostics: process::stopped(limit),
                killed: false,
            });
        }
        if end.status != Some(DONE) || end.stdout.is_too_much() {
            NONE.fetch_or(end.status == Some(UNABLE), Ordering::Relaxed);
            let diagnostics = end.stderr.into_text();
            crate::log!(
                Info,
                "a worker of {} failed: {diagnostics}",
                program.display()
            );
            return None;
        }
        if input.len() < LARGE {
            IDLE.lock().push(worker);
        }
        return Some(Finished {
            success: true,
            stdout: end.stdout.into_bytes(),
            diagnostics: String::new(),
            killed: false,
        });
    }
    None
}

/// Returns an idle worker, or starts one.
fn take(program: &Path) -> Option<Worker> {
    let (owner, place) = (std::process::id(), place()?);
    let mut idle = IDLE.try_lock_for(LOCK_LIMIT)?;
    idle.retain(|worker| worker.owner == owner && worker.place == place);
    let at = idle.iter().rposition(|worker| worker.program == program);
    if let Some(at) = at {
        return Some(idle.remove(at));
    }
    drop(idle);
    let hired = |socket| Worker {
        program: program.to_owned(),
        owner,
        place,
        socket,
    };
    for _ in 0..2 {
        let server = server(program)?;
        let (ours, theirs) = fds::socket_pair().ok()?;
        let hire = message(std::iter::once(OsStr::new(HIRE)))?;
        match fds::send(server.as_fd(), &hire, [theirs.as_fd(); 4]) {
            Ok(()) => return Some(hired(ours)),
            Err(_) => forget(&server),
        }
    }
    None
}

/// Ends all idle workers.
pub fn unload() {
    if let Some(mut idle) = IDLE.try_lock_for(LOCK_LIMIT) {
        idle.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::clang::native::TRIPLE;
    use crate::compile::clang::toolchain;
    use std::os::fd::AsRawFd;

    const LIMIT: Duration = Duration::from_secs(20);
    const TEXT: &str = "define i32 @answer() {\n  ret i32 42\n}\n";

    /// The name of a program that no other test has workers of: a link to clang.
    struct Clang(PathBuf);

    impl Clang {
        fn new(name: &str) -> Option<Self> {
            let Some(toolchain) = toolchain::get() else {
                crate::left_out::left_out("no clang");
                return None;
            };
            let link = format!("pumice-{name}-{}", std::process::id());
            let link = std::env::temp_dir().join(link);
            std::os::unix::fs::symlink(&toolchain.clang, &link).unwrap();
            let clang = Self(link);
            // The first job of a program is no server's.
            assert!(clang.work("verify", TEXT, LIMIT).is_none());
            Some(clang)
        }

        fn work(&self, passes: &str, text: &str, limit: Duration) -> Option<Finished> {
            let words = [TRIPLE, "generic", "", "no-such-pass", passes];
            work(&self.0, &words, text.as_bytes(), limit)
        }

        fn is_right(&self) -> bool {
            let finished = self.work("instcombine", TEXT, LIMIT);
            finished.is_some_and(|f| f.success && f.stdout.starts_with(b"\x7fELF"))
        }

        /// Returns the sockets of its idle workers.
        fn idle(&self) -> Vec<i32> {
            let idle = IDLE.lock();
            let own = idle.iter().filter(|worker| worker.program == self.0);
            own.map(|worker| worker.socket.as_raw_fd()).collect()
        }
    }

    impl Drop for Clang {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Checks that one worker runs jobs one after another, with the same bytes each time.
    #[test]
    fn jobs_one_after_another() {
        let Some(clang) = Clang::new("worker") else {
            return;
        };
        assert!(clang.is_right());
        let first = clang.idle();
        assert_eq!(first.len(), 1);
        let object = || clang.work("instcombine", TEXT, LIMIT).unwrap().stdout;
        assert_eq!(object(), object());
        assert_eq!(clang.idle(), first);
    }

    /// Checks that invalid IR and unknown passes are left to clang, and that the next job finds
    /// another worker.
    #[test]
    fn jobs_that_fail() {
        let Some(clang) = Clang::new("failing") else {
            return;
        };
        for (passes, text) in [
            ("instcombine", "define nonsense"),
            ("instcombine", ""),
            ("no-pass-either", TEXT),
        ] {
            let empty = text.is_empty();
            assert_eq!(clang.work(passes, text, LIMIT).is_some(), empty, "{text}");
            assert_eq!(clang.idle().is_empty(), !empty);
            assert!(clang.is_right());
        }
    }

    /// Checks that a job which exceeds the time limit fails, and its worker is ended.
    #[test]
    fn jobs_that_take_too_long() {
        let Some(clang) = Clang::new("slow") else {
            return;
        };
        assert!(clang.is_right());
        let mut text = String::from("define i32 @f(i32 %v0) {\n");
        for n in 0..60_000 {
            text += &format!("  %v{} = mul i32 %v{n}, %v{n}\n", n + 1);
        }
        text += "  ret i32 %v60000\n}\n";
        let finished = clang.work("instcombine", &text, Duration::from_millis(40));
        let finished = finished.expect("an end");
        assert!(!finished.success && finished.diagnostics.contains("was stopped"));
        assert!(clang.idle().is_empty());
        assert!(clang.is_right());
    }

    /// Checks that a worker that has ended is replaced.
    #[test]
    fn workers_that_have_ended() {
        let Some(clang) = Clang::new("ended") else {
            return;
        };
        assert!(clang.is_right());
        let (ours, theirs) = fds::socket_pair().unwrap();
        drop(theirs);
        for worker in IDLE.lock().iter_mut() {
            if worker.program == clang.0 {
                worker.socket = ours.try_clone().unwrap();
            }
        }
        assert!(clang.is_right());
    }
}

//! Checks the output of kernels: standard output goes through a pipe to a thread that counts lines.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeWriter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

static EXPECTED: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);

/// A launch will print so many lines.
pub fn expect(lines: usize) {
    EXPECTED.fetch_add(lines as u64, Ordering::SeqCst);
}

/// Puts the pipe in the place of standard output, which it returns.
pub fn capture() -> File {
    let (read, write) = std::io::pipe().expect("a pipe");
    let kept = replace(write);
    std::thread::spawn(move || {
        for line in BufReader::new(read).split(b'\n') {
            let line = line.expect("the pipe");
            match line.windows(14).any(|part| part == b" of stress in ") {
                true => SEEN.fetch_add(1, Ordering::SeqCst),
                false => WRONG.fetch_add(1, Ordering::SeqCst),
            };
        }
    });
    kept
}

/// Replaces standard output. Returns the former one.
#[cfg(unix)]
fn replace(write: PipeWriter) -> File {
    use std::os::fd::{AsRawFd, FromRawFd};
    // SAFETY: file descriptors of this process, the new one owned once.
    unsafe {
        let kept = File::from_raw_fd(libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3));
        assert_eq!(libc::dup2(write.as_raw_fd(), 1), 1, "standard output");
        kept
    }
}

/// Replaces standard output. Returns the former one.
#[cfg(windows)]
fn replace(write: PipeWriter) -> File {
    use std::os::windows::io::{FromRawHandle, IntoRawHandle, RawHandle};
    /// STD_OUTPUT_HANDLE
    const OUTPUT: u32 = -11i32 as u32;
    #[link(name = "kernel32")]
    extern "system" {
        fn GetStdHandle(which: u32) -> RawHandle;
        fn SetStdHandle(which: u32, handle: RawHandle) -> i32;
    }
    // SAFETY: the old handle is owned by nobody any more, the new one by the process from here on.
    unsafe {
        let kept = File::from_raw_handle(GetStdHandle(OUTPUT));
        assert_ne!(SetStdHandle(OUTPUT, write.into_raw_handle()), 0, "output");
        kept
    }
}

/// Whether all lines came, and nothing else, once commands are over; waits for what is in the pipe.
pub fn settled() -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    let expected = EXPECTED.load(Ordering::SeqCst);
    while SEEN.load(Ordering::SeqCst) < expected && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (seen, wrong) = (SEEN.load(Ordering::SeqCst), WRONG.load(Ordering::SeqCst));
    if (seen, wrong) != (expected, 0) {
        eprintln!("stress: {seen} lines printed, not {expected}, and {wrong} others");
    }
    (seen, wrong) == (expected, 0)
}

/// Lines that have come.
pub fn lines() -> u64 {
    SEEN.load(Ordering::SeqCst)
}

//! Checks the output of kernels: standard output goes through a pipe to a thread that counts lines.

use pumice_tests::process::replace_output;
use std::fs::File;
use std::io::{BufRead, BufReader};
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
    let kept = replace_output(write);
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

//! Late hosts, and the counting of all that was late.

use crate::schedule::{self, Site};
use std::io::Write;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How many there were, and how many microseconds they took together.
struct Count {
    times: AtomicU64,
    us: AtomicU64,
}

impl Count {
    const fn new() -> Self {
        Self {
            times: AtomicU64::new(0),
            us: AtomicU64::new(0),
        }
    }

    fn add(&self, delay: Duration) {
        if delay > Duration::ZERO {
            self.times.fetch_add(1, Relaxed);
            self.us.fetch_add(delay.as_micros() as u64, Relaxed);
        }
    }

    fn text(&self) -> String {
        let (times, us) = (self.times.load(Relaxed), self.us.load(Relaxed));
        format!("{times} ({} ms)", us / 1000)
    }
}

static SUBMISSIONS: AtomicU64 = AtomicU64::new(0);
static HELD: Count = Count::new();
static LATE: Count = Count::new();
static SLEPT: Count = Count::new();

/// The process that reports at its end. A forked child reports nothing.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Makes the calling thread sleep, or not.
pub fn sleep(site: Site) {
    let delay = schedule::get().delay(site);
    if delay > Duration::ZERO {
        SLEPT.add(delay);
        std::thread::sleep(delay);
    }
}

/// A submission that might be delayed.
pub fn submission() {
    SUBMISSIONS.fetch_add(1, Relaxed);
}

/// A submission was delayed.
pub fn added(hold: Duration, late: Duration) {
    HELD.add(hold);
    LATE.add(late);
}

/// Prints the counts when the process ends or the layer is unloaded, if `PUMICE_DELAYS_LOG` is set.
pub fn print_at_exit() {
    if std::env::var_os("PUMICE_DELAYS_LOG").is_none() {
        return;
    }
    if PROCESS.swap(std::process::id(), Relaxed) == 0 {
        // SAFETY: the function is this library's, whose handlers run before it is unloaded.
        unsafe { libc::atexit(print) };
    }
}

extern "C" fn print() {
    if PROCESS.load(Relaxed) != std::process::id() {
        return;
    }
    let Some(place) = std::env::var_os("PUMICE_DELAYS_LOG") else {
        return;
    };
    let line = format!(
        "delays: {} submissions, {} held, {} signalled late, {} sleeps of the host\n",
        SUBMISSIONS.load(Relaxed),
        HELD.text(),
        LATE.text(),
        SLEPT.text(),
    );
    if place == "1" {
        eprint!("{line}");
        return;
    }
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&place);
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("{}: {error}", place.display());
    }
}

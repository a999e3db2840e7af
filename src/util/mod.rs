//! Leaf utilities: options from the environment, the log, files and their descriptors, pages of memory, copies between threads, locks in order,
//! panics of tasks, calls that are not cancelled, forks, the end of the process, shared libraries, the timeline of a process.

pub mod address;
pub mod config;
pub mod copy;
#[cfg(unix)]
pub mod fds;
pub mod file_state;
pub mod files;
pub mod forked;
pub mod guard;
pub mod leaving;
pub mod library;
pub mod lock;
pub mod log;
pub mod pages;
pub mod ranges;
#[cfg(windows)]
pub mod registry;
pub mod sync;
#[cfg(feature = "loom")]
mod sync_modelled;
pub mod trace;
pub mod uncancelled;
#[cfg(windows)]
pub mod win32;

/// Processors that this process may use, asked once.
pub fn cores() -> usize {
    static CORES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// There are cores to spare for helpers and for waiting actively.
pub fn many_cores() -> bool {
    cores() >= 4
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    #[cfg(unix)]
    {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is a valid place for the result.
        if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) } == 0 {
            return time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        }
    }
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START
        .get_or_init(std::time::Instant::now)
        .elapsed()
        .as_nanos() as u64
        + 1
}

//! Leaf utilities: options from the environment, the log, files and their descriptors, pages of memory, copies between threads, locks in order,
//! places of threads that sleep, panics of tasks, calls that are not cancelled, the floating-point mode, threads and their processors, children (Windows), forks, the end of the
//! process, shared libraries, the timeline of a process.

pub mod address;
pub mod affinity;
pub mod blocking;
#[cfg(windows)]
pub mod child;
pub mod config;
pub mod copy;
#[cfg(unix)]
pub mod fds;
pub mod file_state;
pub mod files;
pub mod float_mode;
pub mod forked;
pub mod guard;
pub mod library;
pub mod lock;
pub mod log;
pub mod pages;
pub mod place;
pub mod ranges;
#[cfg(windows)]
pub mod registry;
pub mod shutdown;
pub mod sync;
#[cfg(feature = "loom")]
mod sync_modelled;
pub mod thread;
pub mod trace;
pub mod uncancelled;
#[cfg(windows)]
pub mod win32;

/// Returns the number of threads that this process can run at the same time: what its affinity and
/// its control group leave. Asked once, in a thread of ours: the system answers for the calling
/// thread alone, which may be kept to one processor.
pub fn cores() -> usize {
    static CORES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    #[allow(clippy::disallowed_methods, reason = "the one place")]
    let here = || std::thread::available_parallelism().map_or(1, |n| n.get());
    *CORES.get_or_init(|| {
        std::thread::scope(|scope| {
            let thread = thread::spawn_scoped(scope, "pumice-cores", here).ok()?;
            thread.join().ok()
        })
        .unwrap_or_else(here)
    })
}

/// Returns true if there are cores to spare for helpers and for busy waiting.
pub fn many_cores() -> bool {
    cores() >= 4
}

/// Returns the host's clock in nanoseconds: CLOCK_MONOTONIC, on Windows the performance counter.
pub fn monotonic_ns() -> u64 {
    #[cfg(windows)]
    {
        let mut ticks = 0;
        // SAFETY: `ticks` is a valid place for the result.
        if unsafe { win32::QueryPerformanceCounter(&mut ticks) } != 0 {
            return clock_ns(ticks as u64);
        }
    }
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

/// Converts a reading of that clock in the system's unit, as drivers report it, to nanoseconds.
pub fn clock_ns(reading: u64) -> u64 {
    #[cfg(windows)]
    {
        static FREQUENCY: std::sync::OnceLock<u128> = std::sync::OnceLock::new();
        let frequency = FREQUENCY.get_or_init(|| {
            let mut ticks = 0;
            // SAFETY: a valid place for the result, which never changes.
            unsafe { win32::QueryPerformanceFrequency(&mut ticks) };
            u128::try_from(ticks).unwrap_or(1).max(1)
        });
        (u128::from(reading) * 1_000_000_000 / frequency) as u64
    }
    #[cfg(not(windows))]
    reading
}

//! The primitives of hand-made synchronisation: atomics, locks, conditions, threads, pauses.
//!
//! With the feature `loom` these are loom's, and the `models` of the modules that use them run the
//! real code with every order of its steps (`ci/test loom`); a library built so is good for nothing
//! else. Without it they are those of the standard library.

#[cfg(not(feature = "loom"))]
pub use plain::*;

#[cfg(feature = "loom")]
pub use super::sync_modelled::*;

#[cfg(not(feature = "loom"))]
mod plain {
    pub use crate::util::lock::{Mutex, MutexGuard, RwLock};
    pub use crate::util::thread::spawn;
    pub use parking_lot::Condvar;
    pub use std::hint::spin_loop;
    use std::sync::atomic::Ordering;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
    pub use std::thread::yield_now;

    /// Raises a number to this value, unless it is above it: `fetch_max`, as the loop that x86 makes of it. The thread sanitizer does not
    /// see LLVM's own operation, and takes what it puts in order for races.
    pub fn raise(number: &AtomicU64, value: u64, order: Ordering) {
        let mut now = number.load(Ordering::Relaxed);
        while let Err(other) =
            number.compare_exchange_weak(now, now.max(value), order, Ordering::Relaxed)
        {
            now = other;
        }
    }

    /// Lowers a number to this value, unless it is below it.
    pub fn lower(number: &AtomicU64, value: u64, order: Ordering) {
        let mut now = number.load(Ordering::Relaxed);
        while let Err(other) =
            number.compare_exchange_weak(now, now.min(value), order, Ordering::Relaxed)
        {
            now = other;
        }
    }

    /// Returns the number of polls before a thread sleeps.
    pub const fn looks(count: u32) -> u32 {
        count
    }
}

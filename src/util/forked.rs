//! Forked children. A child has the memory of its parent and none of its threads: what threads of ours had under way is never
//! done, and what locks they held are never let go. Where that can be, the child gets an error from every call; where the
//! parent had no such thread, and no other thread was in a call, the child goes on by itself.
//!
//! Children that come about without the handlers of `fork` (`vfork`, `clone`) are the application's own concern; what they
//! may do before `exec` leads to no call of OpenCL.

use std::sync::atomic::{AtomicBool, Ordering};

/// There are threads that commands need.
static THREADS: AtomicBool = AtomicBool::new(false);
/// This process is a child that cannot use the driver.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Records that commands need a thread of this process, for which a forked child would wait for
/// ever.
pub fn needs_threads() {
    if !THREADS.load(Ordering::Relaxed) {
        THREADS.store(true, Ordering::SeqCst);
    }
}

/// Returns true if this process is the child of one whose threads it would need.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Notices children from now on.
#[cfg(unix)]
pub(super) fn watch() {
    use std::sync::Once;
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler lives as long as the library, from which it is taken when that goes. That there is no room
        // for it leaves things as they are without it.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Does nothing: there are no forked children.
#[cfg(not(unix))]
pub(super) fn watch() {}

/// Marks a new child as forked. Its only thread is this one, so it takes no locks and allocates no
/// memory.
#[cfg(unix)]
extern "C" fn in_child() {
    if THREADS.load(Ordering::SeqCst) || super::shutdown::others_are_in_calls() {
        FORKED.store(true, Ordering::SeqCst);
    }
}

/// Writes once to standard error why calls fail. The log cannot be used: a thread of the parent may
/// have held its lock.
#[cold]
pub fn say() {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if REPORTED.swap(true, Ordering::Relaxed) || super::log::level() < super::log::Level::Error {
        return;
    }
    let text = b"pumice: error: this process was forked from one that was using OpenCL, and cannot use it itself: call exec, \
        or fork before the first command\n";
    // SAFETY: that many bytes. Whether somebody reads them is no matter.
    #[cfg(unix)]
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
    }
    #[cfg(not(unix))]
    let _ = text;
}

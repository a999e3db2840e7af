//! Threads of the library. They are made here and nowhere else (`clippy.toml` refuses other ways), so that all of them
//! leave the process to the application:
//!
//! - **Signals.** They block all that are sent to the process, so that these reach threads of the application, which may
//!   wait for them (`sigwait`, `signalfd`). Those of a fault of the thread itself stay open: a native kernel may have a
//!   handler for them.
//! - **Affinity.** They run where the process may ([`affinity::of_process`]), not where the thread that first needed them
//!   was kept.
//! - **Stack.** [`STACK`], as the C library gives its threads: native kernels and callbacks run on it.
//! - **Floating-point mode.** The standard one ([`FloatMode`]).

use super::affinity;
use super::float_mode::FloatMode;
use std::io::Result;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Bytes of the stack of each thread.
const STACK: usize = 8 << 20;

/// Starts a detached thread.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let _blocked = signals::Blocked::new();
    let work = move || begun(work);
    #[allow(clippy::disallowed_methods, reason = "the one place")]
    builder(name).spawn(work).map(drop)
}

/// Starts a thread within a scope.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let _blocked = signals::Blocked::new();
    let work = move || begun(work);
    #[allow(clippy::disallowed_methods, reason = "the one place")]
    builder(name).spawn_scoped(scope, work)
}

fn builder(name: &str) -> Builder {
    Builder::new().name(name.into()).stack_size(STACK)
}

/// Runs the work of a thread, in that thread.
fn begun<T>(work: impl FnOnce() -> T) -> T {
    FloatMode::stay_standard();
    // What the system does not allow is left as it is.
    let _ = affinity::stay_on(affinity::of_process());
    work()
}

#[cfg(unix)]
mod signals {
    use std::mem::MaybeUninit;
    use std::ptr::null_mut;

    /// Signals that a thread raises by what it does. Blocked, they end the process whatever handler it has.
    const OWN_FAULTS: [libc::c_int; 6] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGSYS,
    ];

    /// Blocks all other signals in this thread while it lives. Threads that are made meanwhile have them blocked for good.
    pub struct Blocked(MaybeUninit<libc::sigset_t>);

    impl Blocked {
        pub fn new() -> Self {
            let mut before = MaybeUninit::uninit();
            let mut all = MaybeUninit::uninit();
            // SAFETY: `sigfillset` makes the set whole before the others use it; the kernel writes the set of before.
            unsafe {
                libc::sigfillset(all.as_mut_ptr());
                for signal in OWN_FAULTS {
                    libc::sigdelset(all.as_mut_ptr(), signal);
                }
                libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            }
            Self(before)
        }
    }

    impl Drop for Blocked {
        fn drop(&mut self) {
            // SAFETY: the set that the thread had. The call fails for nothing but a wrong number of what to do.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, self.0.as_ptr(), null_mut()) };
        }
    }
}

/// There are none that are sent to a process.
#[cfg(not(unix))]
mod signals {
    pub struct Blocked;

    impl Blocked {
        pub fn new() -> Self {
            Self
        }
    }
}

//! Threads that end: runs a part of a program in a new thread, or while one ends.

use crate::program::Thread;
use std::cell::RefCell;
use std::ffi::c_void;

/// A part of a program, for another thread while this one waits for it.
struct Part<'a>(&'a mut dyn FnMut());

// SAFETY: handles of OpenCL may be used from every thread, and this one waits.
unsafe impl Send for Part<'_> {}

/// The rest of the work of a thread that ends: a part that lives until the thread has ended.
struct Last(Option<Part<'static>>);

impl Drop for Last {
    fn drop(&mut self) {
        if let Some(part) = self.0.take() {
            (part.0)();
        }
    }
}

thread_local! {
    static LAST: RefCell<Last> = const { RefCell::new(Last(None)) };
}

#[cfg(unix)]
extern "C" fn at_end(value: *mut c_void) {
    // SAFETY: a box that was made for this, and is dropped once.
    drop(unsafe { Box::from_raw(value.cast::<Last>()) });
}

/// A key whose destructor runs what is left in it.
#[cfg(unix)]
fn key() -> libc::pthread_key_t {
    static KEY: std::sync::OnceLock<libc::pthread_key_t> = std::sync::OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a place for the key; the destructor takes what is set below.
        let code = unsafe { libc::pthread_key_create(&mut key, Some(at_end)) };
        assert_eq!(code, 0, "a key");
        key
    })
}

/// Leaves a part to the destructor of a key, or of a thread-local variable.
fn leave(how: Thread, last: Last) {
    match how {
        #[cfg(unix)]
        Thread::Key => {
            let value: *mut c_void = Box::into_raw(Box::new(last)).cast();
            // SAFETY: a key of this process.
            let code = unsafe { libc::pthread_setspecific(key(), value) };
            assert_eq!(code, 0, "a value of a key");
        }
        _ => LAST.with_borrow_mut(|own| *own = last),
    }
}

/// Runs a part of a program, and returns when it is over and its thread has ended. `first` is run in the thread before that:
/// before (`true`) or after it is said what the thread runs when it ends.
pub fn run(how: Thread, before: bool, first: &mut dyn FnMut(), part: &mut dyn FnMut()) {
    let (first, part) = (Part(first), Part(part));
    let thread = move || {
        let (first, part) = (first, part);
        if how == Thread::Fresh {
            return (part.0)();
        }
        if before {
            (first.0)();
        }
        // SAFETY: the part lives longer than this thread, whose end is waited for.
        let part = unsafe { std::mem::transmute::<Part<'_>, Part<'static>>(part) };
        leave(how, Last(Some(part)));
        if !before {
            (first.0)();
        }
    };
    // Joined: that waits for destructors, the end of the scope alone does not.
    let joined = std::thread::scope(|scope| scope.spawn(thread).join());
    if let Err(panic) = joined {
        std::panic::resume_unwind(panic);
    }
}

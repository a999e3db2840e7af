//! Calls that are done whole: a thread that is cancelled (`pthread_cancel`) inside one would be unwound through our frames, with
//! locks held and objects half made, which Rust ends with the process. So its cancellation waits until the call returns.

#[cfg(target_os = "linux")]
use std::ffi::c_int;
use std::marker::PhantomData;

#[cfg(target_os = "linux")]
extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// PTHREAD_CANCEL_DISABLE of glibc and musl.
#[cfg(target_os = "linux")]
const DISABLE: c_int = 1;

/// This thread is not cancelled while it lives.
pub struct Uncancelled {
    #[cfg(target_os = "linux")]
    before: c_int,
    /// Keeps it on its thread.
    _thread: PhantomData<*const ()>,
}

impl Uncancelled {
    /// Disables the cancellation of the calling thread until the result is dropped.
    #[inline]
    pub fn new() -> Self {
        #[cfg(target_os = "linux")]
        let mut before = 0;
        // SAFETY: a place for the earlier state.
        #[cfg(target_os = "linux")]
        unsafe {
            pthread_setcancelstate(DISABLE, &mut before);
        }
        Self {
            #[cfg(target_os = "linux")]
            before,
            _thread: PhantomData,
        }
    }
}

impl Default for Uncancelled {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Uncancelled {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the old state is not needed.
        #[cfg(target_os = "linux")]
        unsafe {
            pthread_setcancelstate(self.before, std::ptr::null_mut());
        }
    }
}

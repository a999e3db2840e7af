//! The frame of every entry point: the panic guard, the trace line, the conversion of errors, the
//! floating-point mode.

use pumice_runtime::cl::{cl_int, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, CL_SUCCESS};
use pumice_runtime::error::{ClError, ClResult};
use pumice_runtime::util::float_mode::FloatMode;
use pumice_runtime::util::forked;
use pumice_runtime::util::log::{level, write, Level};
use pumice_runtime::util::shutdown::Call;
use pumice_runtime::util::uncancelled::Uncancelled;
use pumice_runtime::util::{monotonic_ns, trace};
use std::ffi::c_void;
use std::fmt::{Debug, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Collects the arguments of a traced call.
pub struct Args<'a> {
    text: &'a mut String,
}

impl Args<'_> {
    /// Appends an argument.
    pub fn arg(&mut self, name: &str, value: &dyn Debug) -> &mut Self {
        if !self.text.is_empty() {
            self.text.push_str(", ");
        }
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{name}={value:?}");
        self
    }

    /// No more arguments.
    pub fn end(&mut self) {}
}

/// Runs the body of a function that returns a code. `whole`: it [is long](is_long).
pub fn status(
    name: &'static str,
    whole: bool,
    args: &dyn Fn(&mut Args<'_>),
    body: impl FnOnce() -> ClResult,
) -> cl_int {
    let Some(_call) = Call::enter() else {
        return refused(name);
    };
    let _own = whole.then(|| (Uncancelled::new(), FloatMode::standard()));
    match guarded(name, args, body, |()| String::new()) {
        Ok(()) => CL_SUCCESS,
        Err(error) => error.code,
    }
}

/// The result of a function that creates an object.
pub trait Created {
    /// Returns the pointer, and whether all went well.
    fn split(self) -> (*mut c_void, ClResult);
}

impl Created for *mut c_void {
    fn split(self) -> (*mut c_void, ClResult) {
        (self, Ok(()))
    }
}

/// An object that is returned with an error.
impl Created for (*mut c_void, ClResult) {
    fn split(self) -> (*mut c_void, ClResult) {
        self
    }
}

/// Runs the body of a function that returns a pointer: null with the code when it fails.
pub fn value<T: Created>(
    name: &'static str,
    args: &dyn Fn(&mut Args<'_>),
    body: impl FnOnce() -> ClResult<T>,
) -> (*mut c_void, cl_int) {
    let Some(_call) = Call::enter() else {
        return (std::ptr::null_mut(), refused(name));
    };
    let _own = (Uncancelled::new(), FloatMode::standard());
    let mut pointer = std::ptr::null_mut();
    let place = &mut pointer;
    let body = move || {
        let (made, outcome) = body()?.split();
        *place = made;
        outcome.map(|()| made)
    };
    match guarded(name, args, body, |made| format!(" {made:?}")) {
        Ok(_) => (pointer, CL_SUCCESS),
        Err(error) => (pointer, error.code),
    }
}

/// Returns whether a call may come to where a thread can be cancelled, or computes with floats.
/// Arguments and references are set without, and often.
pub const fn is_long(name: &str) -> bool {
    !begins_with(name, b"clSetKernelArg") && !begins_with(name, b"clRetain")
}

const fn begins_with(name: &str, begin: &[u8]) -> bool {
    let name = name.as_bytes();
    let mut at = 0;
    while at < begin.len() {
        if at >= name.len() || name[at] != begin[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Returns the result of calls once the process has begun to end and the drivers are gone, or in a
/// forked child. Releasing and waiting succeed at the end, because destructors do them and nothing
/// is left to do; all else fails. In a child, which continues, waiting fails too.
#[cold]
fn refused(name: &str) -> cl_int {
    let forked = forked::is_forked();
    let waits = name == "clFinish" || name == "clFlush";
    if name.starts_with("clRelease") || (waits && !forked) {
        return CL_SUCCESS;
    }
    if forked {
        forked::say();
    }
    CL_OUT_OF_RESOURCES
}

fn guarded<T>(
    name: &'static str,
    args: &dyn Fn(&mut Args<'_>),
    body: impl FnOnce() -> ClResult<T>,
    show: impl FnOnce(&T) -> String,
) -> ClResult<T> {
    let start = (level() >= Level::Trace || trace::on()).then(monotonic_ns);
    // What a body leaves half done when it panics is behind locks that do not poison, and the application learns
    // that the call failed.
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| Err(panicked(name)));
    if let Some(start) = start {
        let outcome = match &result {
            Ok(value) => format!("ok{}", show(value)),
            Err(error) => error.to_string(),
        };
        note(name, args, &outcome, start);
    } else if let Err(error) = &result {
        pumice_runtime::log!(Debug, "{name}: {error}");
    }
    result
}

#[cold]
fn panicked(name: &str) -> ClError {
    pumice_runtime::log!(Error, "{name}: internal error (a panic); please report it");
    ClError::new(CL_OUT_OF_HOST_MEMORY, "internal error")
}

/// Writes a call to the log and the timeline, as far as they are wanted.
#[cold]
fn note(name: &str, args: &dyn Fn(&mut Args<'_>), outcome: &str, start: u64) {
    let end = monotonic_ns();
    let mut text = String::new();
    args(&mut Args { text: &mut text });
    if level() >= Level::Trace {
        let microseconds = end.saturating_sub(start) as f64 / 1e3;
        write(
            Level::Trace,
            format_args!("{name}({text}) = {outcome} [{microseconds:.1} us]"),
        );
    }
    if trace::on() {
        let details = [("arguments", text.into()), ("result", outcome.into())];
        trace::slice(trace::this_thread(), "call", name, (start, end), &details);
        // Where a program waits or releases, completed commands can be reported at once.
        let waits = [
            "clFinish",
            "clWait",
            "clRelease",
            "clEnqueueRead",
            "clEnqueueMap",
        ];
        if waits.iter().any(|first| name.starts_with(first)) {
            trace::collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_runtime::cl::CL_INVALID_VALUE;
    use pumice_runtime::error::err;

    #[test]
    fn a_panic_is_an_error_code() {
        let code = status("clTest", true, &|_| {}, || panic!("as the test wants"));
        assert_eq!(code, CL_OUT_OF_HOST_MEMORY);
        let (pointer, code) = value("clTest", &|_| {}, || {
            err::<*mut c_void>(CL_INVALID_VALUE, "no")
        });
        assert!(pointer.is_null());
        assert_eq!(code, CL_INVALID_VALUE);
    }
}

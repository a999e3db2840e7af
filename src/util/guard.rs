//! Turns panics in the runtime's threads into failures of the one task.

use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs `work`. Returns false if it panicked, which is a defect of Pumice and makes the task fail.
///
/// What a task leaves half done is its own, or behind locks that do not poison.
pub fn guarded(what: &str, work: impl FnOnce()) -> bool {
    let done = catch_unwind(AssertUnwindSafe(work)).is_ok();
    if !done {
        crate::log!(Error, "{what}: internal error (a panic); please report it");
    }
    done
}

//! Calls of the C library that fail: threads, memory, files, pipes, processes.
//!
//! A case is `CALL:NUMBER:ERROR` for one call, `CALL:NUMBER+:ERROR` for all from that on, `SITUATION:NUMBER+` for all calls that
//! fail together, from the NUMBERth of them on ([`calls`]). Only the library's own calls count and fail ([`patch`]). The first
//! run begins with an empty cache, so it compiles; the fault, however long it lasts in that, is over with it.
//! The second run must be without errors, with no more descriptors and threads than in a process without a fault, and with no
//! temporary directory left.

mod calls;
mod patch;
mod state;

use crate::process::{self, Output, Watch};
use crate::scenario;
use crate::{Case, Faults};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The variable with the fault of a child.
const FAULT: &str = "PUMICE_FAULTS_HOST";
/// The last call of a function that is had to fail.
const MOST: u64 = 60;

/// The case of this process, if it is such a child.
pub fn job() -> Option<String> {
    std::env::var(FAULT).ok()
}

/// The child's side.
pub struct Calls;

impl Calls {
    /// From now on the calls of the library are counted, and fail as the case says.
    pub fn begin(case: &str) -> Self {
        let path = pumice_tests::library_path();
        // SAFETY: the library's initialisers are its own; it stays loaded.
        let library = unsafe { libloading::Library::new(&path) };
        std::mem::forget(library.expect("the library"));
        let count = patch::replace(&path, calls::instead_of);
        assert!(count > 20, "only {count} calls of the library were found");
        state::begin(case);
        Self
    }
}

/// How many entries a directory has.
fn entries(path: &str) -> usize {
    std::fs::read_dir(path).map_or(0, Iterator::count)
}

/// The threads of this process that should not grow in number: the CPU device makes its own, one a processor, when it finds
/// work for them, which is a matter of time.
fn threads() -> usize {
    let of_the_device = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| name.trim_end() == "pumice-cpu")
        .count();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    entries("/proc/self/task").saturating_sub(of_the_device.min(processors))
}

impl Watch for Calls {
    fn parts(&self) -> &'static [scenario::Part] {
        &scenario::PROGRAMS
    }

    fn report(&self) -> Vec<String> {
        let mut lines = state::report();
        lines.push(format!("living descriptors {}", entries("/proc/self/fd")));
        lines.push(format!("living threads {}", threads()));
        let temporary = std::env::temp_dir();
        let temporary = entries(&temporary.display().to_string());
        lines.push(format!("living temporary files {temporary}"));
        lines
    }

    fn between(&self) {
        state::end();
    }
}

/// The parent's side: where children have their caches and temporary files.
pub struct Host {
    place: PathBuf,
    next: AtomicU64,
}

impl Host {
    /// Below a directory.
    pub fn new(place: &Path) -> Self {
        Self {
            place: place.to_owned(),
            next: AtomicU64::new(0),
        }
    }
}

impl Faults for Host {
    fn run(&self, case: &str, usual: &str, patience: u64) -> Output {
        let number = self.next.fetch_add(1, Relaxed);
        let place = self.place.join(number.to_string());
        let (cache, temporary) = (place.join("cache"), place.join("temporary"));
        std::fs::create_dir_all(&temporary).expect("a directory");
        let mut command = process::command(usual);
        command
            .env(FAULT, case)
            .env("PUMICE_CACHE_DIR", &cache)
            .env("TMPDIR", &temporary);
        let output = process::run(command, patience);
        let _ = std::fs::remove_dir_all(place);
        output
    }

    fn most(&self) -> u64 {
        MOST
    }

    fn came(&self, _: &Case, output: &Output) -> bool {
        output.after("first failed").next().is_some()
    }

    fn judge(&self, case: &Case, output: &Output, without: &Output) -> Vec<String> {
        let mut wrong = output.problems();
        if output.end.is_some() {
            return wrong;
        }
        // Which devices there are is found out once in a process, by the OpenCL loader as well.
        let none = |error: &str| error == "clGetDeviceIDs CL_DEVICE_NOT_FOUND";
        if !output.after("first error ").any(none) {
            wrong.extend(output.late_errors());
        }
        let mut left = output.leaked(without);
        // What cannot be removed stays.
        if case.name.starts_with("unlink") || case.name == "read-only" {
            left.retain(|text| !text.contains("temporary"));
        }
        wrong.extend(left);
        wrong
    }
}

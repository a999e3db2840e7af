//! Tests in processes of their own: this test executable again, which runs one test and nothing else.
//!
//! A test that is the child of others asks [`job`] what it is to do, and does nothing where it is told nothing.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The environment variable with what the child is to do.
const JOB: &str = "PUMICE_TESTS_CHILD";
/// A child that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// What this process is to do as a child.
pub fn job() -> Option<String> {
    std::env::var(JOB).ok()
}

/// Runs a test, by its full name, in a child that is told to do a job. Kills a child that hangs, and fails then.
fn child<V: AsRef<Path>>(test: &str, job: &str, variables: &[(&str, V)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this executable"));
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(JOB, job)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, value) in variables {
        command.env(name, value.as_ref());
    }
    let running = command.spawn().expect("the child runs");
    let id = running.id();
    // The pipes are emptied while the child runs.
    let (done, waiting) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(running.wait_with_output()));
    match waiting.recv_timeout(PATIENCE) {
        Ok(output) => output.expect("its output"),
        Err(_) => {
            // SAFETY: a child of this process that has not been waited for.
            unsafe { libc::kill(id as i32, libc::SIGKILL) };
            panic!("the child {test} hangs in {job}");
        }
    }
}

/// The same of a child that has to succeed.
pub fn good_child<V: AsRef<Path>>(test: &str, job: &str, variables: &[(&str, V)]) -> Output {
    let started = Instant::now();
    let output = child(test, job, variables);
    assert!(
        output.status.success(),
        "{test}, {job}: {} after {:.1} s: {}{}",
        output.status,
        started.elapsed().as_secs_f64(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

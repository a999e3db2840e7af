//! Tests in processes of their own: this test executable again, which runs one test and nothing else.
//!
//! A test that is the child of others asks [`job`] what it is to do, and does nothing where there is no job.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The environment variable with what the child is to do.
const JOB: &str = "PUMICE_TESTS_CHILD";
/// A child that takes longer hangs. Under Wine compilers take a second to start.
const PATIENCE: Duration = Duration::from_secs(if cfg!(windows) { 400 } else { 120 });

/// Returns the job of this process as a child.
pub fn job() -> Option<String> {
    std::env::var(JOB).ok()
}

/// Runs a test, by its full name, in a child that does a job. Kills a child that hangs, and fails then.
fn child<V: AsRef<Path>>(test: &str, job: &str, variables: &[(&str, V)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this executable"));
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(JOB, job);
    for (name, value) in variables {
        command.env(name, value.as_ref());
    }
    finished(&mut command, PATIENCE).unwrap_or_else(|| panic!("the child {test} hangs in {job}"))
}

/// Runs a command, which is given no input, to its end. None: it took longer than so long, and was killed.
pub fn finished(command: &mut Command, patience: Duration) -> Option<Output> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = command.spawn().expect("the child runs");
    // The pipes are emptied while the child runs.
    let (stdout, stderr) = (running.stdout.take(), running.stderr.take());
    let (stdout, stderr) = (read_all(stdout), read_all(stderr));
    let end = Instant::now() + patience;
    let status = loop {
        if let Some(status) = running.try_wait().expect("the child's status") {
            break status;
        }
        if Instant::now() > end {
            let _ = running.kill();
            let _ = running.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    Some(Output {
        status,
        stdout: stdout.join().expect("its output"),
        stderr: stderr.join().expect("its output"),
    })
}

/// Runs a test, by its full name, in a process of its own, where no other test takes memory or opens files meanwhile. Returns
/// whether this is that process; elsewhere the test has then succeeded.
pub fn is_alone(test: &str) -> bool {
    if job().is_some() {
        return true;
    }
    let output = good_child::<&str>(test, "alone", &[]);
    print!("{}", String::from_utf8_lossy(&output.stdout));
    false
}

/// Reads a pipe to its end in a thread of its own.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.expect("a pipe")
            .read_to_end(&mut bytes)
            .expect("its output");
        bytes
    })
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

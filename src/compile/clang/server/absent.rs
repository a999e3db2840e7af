//! The server on systems without `fork`, where every job has a process of its own.

use super::process::Finished;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Returns `None`, as there is no server.
pub fn run(_command: &Command, _input: &[u8], _limit: Duration) -> Option<Finished> {
    None
}

/// Does nothing, as there is no server.
pub fn unload() {}

/// Returns `None`, as there is no worker.
pub fn work(_program: &Path, _words: &[&str], _input: &[u8], _limit: Duration) -> Option<Finished> {
    None
}

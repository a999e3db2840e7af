//! Where processes cannot be forked there is no server: every job has a process of its own.

use super::process::Finished;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Never here.
pub fn run(_command: &Command, _input: &[u8], _limit: Duration) -> Option<Finished> {
    None
}

/// There is nothing to let go.
pub fn unload() {}

/// Never here.
pub fn work(_program: &Path, _words: &[&str], _input: &[u8], _limit: Duration) -> Option<Finished> {
    None
}

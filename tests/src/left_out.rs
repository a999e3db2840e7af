//! Tests that leave themselves out, because the device or the machine lacks what they are about: said, not passed over.
//!
//! A line for each goes to standard error, and to the end of the file that `PUMICE_TESTS_LEFT_OUT` names, from which `ci/test`
//! lists and counts them. Other crates include this file; it uses nothing of this one.

use std::io::Write;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

/// The test that calls this is not run, or not run further; why. In the words of a sentence that begins with "left out:".
#[track_caller]
pub fn left_out(why: &str) {
    let thread = std::thread::current();
    let place = Location::caller();
    // Tests run in threads that bear their names, unless there is but one thread.
    let name = match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{} line {}", place.file(), place.line()),
    };
    eprintln!("left out: {name}: {why}");
    let Some(file) = std::env::var_os("PUMICE_TESTS_LEFT_OUT") else {
        return;
    };
    let opened = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file);
    // In one piece, as other tests write to it too, and in turn: Wine lets what is written at the same time overlap.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let line = format!("{name}: {why}\n");
    if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
        panic!("{}: {error}", file.display());
    }
}

//! The table: what a program may call, and what its numbers mean there.
//!
//! Wrong are handles, sizes, offsets, flags and counts; what a call may read and write beyond what it can check (memory of the
//! host, what kernels do) stays within what there is, and nobody waits for a user event that is not set.

mod commands;
mod objects;
pub mod recorded;
pub mod semaphores;
mod shared;

use crate::sequences::state::{Kind, State};
use opencl_sys as sys;
use std::ptr::null;

type Numbers = [u32; crate::sequences::program::NUMBERS];
/// A call: its name, and what it does with numbers.
pub type Row = (&'static str, fn(&mut State, Numbers));

/// The first calls of programs.
pub const BEGIN: [&str; 7] = [
    "clCreateContext",
    "clCreateCommandQueueWithProperties",
    "clCreateBuffer",
    "clCreateProgramWithSource",
    "clBuildProgram",
    "clCreateKernel",
    "clCreateUserEvent",
];

/// The row of a call.
pub fn find(name: &str) -> Option<usize> {
    all().position(|(known, _)| *known == name)
}

/// The calls.
pub fn all() -> impl Iterator<Item = &'static Row> {
    let all = [
        objects::CALLS,
        commands::CALLS,
        shared::CALLS,
        recorded::CALLS,
        semaphores::CALLS,
    ];
    all.into_iter().flatten()
}

/// Returns the row of a number.
pub fn row(number: usize) -> &'static Row {
    all().nth(number).expect("a call")
}

/// Whether a call is left out of programs with several threads: shared virtual memory is only to be used while it is there, which
/// nobody could refuse and another thread could change; another thread could take the signal that a wait is to have.
pub fn alone(number: usize) -> bool {
    let name = row(number).0;
    name.contains("SVM") || name.contains("Semaphore")
}

/// One of a list, the first for 0.
pub fn one<T: Copy>(list: &[T], number: u32) -> T {
    list[number as usize % list.len()]
}

/// A size or an offset, with 0 for `usual`.
fn size(usual: usize, number: u32) -> usize {
    match number % 8 {
        0 => usual,
        1 => 0,
        2 => 1,
        3 => usual + 1,
        4 => usize::MAX,
        5 => usize::MAX - usual,
        _ => (number as usize >> 3) % (4 << 20),
    }
}

/// A size up to what there is room for on the host.
fn bytes(number: u32) -> usize {
    match size(64, number) {
        // What no object has is refused before anything is touched.
        beyond if beyond > 1 << 40 => beyond,
        other => other % (64 << 10),
    }
}

/// Flags: none, one that is known, or any bits.
fn flags(number: u32) -> u64 {
    match number % 4 {
        0 => 0,
        1 | 2 => 1 << ((number / 4) % 10),
        _ => u64::from(number / 4),
    }
}

/// A list of events: none, some, and at times a count that does not fit.
fn list(state: &State, number: u32) -> (u32, Vec<sys::cl_event>) {
    let count = one(&[0, 0, 1, 2, 3], number) as usize;
    let mut events: Vec<_> = (0..count as u32)
        .map(|at| state.pick(Kind::Event, (number / 8).wrapping_add(at * 7)))
        .collect();
    let count = if number % 64 == 63 { count + 1 } else { count };
    if count > events.len() {
        events.clear();
    }
    (count as u32, events)
}

fn pointer(list: &[sys::cl_event]) -> *const sys::cl_event {
    if list.is_empty() {
        null()
    } else {
        list.as_ptr()
    }
}

/// A command that blocks when its number is odd: then nothing may wait for the program.
fn blocks(state: &mut State, number: u32) -> u32 {
    let blocking = number % 4 == 1;
    if blocking {
        state.settle();
    }
    u32::from(blocking)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequences::state::listed;

    #[test]
    fn the_specification_knows_all() {
        for (name, _) in all() {
            // These have no codes.
            let silent = matches!(*name, "clSVMAlloc" | "clSVMFree");
            assert!(silent || listed(name).next().is_some(), "{name}");
        }
        for name in BEGIN {
            assert!(find(name).is_some(), "{name}");
        }
    }
}

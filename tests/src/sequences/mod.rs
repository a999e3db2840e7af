//! Programs of random calls of the OpenCL API, half of which have something wrong in them, and what must hold whatever they are.
//!
//! Choices make a program ([`program`]): those of a seed, or of bytes that a fuzzer changes. [`run`] runs it ([`calls`], [`state`]),
//! on one thread or on several that share its objects. Every error must be one that the specification lists for the entry point, a
//! call that fails makes nothing, objects have the references that the program has, all can be given back, and a context that is made
//! afterwards works. That the process neither ends nor waits for ever is the caller's to see.

mod calls;
pub mod program;
mod state;

use program::{Call, Program};
use state::State;

fn steps<'a>(state: &mut State, calls: impl Iterator<Item = &'a Call>) {
    for call in calls {
        calls::row(call.row).1(state, call.numbers);
    }
}

/// Runs a program: how many calls succeeded, and what must not be, in words. Its threads begin after the calls that come before the
/// first of another thread than 0.
pub fn run(program: &Program) -> (u32, Vec<String>) {
    let calls = &program.0;
    let alone = calls.iter().position(|call| call.thread != 0);
    let (first, rest) = calls.split_at(alone.unwrap_or(calls.len()));
    let mut state = State::new();
    steps(&mut state, first.iter());
    let last = rest.iter().map(|call| call.thread).max();
    if let Some(last) = last {
        state.set_threaded();
        std::thread::scope(|scope| {
            for thread in 1..=last {
                let mut state = state.other();
                scope.spawn(move || {
                    steps(&mut state, rest.iter().filter(|call| call.thread == thread));
                    // Others may wait for what this thread has to set.
                    state.settle();
                    state.leave();
                });
            }
            steps(&mut state, rest.iter().filter(|call| call.thread == 0));
            state.settle();
        });
    }
    state.end()
}

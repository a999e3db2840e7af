//! The OpenCL API: programs of calls as `sequences` makes them, chosen by the input, on the CPU device, with the library linked in.
//! A panic anywhere ends the process, and so does what `sequences` finds wrong. Inputs are changed call by call.
//!
//! Needs a compiler at run time (clang), as the library does. `PUMICE_CACHE_DIR` keeps what it compiles.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use pumice_tests::rng::Rng;
use pumice_tests::sequences::program::{Bytes, Program, RECORD};
use pumice_tests::sequences::run;

/// Another list of calls, different in one or two places. The first is no call: what a program begins with.
fn changed(calls: &mut Vec<Vec<u8>>, rng: &mut Rng, most: usize) {
    let count = calls.len();
    let (at, other) = (rng.below(count), rng.below(count));
    match rng.below(8) {
        0 if at > 0 => {
            calls.remove(at);
        }
        1 if count < most => calls.insert(at + 1, calls[other].clone()),
        2 | 3 if count < most => calls.insert(at + 1, rng.bytes(RECORD)),
        4 if at > 0 && other > 0 => calls.swap(at, other),
        // Another call with the same arguments, or another argument of the call.
        5 => calls[at][0] = rng.bits() as u8,
        _ => calls[at][rng.below(RECORD)] = rng.bits() as u8,
    }
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut rng = Rng::new(u64::from(seed), 0);
    if rng.percent(20) || size == 0 || max_size < RECORD {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut calls: Vec<Vec<u8>> = data[..size].chunks(RECORD).map(<[u8]>::to_vec).collect();
    calls.iter_mut().for_each(|call| call.resize(RECORD, 0));
    for _ in 0..1 + rng.below(3) {
        changed(&mut calls, &mut rng, max_size / RECORD);
    }
    let mut bytes = calls.concat();
    bytes.truncate(max_size);
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
});

/// The driver that is linked in, with the CPU device alone. What applications hear of errors nobody reads.
fn begin() {
    for (name, value) in [("PUMICE_DEVICES", "cpu"), ("PUMICE_LOG", "off")] {
        if std::env::var_os(name).is_none() {
            std::env::set_var(name, value);
        }
    }
    pumice_tests::use_driver(pumice::clGetExtensionFunctionAddress);
}

fuzz_target!(
    init: begin(),
    |data: &[u8]| {
        let program = Program::from_choices(&mut Bytes::new(data), 1);
        let (_, wrong) = run(&program);
        assert!(wrong.is_empty(), "{}\n{program}", wrong.join("; "));
    }
);

//! Stress: many threads make random commands on shared and private objects of one context, with random event graphs,
//! through the OpenCL loader. What the device makes of it is compared with a sequential model ([`plan`]).
//!
//! Exit status 0 if all was as the model says, every callback came, and nothing hung; the Vulkan validation layer, if it
//! is on (`PUMICE_VALIDATION=1`, the default where it is installed), must not have reported anything. A seed fixes what
//! each thread wants to do; with `--threads 1` a run repeats exactly.

mod graph;
mod kernels;
mod memory;
mod pending;
mod picture;
mod plan;
mod svm;
mod worker;
mod world;

use graph::Lane;
use memory::Buf;
use pumice_tests::ok;
use pumice_tests::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use worker::{Gate, Shared, Sign, Worker};
use world::{lock, World};

const USAGE: &str = "\
stress [--seconds S] [--threads N] [--devices N] [--seed SEED] [--patience S] [--without STEPS]

--seconds   how long (default 10)
--threads   how many (default 16)
--devices   how many of the platform's devices share the context (default: all)
--seed      what to repeat (default: from the clock; printed)
--patience  seconds without a step after which a thread hangs (default 60)
--without   kinds of steps to leave out, as comma-separated names: to narrow a failure down";

struct Options {
    seconds: f64,
    threads: usize,
    devices: usize,
    seed: u64,
    patience: u64,
    without: String,
}

fn options() -> Option<Options> {
    let clock = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |time| time.as_nanos() as u64 & 0xffff_ffff);
    let mut options = Options {
        seconds: 10.0,
        threads: 16,
        devices: 0,
        seed: clock,
        patience: 60,
        without: String::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next()?;
        match name.as_str() {
            "--seconds" => options.seconds = value.parse().ok()?,
            "--threads" => options.threads = value.parse().ok()?,
            "--devices" => options.devices = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--patience" => options.patience = value.parse().ok()?,
            "--without" => options.without = value,
            _ => return None,
        }
    }
    Some(options)
}

/// Sets user events when they are due.
fn set_gates(gates: &Receiver<Gate>) {
    let mut waiting: Vec<Gate> = Vec::new();
    let mut open = true;
    while open || !waiting.is_empty() {
        match gates.recv_timeout(Duration::from_micros(300)) {
            Ok(gate) => waiting.push(gate),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                open = false;
                std::thread::sleep(Duration::from_micros(300));
            }
        }
        let now = Instant::now();
        while let Some(index) = waiting.iter().position(|gate| gate.due <= now) {
            let gate = waiting.swap_remove(index);
            ok!(clSetUserEventStatus(gate.event, gate.status));
            ok!(clReleaseEvent(gate.event));
        }
    }
}

/// Ends the process when a thread makes no step for too long.
fn watch(signs: &[Sign], over: &AtomicBool, patience: u64, seed: u64) {
    let mut seen: Vec<(u64, Instant)> = signs.iter().map(|_| (0, Instant::now())).collect();
    while !over.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(100));
        let mut stuck = false;
        for (sign, seen) in signs.iter().zip(&mut seen) {
            let steps = sign.steps.load(Ordering::Relaxed);
            if steps != seen.0 || *lock(&sign.now) == "over" {
                *seen = (steps, Instant::now());
            }
            stuck |= seen.1.elapsed().as_secs() >= patience;
        }
        if stuck {
            eprintln!("stress: a thread hangs; seed {seed}");
            for (number, (sign, seen)) in signs.iter().zip(&seen).enumerate() {
                let idle = seen.1.elapsed().as_secs();
                eprintln!(
                    "  thread {number}: {} after {} steps, for {idle} s",
                    lock(&sign.now),
                    seen.0
                );
            }
            if std::env::var_os("STRESS_WAIT").is_some() {
                std::thread::sleep(Duration::from_secs(3600));
            }
            std::process::abort();
        }
    }
}

extern "C" fn context_error(
    text: *const std::ffi::c_char,
    _: *const std::ffi::c_void,
    _: usize,
    _: *mut std::ffi::c_void,
) {
    // SAFETY: a C string, as the specification has it.
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    eprintln!("stress: the context reports: {}", text.to_string_lossy());
}

fn main() {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    let Options {
        seconds,
        threads,
        devices,
        seed,
        patience,
        without,
    } = options;
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        eprintln!("stress: failed with --seed {seed}");
        std::process::abort();
    }));
    let world = World::new(devices, Some(context_error));
    let has = |yes: bool| if yes { "with" } else { "no" };
    println!(
        "stress: {threads} threads, {} devices, {} images, {} shared virtual memory, {seconds} s, --seed {seed}",
        world.devices.len(),
        has(world.images),
        has(!world.svm.is_empty()),
    );
    let mut rng = Rng::new(seed, 0);
    let mut shared = Shared {
        lanes: Vec::new(),
        buffers: Vec::new(),
        images: Vec::new(),
        svms: Vec::new(),
        programs: Vec::new(),
        without: without.split(',').map(str::to_owned).collect(),
        world,
    };
    for _ in 0..4 {
        shared.lanes.push(Lane::new(&shared.world, &mut rng));
    }
    for _ in 0..6 {
        shared
            .buffers
            .push(Mutex::new(Buf::new(&shared.world, &mut rng)));
    }
    if shared.world.images {
        for _ in 0..4 {
            let image = Buf::image(&shared.world, &mut rng);
            shared.images.push(Mutex::new(image));
        }
    }
    if !shared.world.svm.is_empty() {
        for _ in 0..4 {
            let svm = Buf::svm(&shared.world, &mut rng);
            shared.svms.push(Mutex::new(svm));
        }
    }
    for _ in 0..2 {
        shared
            .programs
            .push(Mutex::new(kernels::Program::new(&shared.world, &mut rng)));
    }
    let signs: Vec<Sign> = (0..threads).map(|_| Sign::default()).collect();
    let over = AtomicBool::new(false);
    let (gates, due) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| watch(&signs, &over, patience, seed));
        let setter = scope.spawn(move || set_gates(&due));
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        let workers: Vec<_> = signs
            .iter()
            .zip(0..)
            .map(|(sign, number)| {
                let (shared, gates) = (&shared, gates.clone());
                scope.spawn(move || Worker::new(shared, sign, gates, seed, number).run(until))
            })
            .collect();
        drop(gates);
        for worker in workers {
            worker.join().expect("no thread has failed");
        }
        setter.join().expect("no thread has failed");
        over.store(true, Ordering::Release);
    });
    // All that is left completes once the queues are empty.
    for lane in &shared.lanes {
        ok!(clFinish(lane.id));
    }
    drop(shared);
    let mut code = 0;
    let counters = [
        ("callbacks not called", &pending::CALLBACKS),
        ("builds not told of", &kernels::BUILDS),
        ("blocks of memory never given back", &memory::BLOCKS),
    ];
    for (what, counter) in counters {
        let patience = Instant::now() + Duration::from_secs(20);
        while counter.load(Ordering::SeqCst) > 0 && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
        let left = counter.load(Ordering::SeqCst);
        if left > 0 {
            eprintln!("stress: {left} {what}; --seed {seed}");
            code = 1;
        }
    }
    let steps: u64 = signs.iter().map(|s| s.steps.load(Ordering::Relaxed)).sum();
    println!(
        "stress: {steps} steps, {} messages of the validation layer",
        pumice_tests::validation_messages()
    );
    std::process::exit(code);
}

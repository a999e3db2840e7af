//! One round: a context, the objects that its threads share, the threads, and all of it given back.

use crate::graph::Lane;
use crate::kernels::Program;
use crate::memory::Buf;
use crate::worker::{Gate, Shared, Sign, Worker};
use crate::world::{lock, World};
use crate::{kernels, memory, pending};
use pumice_tests::ok;
use pumice_tests::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The parameters of a round.
pub struct Round<'a> {
    /// How long its threads work.
    pub seconds: f64,
    /// How many they are.
    pub threads: usize,
    /// How many devices at most; 0: all.
    pub devices: usize,
    /// The seed of its threads.
    pub seed: u64,
    /// Its number, which its programs contain; none: programs that other runs have built as well.
    pub number: Option<u32>,
    /// Seconds without a step after which a thread hangs.
    pub patience: u64,
    /// Names of steps that are left out.
    pub without: &'a [String],
}

/// The outcome of a round.
pub struct Outcome {
    /// Steps made.
    pub steps: u64,
    /// All callbacks came.
    pub good: bool,
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

impl Round<'_> {
    /// Runs it.
    pub fn run(&self) -> Outcome {
        let (threads, patience, seed) = (self.threads, self.patience, self.seed);
        let shared = self.objects();
        let signs: Vec<Sign> = (0..threads).map(|_| Sign::default()).collect();
        let over = AtomicBool::new(false);
        let (gates, due) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| watch(&signs, &over, patience, seed));
            let setter = scope.spawn(move || set_gates(&due));
            let until = Instant::now() + Duration::from_secs_f64(self.seconds);
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
        let good = called_back(seed);
        let steps = signs.iter().map(|s| s.steps.load(Ordering::Relaxed)).sum();
        Outcome { steps, good }
    }

    /// The context and what its threads share.
    fn objects(&self) -> Shared {
        let world = World::new(self.devices, self.number, Some(context_error));
        let has = |yes: bool| if yes { "with" } else { "no" };
        if self.number.is_none() {
            println!(
                "stress: {} threads, {} devices, {} images, {} shared virtual memory, {} s, --seed {}",
                self.threads,
                world.devices.len(),
                has(world.images),
                has(!world.svm.is_empty()),
                self.seconds,
                self.seed,
            );
        }
        let mut rng = Rng::new(self.seed, 0);
        let mut shared = Shared {
            lanes: Vec::new(),
            buffers: Vec::new(),
            images: Vec::new(),
            svms: Vec::new(),
            programs: Vec::new(),
            without: self.without.to_vec(),
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
                .push(Mutex::new(Program::new(&shared.world, &mut rng)));
        }
        shared
    }
}

/// Waits for the callbacks that are still to come, and says whether they came.
fn called_back(seed: u64) -> bool {
    let mut good = true;
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
            good = false;
        }
    }
    good
}

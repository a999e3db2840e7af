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
mod print;
mod round;
mod soak;
mod svm;
mod worker;
mod world;

use round::Round;

const USAGE: &str = "\
stress [--seconds S] [--threads N] [--devices N] [--seed SEED] [--patience S] [--without STEPS] [--soak S]

--seconds   how long (default 10)
--threads   how many (default 16)
--devices   how many of the platform's devices share the context (default: all)
--seed      what to repeat (default: from the clock; printed)
--patience  seconds without a step after which a thread hangs (default 60)
--without   kinds of steps to leave out, as comma-separated names: to narrow a failure down
--soak      rounds of --seconds each until that many seconds have passed, each with a context and programs of its own, all
            given back; what the process still has afterwards must not grow from round to round";

struct Options {
    seconds: f64,
    threads: usize,
    devices: usize,
    seed: u64,
    patience: u64,
    without: String,
    soak: f64,
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
        soak: 0.0,
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
            "--soak" => options.soak = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}

fn main() {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    let seed = options.seed;
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        eprintln!("stress: failed with --seed {seed}");
        std::process::abort();
    }));
    let without: Vec<String> = options.without.split(',').map(str::to_owned).collect();
    let round = Round {
        seconds: options.seconds,
        threads: options.threads,
        devices: options.devices,
        seed,
        number: None,
        patience: options.patience,
        without: &without,
    };
    let good = if options.soak > 0.0 {
        soak::run(round, options.soak)
    } else {
        let outcome = round.run();
        println!(
            "stress: {} steps, {} messages of the validation layer",
            outcome.steps,
            pumice_tests::validation_messages()
        );
        outcome.good
    };
    std::process::exit(i32::from(!good));
}

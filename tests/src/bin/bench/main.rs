//! Measures OpenCL drivers through the loader: Pumice alone, or beside another driver.
//!
//! Each driver runs in a child process of its own, so that neither sees the other. For each workload the children
//! take turns, several rounds; the table shows medians and their ratio. Results are checked: a driver that computes
//! something wrong has no figure and the bench fails.
//!
//! A child is this program again with `--child`; it reads commands from standard input:
//! `hello`, `set-up N LARGE`, `run` and answers each with a line.

mod alone;
mod builds;
mod compute;
mod contract;
mod driver;
mod functions;

mod numeric;
mod replays;
mod single;
mod work;

use driver::Driver;
use pumice_tests::client::loader::built_driver;
use pumice_tests::client::{devices, problem, Device, Result};
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;
use work::{Class, Figure, Ready, Rig, Workload, WORKLOADS};

const USAGE: &str = "\
bench [--pumice LIBRARY_OR_ICD] [--against LIBRARY_OR_ICD]... [--rounds N] [--seconds S]
      [--only TEXT] [--best] [--cpu] [--check] [--tolerance T] [--launch-factor F] [--small | --large] [--device N]

--pumice         the driver to measure (default: libpumice.so beside this program)
--against        another driver to measure beside it, such as /etc/OpenCL/vendors/rusticl.icd; may be given more than once
--rounds         how often the two take turns (default 5)
--seconds        how long each turn lasts, about (default 0.15)
--only           workloads whose name contains this text
--best           compare the best rounds, not the medians
--cpu            throughput by the processor time of all threads, not by time passed: for software drivers on a
                 machine that does other work as well
--check          exit status 1 if a result is wrong, a throughput is lower than the other driver's or launches are
                 not faster by the launch factor
--tolerance      how much lower counts as equal, with --check (default 0.1)
--launch-factor  default 5 against a software driver, 1 otherwise
--small --large  sizes; default: large if both devices are GPUs with 8 GiB or more
--device         which device of each driver (default 0)";

/// The names of the drivers beside the first.
const LABELS: [&str; 4] = ["second", "third", "fourth", "fifth"];

struct Options {
    pumice: Option<PathBuf>,
    against: Vec<PathBuf>,
    rounds: usize,
    seconds: f64,
    only: String,
    best: bool,
    cpu: bool,
    check: bool,
    tolerance: f64,
    launch_factor: Option<f64>,
    large: Option<bool>,
    device: usize,
    child: bool,
}

fn options() -> std::result::Result<Options, String> {
    let mut options = Options {
        pumice: None,
        against: Vec::new(),
        rounds: 5,
        seconds: 0.15,
        only: String::new(),
        best: false,
        cpu: false,
        check: false,
        tolerance: 0.1,
        launch_factor: None,
        large: None,
        device: 0,
        child: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{name} needs a value"));
        let wrong = |value: &str| format!("{name} {value} makes no sense");
        macro_rules! number {
            () => {{
                let text = value()?;
                text.parse().map_err(|_| wrong(&text))?
            }};
        }
        match name.as_str() {
            "--pumice" => options.pumice = Some(value()?.into()),
            "--against" => options.against.push(value()?.into()),
            "--rounds" => options.rounds = number!(),
            "--seconds" => options.seconds = number!(),
            "--only" => options.only = value()?,
            "--best" => options.best = true,
            "--cpu" => options.cpu = true,
            "--check" => options.check = true,
            "--tolerance" => options.tolerance = number!(),
            "--launch-factor" => options.launch_factor = Some(number!()),
            "--small" => options.large = Some(false),
            "--large" => options.large = Some(true),
            "--device" => options.device = number!(),
            "--child" => options.child = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let result = if options.child {
        child(&options).map(|()| true)
    } else {
        compare(&options)
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The child

fn time_passed() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Returns the processor time that all threads of this process have used.
#[cfg(windows)]
fn cpu_time() -> f64 {
    #[link(name = "kernel32")]
    extern "system" {
        fn GetCurrentProcess() -> *mut libc::c_void;
        fn GetProcessTimes(
            process: *mut libc::c_void,
            created: *mut u64,
            ended: *mut u64,
            kernel: *mut u64,
            user: *mut u64,
        ) -> i32;
    }
    let (mut created, mut ended, mut kernel, mut user) = (0, 0, 0, 0);
    // SAFETY: this process, and places for four times of 64 bits each.
    unsafe {
        GetProcessTimes(
            GetCurrentProcess(),
            &mut created,
            &mut ended,
            &mut kernel,
            &mut user,
        );
    }
    (kernel + user) as f64 * 1e-7
}

/// Returns the processor time that all threads of this process have used.
#[cfg(not(windows))]
fn cpu_time() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a clock of this process, and a place for its time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// A workload with as many operations as fill a turn.
struct Turn {
    clock: fn() -> f64,
    ready: Ready,
    operations: usize,
}

impl Turn {
    /// Seconds of one operation.
    fn run(&mut self) -> Result<f64> {
        let start = (self.clock)();
        work::UNCOUNTED.set(0.0);
        (self.ready.run)(self.operations)?;
        let seconds = (self.clock)() - start - work::UNCOUNTED.get();
        Ok(seconds / self.operations as f64)
    }

    /// Warms up, and finds the number of operations.
    fn calibrate(ready: Ready, class: Class, options: &Options) -> Result<Self> {
        let seconds = options.seconds;
        let mut turn = Self {
            clock: if options.cpu && class == Class::Throughput {
                cpu_time
            } else {
                time_passed
            },
            ready,
            operations: 1,
        };
        turn.run()?;
        loop {
            let took = turn.run()? * turn.operations as f64 + work::UNCOUNTED.get();
            if took >= seconds * 0.5 || turn.operations >= 1 << 20 {
                return Ok(turn);
            }
            let factor = (seconds / took.max(1e-7)).clamp(1.5, 16.0);
            turn.operations = ((turn.operations as f64 * factor) as usize).max(turn.operations + 1);
        }
    }
}

fn child(options: &Options) -> Result<()> {
    let mut device = None;
    let mut turn: Option<Turn> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| problem("reading a command", e.to_string()))?;
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[..] {
            ["hello"] => devices()
                .and_then(|all| {
                    let found = all
                        .into_iter()
                        .nth(options.device)
                        .ok_or_else(|| problem("finding a device", "no such device"))?;
                    device = Some(found);
                    Ok(format!(
                        "ok {} {}",
                        work::is_large(&found),
                        work::describe(&found)?
                    ))
                })
                .unwrap_or_else(|error| format!("fail {error}")),
            ["set-up", number, large] => {
                turn = None;
                let set_up = || -> Result<Option<Turn>> {
                    let device: Device = device.ok_or_else(|| problem("set-up", "no device"))?;
                    let workload = number.parse().ok().and_then(|i: usize| WORKLOADS.get(i));
                    let workload = workload.ok_or_else(|| problem("set-up", "no workload"))?;
                    let rig = Rig {
                        device,
                        large: large == "true",
                    };
                    (workload.set_up)(&rig)?
                        .map(|ready| Turn::calibrate(ready, workload.class, options))
                        .transpose()
                };
                match set_up() {
                    Ok(Some(made)) => {
                        let (kind, amount) = encode(made.ready.figure);
                        turn = Some(made);
                        format!("ok {kind} {amount}")
                    }
                    Ok(None) => "unsupported".to_owned(),
                    Err(error) => format!("fail {error}"),
                }
            }
            ["run"] => match turn.as_mut().map(Turn::run) {
                Some(Ok(seconds)) => format!("ok {seconds:e}"),
                Some(Err(error)) => format!("fail {error}"),
                None => "fail nothing is set up".to_owned(),
            },
            _ => "fail unknown command".to_owned(),
        };
        // Build logs have several lines.
        println!("{}", answer.replace('\n', " | "));
    }
    Ok(())
}

fn encode(figure: Figure) -> (&'static str, f64) {
    match figure {
        Figure::Micros(parts) => ("us", parts),
        Figure::Millis => ("ms", 1.0),
        Figure::Giga(units, unit) => (unit, units),
    }
}

fn decode(kind: &str, amount: f64) -> Option<Figure> {
    const UNITS: [&str; 10] = [
        "of-ideal", "GB/s", "GFLOP/s", "GOP/s", "Gop/s", "Gpairs/s", "Gpixel/s", "Ghash/s",
        "Gkeys/s", "Gstep/s",
    ];
    match kind {
        "us" => Some(Figure::Micros(amount)),
        "ms" => Some(Figure::Millis),
        _ => UNITS
            .into_iter()
            .find(|unit| *unit == kind)
            .map(|unit| Figure::Giga(amount, unit)),
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The parent

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

fn middle_or_best(figure: Figure, values: &mut [f64], best: bool) -> f64 {
    let middle = median(values);
    let end = if figure.less_is_better() {
        values.first()
    } else {
        values.last()
    };
    end.copied().filter(|_| best).unwrap_or(middle)
}

/// Digits that matter.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The result of one driver for one workload.
enum Shown {
    Figure(Figure, f64),
    Unsupported,
    Failed(String),
}

impl Shown {
    fn cell(&self) -> String {
        match self {
            Self::Figure(figure, value) => format!("{} {}", number(*value), figure.unit()),
            Self::Unsupported => "unsupported".to_owned(),
            Self::Failed(_) => "FAILED".to_owned(),
        }
    }
}

/// Lets the drivers take turns at one workload.
fn measure(drivers: &mut [Driver], index: usize, large: bool, options: &Options) -> Vec<Shown> {
    let figures: Vec<Result<Figure>> = drivers.iter_mut().map(|d| d.set_up(index, large)).collect();
    let mut times: Vec<Result<Vec<f64>>> = drivers.iter().map(|_| Ok(Vec::new())).collect();
    for _ in 0..options.rounds.max(1) {
        for ((driver, figure), times) in drivers.iter_mut().zip(&figures).zip(&mut times) {
            if let (Ok(figure), Ok(list)) = (figure, &mut *times) {
                match driver.run() {
                    Ok(seconds) => list.push(figure.of(seconds)),
                    Err(error) => *times = Err(error),
                }
            }
        }
    }
    figures
        .into_iter()
        .zip(times)
        .map(|both| match both {
            (Ok(figure), Ok(mut list)) => {
                Shown::Figure(figure, middle_or_best(figure, &mut list, options.best))
            }
            (Err(error), _) if error.note == "unsupported" => Shown::Unsupported,
            (Err(error), _) | (_, Err(error)) => Shown::Failed(error.note),
        })
        .collect()
}

/// Why the first driver does not satisfy `--check`, if so, and how much better it is.
fn judge(
    workload: &Workload,
    ours: &Shown,
    theirs: &Shown,
    tolerance: f64,
    launch: f64,
) -> (Option<f64>, Option<String>) {
    match (ours, theirs) {
        (Shown::Figure(figure, ours), Shown::Figure(_, theirs)) => {
            let ratio = if figure.less_is_better() {
                theirs / ours
            } else {
                ours / theirs
            };
            let wanted = match workload.class {
                Class::Launch => launch,
                Class::Throughput => 1.0 - tolerance,
                Class::Info => 0.0,
            };
            let complaint =
                (ratio < wanted).then(|| format!("{ratio:.2} times as fast, wanted {wanted:.2}"));
            (Some(ratio), complaint)
        }
        (Shown::Failed(note), _) => (None, Some(note.clone())),
        (Shown::Unsupported, Shown::Figure(..)) => {
            (None, Some("only the other driver can do it".to_owned()))
        }
        _ => (None, None),
    }
}

fn compare(options: &Options) -> Result<bool> {
    let ours = match &options.pumice {
        Some(path) => path.clone(),
        None => built_driver().map_err(|note| problem("finding the driver", note))?,
    };
    let names = || {
        std::iter::once(&ours)
            .chain(&options.against)
            .zip(std::iter::once("first").chain(LABELS))
    };
    let mut drivers = names()
        .map(|(library, label)| Driver::start(library, label, options))
        .collect::<Result<Vec<_>>>()?;
    let large = options
        .large
        .unwrap_or_else(|| drivers.iter().all(|driver| driver.large));
    let software = drivers.iter().skip(1).any(|driver| !driver.large);
    let launch_factor = options
        .launch_factor
        .unwrap_or(if software { 5.0 } else { 1.0 });
    println!("first    {}", drivers[0].heading);
    for (other, label) in drivers.iter().skip(1).zip(LABELS) {
        println!("{label:9}{}", other.heading);
    }
    print!("\n{:30}{:>16}", "", "first");
    for label in LABELS.iter().take(drivers.len() - 1) {
        print!("{label:>16}{:>9}", "ratio");
    }
    println!();

    let mut complaints = Vec::new();
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); drivers.len() - 1];
    for (index, workload) in WORKLOADS.iter().enumerate() {
        if !workload.name.contains(&options.only) {
            continue;
        }
        let shown = measure(&mut drivers, index, large, options);
        let Some((ours, others)) = shown.split_first() else {
            continue;
        };
        print!("{:30}{:>16}", workload.name, ours.cell());
        let mut complaint = None;
        for (other, ratios) in others.iter().zip(&mut ratios) {
            let (ratio, wrong) = judge(workload, ours, other, options.tolerance, launch_factor);
            let text = ratio.map_or(String::new(), |r| format!("{r:.2}"));
            print!("{:>16}{text:>9}", other.cell());
            ratios.extend(ratio);
            complaint = complaint.or(wrong);
        }
        if others.is_empty() {
            complaint = judge(workload, ours, &Shown::Unsupported, 0.0, 0.0).1;
        }
        println!("{}", if complaint.is_some() { "  <" } else { "" });
        for (shown, label) in shown.iter().zip(std::iter::once("first").chain(LABELS)) {
            if let Shown::Failed(note) = shown {
                println!("    {label}: {note}");
            }
        }
        complaints.extend(complaint.map(|text| format!("{}: {text}", workload.name)));
        for (driver, (library, label)) in drivers.iter_mut().zip(names()) {
            if driver.is_gone() {
                *driver = Driver::start(library, label, options)?;
            }
        }
    }
    if ratios.iter().any(|ratios| ratios.len() > 1) {
        print!("{:46}", "geometric mean of the ratios");
        for ratios in &ratios {
            let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
            print!("{:>25.2}", (sum / ratios.len().max(1) as f64).exp());
        }
        println!();
    }
    println!(
        "\nratio: how many times as fast as that driver the first is, by {}; {} of {} rounds",
        if options.cpu {
            "processor time where throughput"
        } else {
            "time passed"
        },
        if options.best { "the best" } else { "medians" },
        options.rounds
    );
    for complaint in &complaints {
        println!("not met: {complaint}");
    }
    Ok(complaints.is_empty() || !options.check)
}

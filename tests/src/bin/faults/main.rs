//! Faults: a scenario in which one Vulkan call fails, for every call of it and every code that the call may return.
//!
//! Each case is a process of its own, with the layer of `tests/faults` before the driver. The scenario runs twice there: the
//! first run may end in errors that the specification lists for the entry point, the second must be without (but for lost
//! devices, which must say so, and instances and devices that were never made). A case fails by a crash, a hang, another
//! error, wrong results, or Vulkan objects that live beside those of a process without a fault.

mod scenario;

use opencl_sys as sys;
use pumice_tests::rng::Rng;
use pumice_tests::{call, finished};
use scenario::Outcome;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const USAGE: &str = "\
faults [--seconds S] [--seed SEED] [--only CALL] [--case CALL:NUMBER:CODE] [--patience S]

--seconds   stop after that long; each call with each code comes once before the rest (default: all cases)
--seed      which cases come first (default 1)
--only      cases of this Vulkan call alone
--case      one case, with all that its process says
--patience  seconds after which a process hangs (default 60)";

/// What a child is told to be.
const CHILD: &str = "PUMICE_FAULTS_CHILD";
const DEVICE_LOST: i32 = -4;
/// The last call of a function that is had to fail: threads look at semaphores as often as they find the time.
const MOST: u64 = 30;
/// Without these there is no device. The Vulkan loader unloads layers then, and what they counted is gone.
const NEVER_MADE: [&str; 3] = [
    "vkCreateInstance",
    "vkEnumeratePhysicalDevices",
    "vkCreateDevice",
];

/// A call, the number of it that fails, the code.
type Case = (String, u64, i32);

struct Options {
    seconds: f64,
    seed: u64,
    only: Option<String>,
    case: Option<String>,
    patience: u64,
}

fn options() -> Option<Options> {
    let mut options = Options {
        seconds: f64::INFINITY,
        seed: 1,
        only: None,
        case: None,
        patience: 60,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next()?;
        match name.as_str() {
            "--seconds" => options.seconds = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--only" => options.only = Some(value),
            "--case" => options.case = Some(value),
            "--patience" => options.patience = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}

/// The layer, beside this program.
fn layer() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    program.with_file_name("libpumice_faults.so")
}

/// What the layer says now.
fn report() -> String {
    type Report = unsafe extern "C" fn(*mut u8, usize) -> usize;
    // SAFETY: the layer, which the Vulkan loader has loaded already, and its function as it declares it.
    unsafe {
        let library = libloading::Library::new(layer()).expect("the layer");
        let function = library.get::<Report>(b"pumice_faults_report\0");
        let function = function.expect("its function");
        let mut bytes = vec![0u8; 65536];
        let length = function(bytes.as_mut_ptr(), bytes.len()).min(bytes.len());
        bytes.truncate(length);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The same, once no more lives than without a fault: threads of the runtime let go of some things a little later.
fn settled() -> String {
    let usual = std::env::var(CHILD).unwrap_or_default();
    let usual: BTreeMap<&str, i64> = usual.lines().filter_map(living).collect();
    if usual.is_empty() {
        // The measure of all others: late releases must not be in it.
        std::thread::sleep(Duration::from_secs(1));
        return report();
    }
    let until = Instant::now() + Duration::from_secs(2);
    loop {
        let text = report();
        let mut counts = text
            .lines()
            .filter_map(|line| living(line.strip_prefix("living ")?));
        let more = counts.any(|(kind, count)| count > usual.get(kind).copied().unwrap_or(0));
        if !more || Instant::now() > until {
            return text;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A kind of object and how many of it live.
fn living(line: &str) -> Option<(&str, i64)> {
    let (kind, count) = line.rsplit_once(' ')?;
    Some((kind, count.parse().ok()?))
}

/// The child: the scenario twice.
fn child() -> ExitCode {
    let tell = |run: &str, outcome: &Outcome| {
        for error in &outcome.errors {
            println!("@{run} error {error}");
        }
        for problem in &outcome.problems {
            println!("@{run} problem {problem}");
        }
    };
    tell("first", &scenario::run());
    for line in report().lines() {
        println!("@first {line}");
    }
    tell("second", &scenario::run());
    for line in settled().lines() {
        println!("@second {line}");
    }
    let device = scenario::device(&mut Outcome::default());
    if !device.is_null() {
        let mut available: u32 = 1;
        let value = (&raw mut available).cast();
        call!(clGetDeviceInfo(
            device,
            sys::CL_DEVICE_AVAILABLE,
            4,
            value,
            std::ptr::null_mut()
        ));
        println!("@available {available}");
    }
    ExitCode::SUCCESS
}

/// What a child said, or why it did not end well.
struct Said {
    lines: Vec<String>,
    all: String,
    end: Option<String>,
}

impl Said {
    /// What follows a beginning of lines.
    fn after<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines
            .iter()
            .filter_map(move |line| line.strip_prefix(begin))
    }

    fn living(&self) -> BTreeMap<&str, i64> {
        self.after("second living ").filter_map(living).collect()
    }

    /// Whether the call came in the first run that was to fail there.
    fn came(&self, case: &Case) -> bool {
        NEVER_MADE.contains(&case.0.as_str()) || self.after("first failed").next().is_some()
    }
}

/// Runs the scenario in a child.
fn run(place: &Path, fault: &str, usual: &str, patience: u64) -> Said {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let layers = [
        "/usr/local/share/vulkan",
        "/etc/vulkan",
        "/usr/share/vulkan",
    ];
    let layers = layers
        .map(|place| format!("{place}/explicit_layer.d"))
        .join(":");
    command
        .env(CHILD, usual)
        .env("PUMICE_FAULTS", fault)
        .env("PUMICE_VALIDATION", "0")
        .env("VK_LAYER_PATH", format!("{layers}:{}", place.display()))
        .env("VK_INSTANCE_LAYERS", "VK_LAYER_PUMICE_faults");
    let Some(output) = finished(&mut command, Duration::from_secs(patience)) else {
        return Said {
            lines: Vec::new(),
            all: String::new(),
            end: Some("hangs".to_owned()),
        };
    };
    let all =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let lines = all[0].lines().filter_map(|line| line.strip_prefix('@'));
    Said {
        lines: lines.map(str::to_owned).collect(),
        end: (!output.status.success()).then(|| output.status.to_string()),
        all: all.concat(),
    }
}

/// What is wrong with a case.
fn judge(case: &Case, said: &Said, without: &Said) -> Vec<String> {
    let mut wrong: Vec<String> = said.end.iter().cloned().collect();
    if said.end.is_some() {
        let last: Vec<&str> = said.all.lines().rev().take(3).collect();
        wrong.push(last.join(" / "));
        return wrong;
    }
    wrong.extend(
        said.after("first problem ")
            .map(|text| format!("first run: {text}")),
    );
    wrong.extend(
        said.after("second problem ")
            .map(|text| format!("second run: {text}")),
    );
    let errors: Vec<&str> = said.after("second error ").collect();
    if case.2 == DEVICE_LOST && !NEVER_MADE.contains(&case.0.as_str()) {
        if errors.is_empty() {
            wrong.push("a lost device works".to_owned());
        }
        if said.after("available ").any(|value| value != "0") {
            wrong.push("a lost device says that it is available".to_owned());
        }
    } else if !NEVER_MADE.contains(&case.0.as_str()) {
        wrong.extend(errors.iter().map(|error| format!("second run: {error}")));
    }
    let usual = without.living();
    for (kind, count) in said.living() {
        let usual = usual.get(kind).copied().unwrap_or(0);
        if count > usual && case.2 != DEVICE_LOST {
            wrong.push(format!("{count} of {kind} live, not {usual}"));
        }
    }
    wrong
}

/// All cases of a scenario, each call with each code once before the rest.
fn cases(without: &Said, options: &Options) -> Vec<Case> {
    let mut random = Rng::new(options.seed, 0);
    let mut all: Vec<(u64, u64, Case)> = Vec::new();
    for line in without.after("first call ") {
        let mut words = line.split(' ');
        let (Some(name), Some(count), Some(codes)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if options.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let count = count.parse().unwrap_or(0).min(MOST);
        for code in codes.split(',').filter_map(|code| code.parse().ok()) {
            let first = random.below(count.max(1) as usize) as u64;
            all.extend((1..=count).map(|number| {
                let turn = (number - 1 + count - first) % count;
                (
                    turn,
                    random.below(1 << 30) as u64,
                    (name.to_owned(), number, code),
                )
            }));
        }
    }
    all.sort();
    all.into_iter().map(|(_, _, case)| case).collect()
}

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let place = std::env::temp_dir().join(format!("pumice-faults-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    let manifest = include_str!("../../../faults/manifest.json");
    let manifest = manifest.replace("@LIBRARY@", &layer().display().to_string());
    std::fs::write(place.join("pumice_faults.json"), manifest).expect("a manifest");
    let good = all(&place, &options);
    let _ = std::fs::remove_dir_all(&place);
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn all(place: &Path, options: &Options) -> bool {
    let started = Instant::now();
    // The first one fills the caches.
    run(place, "", "", options.patience);
    let without = run(place, "", "", options.patience);
    let errors = without
        .lines
        .iter()
        .filter(|line| line.contains(" error ") || line.contains(" problem "));
    if without.end.is_some() || errors.count() > 0 || without.after("first call ").next().is_none()
    {
        println!(
            "the scenario fails without a fault: {:?}\n{}",
            without.end, without.all
        );
        return false;
    }
    let usual: Vec<&str> = without.after("second living ").collect();
    let usual = usual.join("\n");
    if let Some(text) = &options.case {
        let said = run(place, text, &usual, options.patience);
        print!("{}", said.all);
        let mut parts = text.split(':');
        let case = (
            parts.next().unwrap_or_default().to_owned(),
            parts.next().and_then(|part| part.parse().ok()).unwrap_or(0),
            parts.next().and_then(|part| part.parse().ok()).unwrap_or(0),
        );
        let wrong = judge(&case, &said, &without);
        println!("{wrong:#?}");
        return wrong.is_empty();
    }
    let cases = cases(&without, options);
    let total = cases.len();
    // Of each call and code: how many were tried, ended in an error, went without, failed, did not come.
    let mut table: BTreeMap<(String, i32), [usize; 5]> = BTreeMap::new();
    let mut tried = 0;
    for case in cases {
        if started.elapsed().as_secs_f64() > options.seconds {
            break;
        }
        tried += 1;
        let text = format!("{}:{}:{}", case.0, case.1, case.2);
        let said = run(place, &text, &usual, options.patience);
        // A lost race of two threads: a look at a semaphore less than without a fault.
        if said.end.is_none() && !said.came(&case) {
            table.entry((case.0, case.2)).or_default()[4] += 1;
            continue;
        }
        let wrong = judge(&case, &said, &without);
        for problem in &wrong {
            println!("{text}: {problem}");
        }
        let row = table.entry((case.0, case.2)).or_default();
        row[0] += 1;
        row[match (wrong.is_empty(), said.after("first error ").next()) {
            (false, _) => 3,
            (true, Some(_)) => 1,
            (true, None) => 2,
        }] += 1;
    }
    println!(
        "{:34} {:>12} {:>6} {:>6} {:>8} {:>6} {:>11}",
        "call", "code", "tried", "error", "no error", "failed", "not reached"
    );
    for ((name, code), [tried, error, none, failed, gone]) in &table {
        println!("{name:34} {code:>12} {tried:>6} {error:>6} {none:>8} {failed:>6} {gone:>11}");
    }
    let failed: usize = table.values().map(|row| row[3]).sum();
    println!(
        "faults: {tried} of {total} cases, {failed} failed, {:.0} s",
        started.elapsed().as_secs_f64()
    );
    failed == 0 && tried > 0
}

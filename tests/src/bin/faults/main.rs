//! Faults: a scenario in which one call fails, for every call of it and every code that the call may return.
//!
//! Each case is a process of its own. The scenario runs twice there: the first run may end in errors that the specification
//! lists for the entry point, the second must be without. A case fails by a crash, a hang, another error, wrong results, or
//! what lives beside the things of a process without a fault. Which calls: those of Vulkan ([`vulkan`]), or with `--host` those
//! of the C library (`host`; on Linux).

// Some of the scenario is of `host` alone.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod host;
mod process;
mod scenario;
mod tally;
mod vulkan;

use process::Output;
use pumice_tests::rng::Rng;
use pumice_tests::Scratch;
use std::process::ExitCode;
use std::time::Instant;
use tally::Tally;

const USAGE: &str = "\
faults [--host] [--seconds S] [--seed SEED] [--only CALL] [--case CALL:NUMBER:CODE] [--patience S]

--host      calls of the C library in place of Vulkan's; a case may be CALL:NUMBER+:ERROR or SITUATION:NUMBER+ there
--seconds   stop after that long; each call with each code comes once before the rest (default: all cases)
--seed      which cases come first (default 1)
--only      cases of this call or situation alone
--case      one case, with all that its process says
--patience  seconds after which a process hangs (default 60)";

/// A call that fails.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The function, or the situation.
    pub name: String,
    /// Which call of it, counted from one.
    pub number: u64,
    /// Later ones as well.
    pub lasts: bool,
    /// The error that it returns; empty for a situation.
    pub error: String,
}

impl Case {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (name, number) = (parts.next()?.to_owned(), parts.next()?);
        Some(Self {
            name,
            number: number.trim_end_matches('+').parse().ok()?,
            lasts: number.ends_with('+'),
            error: parts.next().unwrap_or_default().to_owned(),
        })
    }

    fn text(&self) -> String {
        let lasts = if self.lasts { "+" } else { "" };
        let text = format!("{}:{}{lasts}:{}", self.name, self.number, self.error);
        text.trim_end_matches(':').to_owned()
    }
}

/// A kind of calls that can be had to fail.
pub trait Faults: Sync {
    /// Runs a child with a case (empty: none) and the objects that usually live.
    fn run(&self, case: &str, usual: &str, patience: u64) -> Output;
    /// The last call of a function that is tried.
    fn most(&self) -> u64;
    /// Whether the call came in the first run that was to fail there.
    fn came(&self, case: &Case, output: &Output) -> bool;
    /// Returns what is wrong with a case.
    fn judge(&self, case: &Case, output: &Output, without: &Output) -> Vec<String>;
}

struct Options {
    host: bool,
    seconds: f64,
    seed: u64,
    only: Option<String>,
    case: Option<String>,
    patience: u64,
}

fn options() -> Option<Options> {
    let mut options = Options {
        host: false,
        seconds: f64::INFINITY,
        seed: 1,
        only: None,
        case: None,
        patience: 60,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--host" {
            options.host = true;
            continue;
        }
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

/// All cases of a scenario, each call with each code once before the rest.
fn cases(without: &Output, faults: &dyn Faults, options: &Options) -> Vec<Case> {
    let mut random = Rng::new(options.seed, 0);
    let mut all: Vec<(u64, u64, Case)> = Vec::new();
    let mut add = |name: &str, count: u64, error: &str, lasts: bool| {
        if options.only.as_deref().is_some_and(|only| only != name) {
            return;
        }
        let count = count.min(faults.most());
        let first = random.below(count.max(1) as usize) as u64;
        all.extend((1..=count).map(|number| {
            let case = Case {
                name: name.to_owned(),
                number,
                lasts,
                error: error.to_owned(),
            };
            let turn = (number - 1 + count - first) % count;
            // What lasts has found most, so that comes first.
            let order = if lasts { 0 } else { random.bits() };
            (turn, order, case)
        }));
    };
    for line in without.after("first call ") {
        let mut words = line.split(' ');
        let (Some(name), Some(count), Some(codes)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        for code in codes.split(',') {
            add(name, count.parse().unwrap_or(0), code, false);
        }
    }
    for line in without.after("first situation ") {
        if let Some((name, count)) = process::living(line) {
            add(name, count as u64, "", true);
        }
    }
    all.sort();
    all.into_iter().map(|(_, _, case)| case).collect()
}

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(case) = host::job() {
        return process::child(&host::Calls::begin(&case));
    }
    if std::env::var_os(process::CHILD).is_some() {
        return process::child(&vulkan::Layer);
    }
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let place = Scratch::new("faults").expect("a directory");
    let good = match options.host {
        #[cfg(target_os = "linux")]
        true => all(&host::Host::new(&place), &options),
        #[cfg(not(target_os = "linux"))]
        true => {
            eprintln!("faults: --host is for Linux");
            false
        }
        false => all(&vulkan::Vulkan::new(&place), &options),
    };
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn all(faults: &dyn Faults, options: &Options) -> bool {
    let started = Instant::now();
    // The first one fills the caches.
    faults.run("", "", options.patience);
    let without = faults.run("", "", options.patience);
    if !without.is_faultless() {
        println!(
            "the scenario fails without a fault: {:?}\n{}",
            without.end, without.all
        );
        return false;
    }
    if let Some(text) = &options.case {
        let Some(case) = Case::parse(text) else {
            println!("{text}: no case");
            return false;
        };
        let output = faults.run(text, &without.usual(), options.patience);
        print!("{}", output.all);
        let wrong = faults.judge(&case, &output, &without);
        println!("{wrong:#?}");
        return wrong.is_empty();
    }
    let cases = cases(&without, faults, options);
    let total = cases.len();
    let tally = Tally::of(&cases, faults, &without, started, options);
    print!("{tally}");
    let (tried, failed) = (tally.tried(), tally.failed());
    println!(
        "faults: {tried} of {total} cases, {failed} failed, {:.0} s",
        started.elapsed().as_secs_f64()
    );
    failed == 0 && tried > 0
}

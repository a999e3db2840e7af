//! A scenario in a process of its own: the child's side, which tells in lines that begin with `@`, and the parent's, which reads
//! them.

use crate::scenario::{self, Outcome};
use opencl_sys as sys;
use pumice_tests::{call, finished};
use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// The environment variable that passes a child the objects that live in a process without a fault.
pub const CHILD: &str = "PUMICE_FAULTS_CHILD";

/// The two runs of a child: what can be counted, and what is done between them.
pub trait Watch {
    /// Returns the parts of the scenario besides those that every case has.
    fn parts(&self) -> &'static [scenario::Part] {
        &[]
    }
    /// Lines on what was called, what lives, and whether a call has failed.
    fn report(&self) -> Vec<String>;
    /// The first run is over.
    fn between(&self) {}
}

/// The report, once no more lives than without a fault: threads of the runtime let go of some things a little later.
fn settled(watch: &dyn Watch) -> Vec<String> {
    let usual = std::env::var(CHILD).unwrap_or_default();
    let usual: BTreeMap<&str, i64> = usual.lines().filter_map(living).collect();
    if usual.is_empty() {
        // The measure of all others: late releases must not be in it.
        std::thread::sleep(Duration::from_secs(1));
        return watch.report();
    }
    let until = Instant::now() + Duration::from_secs(2);
    loop {
        let lines = watch.report();
        let mut counts = lines
            .iter()
            .filter_map(|line| living(line.strip_prefix("living ")?));
        let more = counts.any(|(kind, count)| count > usual.get(kind).copied().unwrap_or(0));
        if !more || Instant::now() > until {
            return lines;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A kind of object and how many of it live.
pub fn living(line: &str) -> Option<(&str, i64)> {
    let (kind, count) = line.rsplit_once(' ')?;
    Some((kind, count.parse().ok()?))
}

/// The child: the scenario twice.
pub fn child(watch: &dyn Watch) -> ExitCode {
    let tell = |run: &str, outcome: &Outcome| {
        for error in &outcome.errors {
            println!("@{run} error {error}");
        }
        for problem in &outcome.problems {
            println!("@{run} problem {problem}");
        }
    };
    tell("first", &scenario::run(watch.parts()));
    watch.between();
    for line in watch.report() {
        println!("@first {line}");
    }
    tell("second", &scenario::run(watch.parts()));
    for line in settled(watch) {
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

/// The output of a child, or the reason why it did not end well.
pub struct Output {
    lines: Vec<String>,
    /// All of its output.
    pub all: String,
    /// How it ended, if not well.
    pub end: Option<String>,
}

impl Output {
    /// Returns the rest of each line that has this beginning.
    pub fn after<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines
            .iter()
            .filter_map(move |line| line.strip_prefix(begin))
    }

    /// Returns the objects that live after the second run.
    pub fn living(&self) -> BTreeMap<&str, i64> {
        self.after("second living ").filter_map(living).collect()
    }

    /// Returns the same as text for a child.
    pub fn usual(&self) -> String {
        let lines: Vec<&str> = self.after("second living ").collect();
        lines.join("\n")
    }

    /// Returns true if the child ended well and reported its calls, and no call failed.
    pub fn is_faultless(&self) -> bool {
        let mut wrong = self
            .lines
            .iter()
            .filter(|line| line.contains(" error ") || line.contains(" problem "));
        self.end.is_none() && wrong.next().is_none() && self.after("first call ").next().is_some()
    }

    /// Returns the problems that do not depend on the fault: the end, errors that are not listed,
    /// and wrong results.
    pub fn problems(&self) -> Vec<String> {
        let mut wrong: Vec<String> = self.end.iter().cloned().collect();
        if self.end.is_some() {
            let last: Vec<&str> = self.all.lines().rev().take(3).collect();
            wrong.push(last.join(" / "));
            return wrong;
        }
        for run in ["first", "second"] {
            let begin = format!("{run} problem ");
            wrong.extend(self.after(&begin).map(|text| format!("{run} run: {text}")));
        }
        wrong
    }

    /// Errors of the run without a fault.
    pub fn late_errors(&self) -> impl Iterator<Item = String> + '_ {
        self.after("second error ")
            .map(|error| format!("second run: {error}"))
    }

    /// Returns the objects that live in addition to the usual ones.
    pub fn leaked(&self, usual: &Self) -> Vec<String> {
        let usual = usual.living();
        let mut wrong = Vec::new();
        for (kind, count) in self.living() {
            let usual = usual.get(kind).copied().unwrap_or(0);
            if count > usual {
                wrong.push(format!("{count} of {kind} live, not {usual}"));
            }
        }
        wrong
    }
}

/// Returns a command that runs this program as a child, with the objects that usually live.
pub fn command(usual: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(CHILD, usual).env("PUMICE_VALIDATION", "0");
    command
}

/// Runs a child, which hangs if it takes so many seconds.
pub fn run(mut command: Command, patience: u64) -> Output {
    let Some(output) = finished(&mut command, Duration::from_secs(patience)) else {
        return Output {
            lines: Vec::new(),
            all: String::new(),
            end: Some("hangs".to_owned()),
        };
    };
    let all =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let lines = all[0].lines().filter_map(|line| line.strip_prefix('@'));
    Output {
        lines: lines.map(str::to_owned).collect(),
        end: (!output.status.success()).then(|| output.status.to_string()),
        all: all.concat(),
    }
}

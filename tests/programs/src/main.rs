//! Programs: random programs in OpenCL C, through the OpenCL loader, on every executor, each compared with an interpreter
//! of its syntax tree.
//!
//! A seed makes a program ([`generate`]), as a syntax tree ([`ast`]). The interpreter ([`interpret`]) carries it out and
//! refuses what has no defined result. Processes ([`executor`], [`child`]) build and run its source ([`print`]) on the CPU
//! device with vectors of each width and on Vulkan devices. What does not build, differs, crashes or hangs is made small
//! ([`shrink`]) and written as a case ([`case`]), which can be kept and run again. Exit status 0 if nothing did.

mod ast;
mod case;
mod child;
mod executor;
mod floats;
mod generate;
mod interpret;
mod judge;
mod names;
mod options;
mod print;
mod shrink;
#[cfg(test)]
mod tests;
mod types;

use judge::{Fault, Finding, Judge};
use options::{Options, USAGE};
use pumice_tests::rng::Rng;
use pumice_tests::Scratch;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::Instant;

/// State that the workers share.
struct Session {
    options: Options,
    scratch: Scratch,
    begin: Instant,
    next: AtomicU64,
    programs: AtomicU64,
    runs: AtomicU64,
    slowest: Mutex<(u64, u64)>,
    /// Failures so far, and how often.
    failures: Mutex<Vec<(Fault, u64)>>,
    /// How long the executors took, in milliseconds.
    times: Mutex<BTreeMap<String, u64>>,
    /// Programs without a defined result, by why.
    refused: Mutex<BTreeMap<&'static str, u64>>,
    over: AtomicBool,
    findings: AtomicU64,
}

impl Session {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.begin.elapsed() >= self.options.time
    }

    /// The executors of a program.
    ///
    /// Lavapipe takes half a minute to compile a kernel that enqueues others.
    fn chosen(&self, seed: u64, enqueues: bool) -> Vec<usize> {
        let executors = self.options.executors.iter().enumerate();
        let fits = |name: &str| !enqueues || name.starts_with("cpu");
        let mut list: Vec<usize> = executors
            .filter_map(|(number, name)| fits(name).then_some(number))
            .collect();
        let mut rng = Rng::new(seed, 0x6578);
        while list.len() > self.options.each {
            list.remove(rng.below(list.len()));
        }
        list
    }

    /// Runs programs until it is over.
    fn work(&self) -> Result<(), String> {
        let mut judge = Judge::new(&self.options, &self.scratch);
        while !self.is_over() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.options.count {
                break;
            }
            let seed = self.options.seed + number;
            let program = generate::generate(seed, self.options.locks, &self.options.without);
            if !names::in_order(&program) {
                return Err(format!("seed {seed}: names are not in order"));
            }
            if let Err(why) = interpret::run(&program, judge::LIKELY) {
                if let Ok(mut refused) = self.refused.lock() {
                    *refused.entry(why.0).or_default() += 1;
                }
                continue;
            }
            let chosen = self.chosen(seed, names::enqueues(&program));
            let programs = self.programs.fetch_add(1, Ordering::Relaxed) + 1;
            if programs % 100 == 0 {
                println!(
                    "{programs} programs, {:.0} s",
                    self.begin.elapsed().as_secs_f64()
                );
            }
            self.runs.fetch_add(chosen.len() as u64, Ordering::Relaxed);
            let found = judge.program(&program, &chosen)?;
            if let Ok(mut times) = self.times.lock() {
                for (name, milliseconds) in judge.take_times() {
                    *times.entry(name).or_default() += milliseconds;
                }
            }
            if let Ok(mut slowest) = self.slowest.lock() {
                *slowest = (*slowest).max((judge.milliseconds, seed));
            }
            if let Some(finding) = found {
                if self.is_known(&finding.fault) {
                    continue;
                }
                println!("seed {seed} on {}: {}", finding.executor, finding.fault);
                let finding = judge.shrink(finding, self.options.shrink)?;
                self.report(seed, &finding)?;
            }
        }
        Ok(())
    }

    /// Returns true if the same call failed for the same reason before, and remembers it otherwise.
    fn is_known(&self, fault: &Fault) -> bool {
        let (Fault::Fails(_), Ok(mut failures)) = (fault, self.failures.lock()) else {
            return false;
        };
        if let Some(known) = failures.iter_mut().find(|known| known.0.is_like(fault)) {
            known.1 += 1;
            return true;
        }
        failures.push((fault.clone(), 1));
        false
    }

    fn report(&self, seed: u64, finding: &Finding) -> Result<(), String> {
        let programs = self.programs.load(Ordering::Relaxed);
        let head = format!(
            "//! seed {seed}, program {programs}\n//! on {}: {}\n",
            finding.executor, finding.fault
        );
        match &self.options.out {
            Some(folder) => {
                let path = folder.join(format!("{seed}.cl"));
                std::fs::create_dir_all(folder)
                    .and_then(|()| std::fs::write(&path, head.clone() + &finding.case.text()))
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                println!("{}\n{head}", path.display());
            }
            None => println!("{head}{}", finding.case.text()),
        }
        if self.findings.fetch_add(1, Ordering::Relaxed) + 1 >= self.options.findings as u64 {
            self.over.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// All workers; how many findings there were.
    fn run(self) -> Result<u64, String> {
        let workers: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.options.workers)
                .map(|_| scope.spawn(|| self.work()))
                .collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a worker failed".to_owned()))
            };
            threads.into_iter().map(join).collect()
        });
        workers.into_iter().collect::<Result<(), String>>()?;
        let seconds = self.begin.elapsed().as_secs_f64();
        let (programs, findings) = (self.programs.into_inner(), self.findings.into_inner());
        let refused = self.refused.into_inner().unwrap_or_default();
        let (slowest, seed) = self.slowest.into_inner().unwrap_or_default();
        println!(
            "programs: {programs} programs, {} runs, {findings} findings, {seconds:.1} s ({:.1} programs/s), --seed {}; \
             {} refused; the slowest took {slowest} ms (seed {seed})",
            self.runs.into_inner(),
            programs as f64 / seconds,
            self.options.seed,
            refused.values().sum::<u64>(),
        );
        for (name, milliseconds) in self.times.into_inner().unwrap_or_default() {
            println!("  {name}: {:.1} s", milliseconds as f64 / 1000.0);
        }
        for (fault, count) in self.failures.into_inner().unwrap_or_default() {
            println!("  {count} times: {fault}");
        }
        for (why, count) in refused {
            println!("  refused: {count} for {why}");
        }
        Ok(findings)
    }
}

fn session(options: Options) -> Result<u64, String> {
    if options.print {
        let count = if options.count == u64::MAX {
            1
        } else {
            options.count
        };
        for seed in options.seed..options.seed + count {
            let program = generate::generate(seed, options.locks, &options.without);
            let outcome = interpret::run(&program, judge::LIKELY);
            let steps =
                outcome.map_or_else(|why| why.0.to_owned(), |results| results.steps.to_string());
            println!(
                "// seed {seed}, {:?}, {steps}\n{}",
                program.range,
                print::source(&program)
            );
        }
        return Ok(0);
    }
    let scratch = Scratch::new("programs").map_err(|error| error.to_string())?;
    if !options.files.is_empty() {
        return judge::files(&options, &scratch);
    }
    let session = Session {
        begin: Instant::now(),
        scratch,
        next: AtomicU64::new(0),
        programs: AtomicU64::new(0),
        runs: AtomicU64::new(0),
        slowest: Mutex::new((0, 0)),
        failures: Mutex::new(Vec::new()),
        times: Mutex::new(BTreeMap::new()),
        refused: Mutex::new(BTreeMap::new()),
        over: AtomicBool::new(false),
        findings: AtomicU64::new(0),
        options,
    };
    session.run()
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some(child::ARGUMENT) {
        if let Err(why) = child::main() {
            eprintln!("programs: {why}");
            std::process::exit(1);
        }
        return;
    }
    let Some(options) = Options::read(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    match session(options) {
        Ok(0) => {}
        Ok(_) => std::process::exit(1),
        Err(why) => {
            eprintln!("programs: {why}");
            std::process::exit(1);
        }
    }
}

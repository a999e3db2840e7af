//! Model: short random programs over the OpenCL API, each compared with the same actions carried out one after the other.
//!
//! A seed makes a program ([`generate`]), as data ([`program`]) that can be printed and read ([`text`], [`parse`]). The
//! planner ([`plan`]) lets in only what the specification defines the result of. Processes run the programs ([`worker`],
//! [`child`], [`run`]) and compare what they see with the model ([`expect`]). What differs, crashes or hangs is made small
//! ([`shrink`]) and printed. Exit status 0 if nothing did.
//!
//! Gates ([`gates`]) make *when* something happens a part of what programs show. What pending commands cost is fitted by itself
//! ([`cost`]).

mod access;
mod child;
mod choose;
mod command;
mod cost;
mod expect;
mod fault;
mod finding;
mod gates;
mod generate;
mod hostile;
mod options;
mod order;
mod output;
mod parse;
mod plan;
mod program;
mod record;
mod run;
mod shrink;
mod simpler;
mod stage;
#[cfg(test)]
mod tests;
mod text;
mod threads;
mod valid;
mod watch;
mod worker;
mod world;

use finding::Finding;
use generate::{generate, Scope};
use options::{Options, USAGE};
use plan::Planner;
use program::Program;
use pumice_tests::rng::Rng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::Instant;
use worker::{Outcome, Worker};

/// The state that workers share.
struct Session {
    options: Options,
    begin: Instant,
    next: AtomicU64,
    programs: AtomicU64,
    actions: AtomicU64,
    over: AtomicBool,
    findings: Mutex<Vec<Finding>>,
}

/// The seed of a program of a run.
fn seed_of(first: u64, number: u64) -> u64 {
    match number {
        0 => first,
        _ => Rng::new(first, number).bits() & 0xffff_ffff_ffff,
    }
}

impl Session {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.begin.elapsed() >= self.options.time
    }

    /// Runs programs until it is over.
    fn work(&self) -> Result<(), String> {
        let mut worker = Worker::new(self.options.setting, self.options.patience)?;
        let scope = Scope {
            caps: worker.caps,
            without: self.options.without.clone(),
            with: self.options.with.clone(),
        };
        while !self.is_over() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.options.programs {
                break;
            }
            self.programs.fetch_add(1, Ordering::Relaxed);
            let program = generate(seed_of(self.options.seed, number), &scope);
            let actions = program.actions.len() as u64;
            self.actions.fetch_add(actions, Ordering::Relaxed);
            match worker.run(&program)? {
                Outcome::Same => {}
                outcome => self.found(&mut worker, number + 1, program, outcome)?,
            }
        }
        worker.close()
    }

    fn found(
        &self,
        worker: &mut Worker,
        number: u64,
        program: Program,
        outcome: Outcome,
    ) -> Result<(), String> {
        let finding = Finding::new(worker, number, program, outcome, self.options.shrink)?;
        let Ok(mut findings) = self.findings.lock() else {
            return Err("another worker failed".to_owned());
        };
        findings.push(finding);
        println!(
            "finding {}: {}",
            findings.len(),
            findings[findings.len() - 1]
        );
        if findings.len() >= self.options.findings {
            self.over.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// All workers; how many findings there were.
    fn run(self) -> Result<usize, String> {
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
        let findings = self.findings.into_inner().unwrap_or_default();
        let seconds = self.begin.elapsed().as_secs_f64();
        let programs = self.programs.into_inner();
        println!(
            "model: {programs} programs, {} findings, {} actions, {seconds:.1} s ({:.0} programs/s), --seed {}",
            findings.len(),
            self.actions.into_inner(),
            programs as f64 / seconds,
            self.options.seed,
        );
        for (number, kind) in finding::kinds(&findings) {
            println!("  from program {number} on: {kind}");
        }
        workers.into_iter().collect::<Result<(), String>>()?;
        Ok(findings.len())
    }
}

/// Runs one program many times.
fn single(options: &Options, program: &Program) -> Result<usize, String> {
    print!("{program}");
    if let Err((index, why)) = Planner::check(program) {
        return Err(format!("not legal: action {index}: {why:?}"));
    }
    if options.print {
        return Ok(0);
    }
    let mut worker = Worker::new(options.setting, options.patience)?;
    let mut wrong = 0;
    for _ in 0..options.repeat {
        match worker.run(program)? {
            Outcome::Same => {}
            outcome => {
                wrong += 1;
                println!("{outcome:?}");
            }
        }
    }
    println!("model: {wrong} of {} runs differ", options.repeat);
    Ok(wrong)
}

fn scope(options: &Options) -> Result<Scope, String> {
    Ok(Scope {
        caps: Worker::new(options.setting, options.patience)?.caps,
        without: options.without.clone(),
        with: options.with.clone(),
    })
}

fn session(options: Options) -> Result<usize, String> {
    if options.cost {
        let (which, time) = (options.setting.which, options.time);
        return cost::run(
            which,
            options.seed,
            options.programs,
            time,
            options.patience,
        );
    }
    if let Some(path) = &options.file {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        return single(&options, &parse::program(&text)?);
    }
    if let Some(seed) = options.only {
        return single(&options, &generate(seed, &scope(&options)?));
    }
    if options.print {
        let scope = scope(&options)?;
        let programs = if options.programs == u64::MAX {
            1
        } else {
            options.programs
        };
        for number in 0..programs {
            println!("{}", generate(seed_of(options.seed, number), &scope));
        }
        return Ok(0);
    }
    let session = Session {
        begin: Instant::now(),
        next: AtomicU64::new(0),
        programs: AtomicU64::new(0),
        actions: AtomicU64::new(0),
        over: AtomicBool::new(false),
        findings: Mutex::new(Vec::new()),
        options,
    };
    session.run()
}

fn main() {
    let args = std::env::args().skip(1);
    if std::env::args().nth(1).as_deref() == Some(child::ARGUMENT) {
        match child::Setting::from_words(args.skip(1)) {
            Some(setting) => child::main(setting),
            None => std::process::exit(2),
        }
        return;
    }
    if std::env::args().nth(1).as_deref() == Some(cost::ARGUMENT) {
        let words: Vec<u64> = args.skip(1).filter_map(|word| word.parse().ok()).collect();
        let [most, parts, seed] = words[..] else {
            std::process::exit(2);
        };
        let which = world::Which {
            most: most as usize,
            parts: parts as usize,
        };
        if cost::child(which, seed).is_err() {
            std::process::exit(1);
        }
        return;
    }
    let Some(options) = Options::read(args) else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    match session(options) {
        Ok(0) => {}
        Ok(_) => std::process::exit(1),
        Err(why) => {
            eprintln!("model: {why}");
            std::process::exit(1);
        }
    }
}

//! Sequences: random calls of the OpenCL API, most of them with something wrong in them, and what must hold whatever they are.
//!
//! A seed makes a program ([`pumice_tests::sequences`]); a process of its own runs it, since a crash, a hang and a panic are
//! findings, too. What does not hold is made small ([`shrink`]) and printed. (Results of programs that are right are the matter of
//! `model`; the fuzzer's programs, `ci/fuzz calls`, are made in the same way.)

mod shrink;

use pumice_tests::rng::Rng;
use pumice_tests::sequences::program::{Bytes, Program};
use pumice_tests::sequences::run;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

const USAGE: &str = "\
sequences [--seconds S] [--seed SEED] [--only SEED] [--file PATH] [--input PATH] [--print SEED] [--shrink N] [--patience S]

--seconds   how long (default 10)
--seed      of the first program (default: from the clock; printed)
--only      the program of this seed alone
--file      the program in this file alone
--input     the program of this input of the fuzzer alone
--print     print the program of this seed
--shrink    programs to try in order to make a finding small (default 600)
--patience  seconds after which a program hangs (default 20)";

const CHILD: &str = "--child";
/// The text of a panic in Rust, which the application gets as an error.
const PANIC: &str = " panicked at ";
/// Before the number of calls that succeeded, where nothing is wrong.
const GOOD: &str = "good ";
/// Programs that a process runs before there is a new one.
const MANY: u32 = 400;
/// Runs of a program with several threads before it counts as one that does not show a finding.
const AGAIN: usize = 20;
/// Findings after which it is over.
const ENOUGH: usize = 5;

/// Runs programs as text from standard input, each ended by `go`, and answers each with a line.
fn child() {
    let answer = |line: &str| {
        let mut out = std::io::stdout().lock();
        // Kernels print there, too.
        let _ = writeln!(out, "\n@{line}").and_then(|()| out.flush());
    };
    pumice_tests::cl();
    let mut text = String::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line != "go" {
            text += &line;
            text.push('\n');
            continue;
        }
        match Program::parse(&text).map(|program| run(&program)) {
            Ok((good, wrong)) if wrong.is_empty() => answer(&format!("{GOOD}{good}")),
            Ok((_, wrong)) => answer(&wrong.join("; ")),
            Err(error) => answer(&error),
        }
        text.clear();
    }
}

/// The process that runs programs.
struct Worker {
    process: Child,
    to: ChildStdin,
    from: Receiver<String>,
    left: u32,
}

impl Worker {
    fn new() -> Self {
        // Both outputs in one pipe: what is said of a panic comes before the answer.
        let (out, input) = std::io::pipe().expect("a pipe");
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .arg(CHILD)
            .env("PUMICE_LOG", "off")
            .env("PUMICE_LOADER", pumice_tests::NO_LOADER)
            .stdin(Stdio::piped())
            .stdout(input.try_clone().expect("a pipe"))
            .stderr(input)
            .spawn()
            .expect("the child runs");
        let to = process.stdin.take();
        let (send, from) = std::sync::mpsc::channel();
        let out = BufReader::new(out);
        std::thread::spawn(move || {
            let mut panic = None;
            for line in out.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                if let Some(at) = line.find(PANIC) {
                    panic.get_or_insert_with(|| line[at..].trim().to_owned());
                } else if let Some(answer) = line.strip_prefix('@') {
                    let answer = panic.take().unwrap_or_else(|| answer.to_owned());
                    if send.send(answer).is_err() {
                        break;
                    }
                }
            }
        });
        Self {
            process,
            to: to.expect("its input"),
            from,
            left: MANY,
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs programs, in one process after another.
struct Runner {
    worker: Option<Worker>,
    patience: Duration,
    /// Calls that succeeded, in programs with which nothing was wrong.
    good: u64,
}

impl Runner {
    /// Runs a program. Returns what is wrong with it, or `None`.
    fn run(&mut self, program: &Program) -> Option<String> {
        let mut worker = self.worker.take().unwrap_or_else(Worker::new);
        // It may be gone: then there is no answer.
        let _ = writeln!(worker.to, "{program}go").and_then(|()| worker.to.flush());
        match worker.from.recv_timeout(self.patience) {
            Ok(answer) => {
                worker.left -= 1;
                let good = answer
                    .strip_prefix(GOOD)
                    .and_then(|n| n.parse::<u64>().ok());
                self.good += good.unwrap_or(0);
                let wrong = good.is_none().then_some(answer);
                if worker.left > 0 && wrong.is_none() {
                    self.worker = Some(worker);
                }
                wrong
            }
            Err(RecvTimeoutError::Timeout) => Some("hangs".to_owned()),
            Err(RecvTimeoutError::Disconnected) => {
                let status = worker.process.wait().expect("its status");
                Some(format!("ends: {status}"))
            }
        }
    }
}

/// Returns the class of an error: the words before the first number.
fn kind(wrong: &str) -> &str {
    let number = |c: char| c == ';' || c.is_ascii_digit();
    // How a process ends is a number, too.
    match wrong.starts_with("ends") {
        true => wrong,
        false => wrong.split(number).next().unwrap_or(wrong),
    }
}

/// Whether a program shows something, and the smallest that shows the same.
fn judge(runner: &mut Runner, program: Program, budget: usize) -> Result<bool, String> {
    let Some(wrong) = runner.run(&program) else {
        return Ok(false);
    };
    let wanted = kind(&wrong).to_owned();
    let calls = program.0.len();
    // What several threads do is not the same each time.
    let times = if program.is_threaded() { AGAIN } else { 1 };
    let small = shrink::shrink(program, budget, |next| {
        let mut runs = (0..times).map(|_| runner.run(next));
        Ok(runs.any(|wrong| wrong.is_some_and(|wrong| kind(&wrong) == wanted)))
    })?;
    println!("{wrong}\n  smallest of {calls} calls:");
    small
        .to_string()
        .lines()
        .for_each(|line| println!("    {line}"));
    Ok(true)
}

fn session() -> Result<usize, String> {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut seed = clock.map_or(1, |time| u64::from(time.subsec_nanos()));
    let (mut seconds, mut budget, mut patience) = (10.0, 600, 20);
    let (mut only, mut file, mut input) = (None, None, None);
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or(USAGE)?;
        let number = || value.parse::<u64>().map_err(|_| USAGE.to_owned());
        match name.as_str() {
            "--seconds" => seconds = value.parse().map_err(|_| USAGE)?,
            "--seed" => seed = number()?,
            "--only" => only = Some(number()?),
            "--file" => file = Some(value),
            "--input" => input = Some(value),
            "--print" => {
                print!("{}", Program::generate(number()?));
                return Ok(0);
            }
            "--shrink" => budget = number()? as usize,
            "--patience" => patience = number()?,
            _ => return Err(USAGE.to_owned()),
        }
    }
    let mut runner = Runner {
        worker: None,
        patience: Duration::from_secs(patience),
        good: 0,
    };
    if let Some(path) = file {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        return judge(&mut runner, Program::parse(&text)?, budget).map(usize::from);
    }
    if let Some(path) = input {
        let bytes = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
        let program = Program::from_choices(&mut Bytes::new(&bytes), 1);
        return judge(&mut runner, program, budget).map(usize::from);
    }
    if let Some(seed) = only {
        return judge(&mut runner, Program::generate(seed), budget).map(usize::from);
    }
    let (begun, mut programs, mut made, mut found) = (Instant::now(), 0u64, 0, 0);
    while begun.elapsed().as_secs_f64() < seconds && found < ENOUGH {
        let this = Rng::new(seed, programs).bits() & 0xffff_ffff_ffff;
        let program = Program::generate(this);
        programs += 1;
        made += program.0.len();
        if judge(&mut runner, program, budget)? {
            found += 1;
            println!("  (--only {this})");
        }
    }
    println!(
        "sequences: {programs} programs, {made} calls, {} of them succeeded, {found} findings, {:.0} s, --seed {seed}",
        runner.good,
        begun.elapsed().as_secs_f64()
    );
    Ok(found)
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(CHILD) {
        child();
        return ExitCode::SUCCESS;
    }
    match session() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::from(2)
        }
    }
}

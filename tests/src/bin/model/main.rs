//! Model: short random programs over the API, each compared with what it would leave if one action ran after the other.
//!
//! A program ([`program`]) is data: memories of all kinds, queues, actions. It is made ([`generate`]) so that the
//! specification defines its outcome: what must come after something is made to ([`scene`], [`build`]). It is run
//! ([`run`]) in a process of its own ([`peer`]), with the model beside it ([`contents`]). One that goes wrong is made
//! smaller ([`shrink`]) and printed ([`text`]).
//!
//! Exit status 0: no program went wrong, crashed or hung.

mod access;
mod build;
mod contents;
mod edit;
mod generate;
mod objects;
mod peer;
mod program;
mod run;
mod scene;
mod shrink;
mod text;
mod world;

use edit::Name;
use peer::{Answer, Peer, Way};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const USAGE: &str = "\
model [--seconds S] [--programs N] [--workers N] [--devices N] [--seed SEED] [--findings N] [--shrink S] [--patience S]
      [--without NAMES] [--only NAME [--times N]]

--seconds   how long (default 10, without --programs)
--programs  how many
--workers   how many processes (default: as many as processors)
--devices   how many of the platform's devices share the context (default 1)
--seed      where to begin (default: from the clock; printed)
--findings  stop after so many (default 3)
--shrink    seconds for making each of them smaller (default 30)
--patience  seconds after which a program hangs (default 30)
--without   kinds of actions and memories to leave out, as comma-separated names
--only      one program, by the name that a finding gives it, so many times (default 20)";

struct Options {
    seconds: f64,
    programs: u64,
    workers: usize,
    seed: u64,
    findings: usize,
    shrink: u64,
    way: Way,
    only: Option<Name>,
    times: usize,
}

fn options() -> Option<Options> {
    let clock = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |time| time.as_nanos() as u64 & 0xffff_ffff);
    let mut options = Options {
        seconds: f64::INFINITY,
        programs: u64::MAX,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        seed: clock,
        findings: 3,
        shrink: 30,
        way: Way {
            devices: 1,
            without: String::new(),
            patience: Duration::from_secs(30),
        },
        only: None,
        times: 20,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next()?;
        match name.as_str() {
            "--seconds" => options.seconds = value.parse().ok()?,
            "--programs" => options.programs = value.parse().ok()?,
            "--workers" => options.workers = value.parse().ok()?,
            "--devices" => options.way.devices = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--findings" => options.findings = value.parse().ok()?,
            "--shrink" => options.shrink = value.parse().ok()?,
            "--patience" => options.way.patience = Duration::from_secs(value.parse().ok()?),
            "--without" => options.way.without = value,
            "--only" => options.only = Some(Name::read(&value)?),
            "--times" => options.times = value.parse().ok()?,
            _ => return None,
        }
    }
    if options.seconds.is_infinite() && options.programs == u64::MAX {
        options.seconds = 10.0;
    }
    Some(options)
}

/// What all workers share.
struct Work {
    next: AtomicU64,
    actions: AtomicU64,
    findings: Mutex<usize>,
    until: Option<Instant>,
}

fn tell(what: &Answer) -> String {
    match what {
        Answer::Good(_) => "right".into(),
        Answer::Bad(what) => what.clone(),
        Answer::Crashed(how) => format!("the process ended: {how}"),
        Answer::Hung => "it hangs".into(),
    }
}

fn work(options: &Options, work: &Work) {
    let mut peer = Peer::new(options.way.clone());
    loop {
        let over = work.until.is_some_and(|until| Instant::now() >= until);
        if over || *work.findings.lock().expect("no worker has failed") >= options.findings {
            break;
        }
        let index = work.next.fetch_add(1, Ordering::Relaxed);
        if index >= options.programs {
            break;
        }
        let name = Name {
            seed: options.seed.wrapping_add(index),
            edits: Vec::new(),
        };
        match peer.run(&name) {
            Answer::Good(actions) => {
                work.actions.fetch_add(actions as u64, Ordering::Relaxed);
            }
            wrong => {
                let number = {
                    let mut findings = work.findings.lock().expect("no worker has failed");
                    *findings += 1;
                    *findings
                };
                report(options, &mut peer, &name, number, index, &wrong);
            }
        }
    }
    if !peer.end() {
        println!("model: a process did not end well");
        *work.findings.lock().expect("no worker has failed") += 1;
    }
}

/// Prints a finding and the smallest program that shows it.
fn report(
    options: &Options,
    peer: &mut Peer,
    name: &Name,
    number: usize,
    index: u64,
    wrong: &Answer,
) {
    let (program, what) = (name.write(), tell(wrong));
    println!("model: finding {number}, after {index} programs: --only {program}: {what}");
    let actions = peer.show(name).len();
    let small = shrink::shrink(peer, name, actions, Duration::from_secs(options.shrink));
    let answers = (0..options.times).map(|_| peer.run(&small));
    let wrong: Vec<Answer> = answers.filter(|a| !matches!(a, Answer::Good(_))).collect();
    let last = wrong.last().map_or("right now".into(), tell);
    let (small_name, times) = (small.write(), options.times);
    let text = peer.show(&small).join("\n");
    println!(
        "model: finding {number}, --only {small_name}: wrong {} of {times} times: {last}\n{text}",
        wrong.len()
    );
}

fn repeat(options: &Options, name: &Name) -> i32 {
    let mut peer = Peer::new(options.way.clone());
    println!("{}", peer.show(name).join("\n"));
    let mut wrong = 0;
    for _ in 0..options.times {
        let answer = peer.run(name);
        if !matches!(answer, Answer::Good(_)) {
            wrong += 1;
            println!("{}", tell(&answer));
        }
    }
    println!("model: wrong {wrong} of {} times", options.times);
    i32::from(wrong > 0)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [peer, devices, without] = args.as_slice() {
        if peer == "--peer" {
            peer::serve(devices.parse().unwrap_or(1), without);
            return;
        }
    }
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    // It looks at the use of Vulkan, which the other tests exercise; what is looked for here it slows down.
    if std::env::var_os("PUMICE_VALIDATION").is_none() {
        std::env::set_var("PUMICE_VALIDATION", "0");
    }
    if let Some(name) = &options.only {
        std::process::exit(repeat(&options, name));
    }
    let began = Instant::now();
    let seconds = options.seconds;
    let shared = Work {
        next: AtomicU64::new(0),
        actions: AtomicU64::new(0),
        findings: Mutex::new(0),
        until: seconds
            .is_finite()
            .then(|| began + Duration::from_secs_f64(seconds)),
    };
    let mut first = Peer::new(options.way.clone());
    println!(
        "model: --seed {}, {} workers, {}",
        options.seed,
        options.workers,
        first.abilities()
    );
    first.end();
    std::thread::scope(|scope| {
        for _ in 0..options.workers {
            scope.spawn(|| work(&options, &shared));
        }
    });
    let programs = shared.next.load(Ordering::Relaxed).min(options.programs);
    let findings = *shared.findings.lock().expect("no worker has failed");
    println!(
        "model: {programs} programs, {} actions, {findings} findings, {:.0} s",
        shared.actions.load(Ordering::Relaxed),
        began.elapsed().as_secs_f64()
    );
    std::process::exit(i32::from(findings > 0));
}

//! Cases side by side, and what came of them.

use crate::process::Output;
use crate::{Case, Faults, Options};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The outcome of a case.
#[derive(Clone, Copy)]
enum Outcome {
    /// The case ended in an error that the specification lists.
    Error,
    /// The case had no error.
    NoError,
    /// Something was wrong, and was printed.
    Failed,
    /// The call did not come: a lost race of two threads, a look at a semaphore less than without a fault.
    NotReached,
}

/// The number of cases with each [`Outcome`], by call and code.
#[derive(Default)]
pub struct Tally<'a>(BTreeMap<(&'a str, &'a str), [usize; 4]>);

impl<'a> Tally<'a> {
    /// Runs cases until the time that the options give has passed since it started. One more at a time than there are
    /// processors: half of a case is waiting, for a thread that ends or a device that answers.
    pub fn of(
        cases: &'a [Case],
        faults: &dyn Faults,
        without: &Output,
        started: Instant,
        options: &Options,
    ) -> Self {
        let usual = without.usual();
        let next = AtomicUsize::new(0);
        let tally = Mutex::new(Self::default());
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..=processors {
                scope.spawn(|| {
                    while started.elapsed().as_secs_f64() <= options.seconds {
                        let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) else {
                            break;
                        };
                        let output = faults.run(&case.text(), &usual, options.patience);
                        let outcome = outcome(case, faults, without, &output);
                        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                        let row = tally.0.entry((&case.name, &case.error)).or_default();
                        row[outcome as usize] += 1;
                    }
                });
            }
        });
        tally.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn sum(&self, outcome: Outcome) -> usize {
        self.0.values().map(|row| row[outcome as usize]).sum()
    }

    /// How many cases failed.
    pub fn failed(&self) -> usize {
        self.sum(Outcome::Failed)
    }

    /// How many cases were run.
    pub fn tried(&self) -> usize {
        self.0.values().flatten().sum()
    }
}

impl fmt::Display for Tally<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "{:34} {:>12} {:>6} {:>6} {:>8} {:>6} {:>11}",
            "call", "code", "tried", "error", "no error", "failed", "not reached"
        )?;
        for ((name, code), [error, none, failed, gone]) in &self.0 {
            let tried = error + none + failed;
            writeln!(
                f,
                "{name:34} {code:>12} {tried:>6} {error:>6} {none:>8} {failed:>6} {gone:>11}"
            )?;
        }
        Ok(())
    }
}

/// Returns the outcome of a case from the output of its process. Prints what is wrong with it.
fn outcome(case: &Case, faults: &dyn Faults, without: &Output, output: &Output) -> Outcome {
    if output.end.is_none() && !faults.came(case, output) {
        return Outcome::NotReached;
    }
    let wrong = faults.judge(case, output, without);
    for problem in &wrong {
        println!("{}: {problem}", case.text());
    }
    let error = output.after("first error ").next().is_some();
    match (wrong.is_empty(), error) {
        (false, _) => Outcome::Failed,
        (true, true) => Outcome::Error,
        (true, false) => Outcome::NoError,
    }
}

//! Makes a program that shows a fault as small as it gets: tries edits ([`crate::simpler`]) as long as one helps.

use crate::program::Program;
use crate::simpler::{apply, edits};
use crate::worker::Outcome;

/// Runs programs.
pub trait Runs {
    /// Runs a program once.
    fn run(&mut self, program: &Program) -> Result<Outcome, String>;
}

impl Runs for crate::worker::Worker {
    fn run(&mut self, program: &Program) -> Result<Outcome, String> {
        Self::run(self, program)
    }
}

/// Runs a program up to so many times. What it shows, if it does.
pub fn shows(runs: &mut impl Runs, program: &Program, times: usize) -> Result<Outcome, String> {
    for _ in 0..times {
        let outcome = runs.run(program)?;
        if outcome != Outcome::Same {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Same)
}

/// The smallest program found that shows something, and what it shows. `times`: how often each is run; `budget`: how many
/// are tried.
pub fn shrink(
    runs: &mut impl Runs,
    program: Program,
    outcome: Outcome,
    times: usize,
    budget: usize,
) -> Result<(Program, Outcome), String> {
    let (mut best, mut shown, mut tried) = (program, outcome, 0);
    let mut at = 0;
    let mut list = edits(&best);
    // Edits that did nothing since the last one that did.
    let mut idle = 0;
    while idle < list.len() && tried < budget {
        let edit = &list[at % list.len()];
        at += 1;
        idle += 1;
        let Some(next) = apply(&best, edit) else {
            continue;
        };
        tried += 1;
        let outcome = shows(runs, &next, times)?;
        if outcome.is_like(&shown) {
            let again = at % list.len();
            (best, shown) = (next, outcome);
            list = edits(&best);
            // Go on where it was, as what was tried before will not help now either.
            at = again.min(list.len());
            idle = 0;
        }
    }
    Ok((best, shown))
}

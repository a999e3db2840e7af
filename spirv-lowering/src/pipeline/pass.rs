//! Passes as data, and how lists of them are run. Every pass goes through [`Runner::run`], which
//! times, verifies and dumps it, and can skip it by name or by number.

use super::lowering::Lowering;
use crate::analysis::control_flow::Analyses;
use crate::error::{LowerError, Result};
use crate::ir::function::Function;
use crate::ir::verify::rules::Rule;
use crate::ir::verify::{self};
use crate::options::Options;
use crate::passes::{clean_up, CleanUp};
use std::time::Instant;

/// A pass as data.
pub struct Pass {
    /// The name, which is that of its file.
    pub name: &'static str,
    /// Set if a kernel cannot be lowered without it.
    pub needed: bool,
    /// Set if it runs for the functions that a kernel calls, too.
    pub callees: bool,
    /// Returns true for the kernels and targets that it runs for.
    pub when: fn(&Function, &Lowering) -> bool,
    /// Runs the pass. It returns false if it changed nothing.
    pub run: fn(&mut Function, &mut Lowering) -> Result<bool>,
    /// The rules that hold after it.
    pub leaves: &'static [Rule],
}

/// An entry of a list.
pub enum Step {
    /// A pass.
    Pass(Pass),
    /// [`CLEAN_UP`](crate::passes::CLEAN_UP) until nothing changes, if anything has changed since
    /// the last clean-up.
    CleanUp,
}

/// Runs lists of passes on one function.
pub struct Runner<'o, 'a> {
    /// The options of the compilation.
    pub options: &'o mut Options<'a>,
    /// Set if the verifier runs after each pass.
    verify: bool,
    /// The progress of the current function.
    progress: Progress,
    /// The analyses that passes of the clean-up share.
    analyses: Analyses,
}

/// The progress of a function through the passes.
#[derive(Default)]
pub struct Progress {
    /// The rules that passes have established.
    rules: Vec<Rule>,
    /// Set if anything has changed since the last clean-up.
    changed: bool,
}

impl<'o, 'a> Runner<'o, 'a> {
    /// Creates a runner for an inlined function.
    pub fn new(options: &'o mut Options<'a>) -> Self {
        Self {
            verify: options.verify || cfg!(debug_assertions),
            options,
            progress: Progress::default(),
            analyses: Analyses::default(),
        }
    }

    /// Starts to verify another function, which may call functions if `has_calls` is true.
    pub fn begin(&mut self, func: &Function, has_calls: bool) -> Result<()> {
        self.progress = Progress {
            rules: match has_calls {
                true => Vec::new(),
                false => vec![Rule::NoCalls],
            },
            changed: true,
        };
        self.after("inline", func)
    }

    /// Stops with a function, which [`Self::resume`] continues later.
    pub fn leave(&mut self) -> Progress {
        std::mem::take(&mut self.progress)
    }

    /// Continues with a function that was interrupted.
    pub fn resume(&mut self, progress: Progress) {
        self.progress = progress;
    }

    /// Runs a list of passes.
    pub fn run(
        &mut self,
        list: &[Step],
        func: &mut Function,
        lowering: &mut Lowering,
    ) -> Result<()> {
        for step in list {
            match step {
                Step::CleanUp if self.progress.changed => self.clean_up(func)?,
                Step::CleanUp => {}
                Step::Pass(pass) => self.pass(pass, func, lowering)?,
            }
        }
        Ok(())
    }

    fn pass(&mut self, pass: &Pass, func: &mut Function, lowering: &mut Lowering) -> Result<()> {
        if lowering.is_callee && !pass.callees {
            return Ok(());
        }
        let holds = |rule: &&Rule| match **rule {
            // Functions that are called keep their parameters.
            Rule::NoArguments => !lowering.is_callee,
            Rule::NoInt16 => !lowering.target.small_ints,
            Rule::NoInt64 => !lowering.target.int64,
            _ => true,
        };
        let rules: Vec<Rule> = pass.leaves.iter().filter(holds).copied().collect();
        if !(pass.when)(func, lowering) {
            self.progress.rules.extend(rules);
            return Ok(());
        }
        if !self.options.admits(pass.name, pass.needed) {
            return Ok(());
        }
        self.progress.changed |= self.time(pass.name, |_| (pass.run)(func, lowering))?;
        self.progress.rules.extend(rules);
        self.after(pass.name, func)
    }

    fn clean_up(&mut self, func: &mut Function) -> Result<()> {
        self.progress.changed = false;
        clean_up(func, &mut |&CleanUp { name, run }, func| {
            if !self.options.admits(name, false) {
                return Ok(false);
            }
            let changed = self.time(name, |this| run(func, &mut this.analyses));
            self.after(name, func)?;
            Ok(changed)
        })?;
        Ok(())
    }

    /// Adds the time that `f` takes to the total of a name.
    pub fn time<T>(&mut self, name: &'static str, f: impl FnOnce(&mut Self) -> T) -> T {
        if self.options.timings.is_none() {
            return f(self);
        }
        let start = Instant::now();
        let result = f(self);
        let took = start.elapsed();
        if let Some(timings) = self.options.timings.as_deref_mut() {
            match timings.iter_mut().find(|(other, _)| *other == name) {
                Some((_, total)) => *total += took,
                None => timings.push((name, took)),
            }
        }
        result
    }

    fn after(&mut self, name: &'static str, func: &Function) -> Result<()> {
        if let Some(dump) = self.options.dump.as_deref_mut() {
            dump(name, func);
        }
        if !self.verify {
            return Ok(());
        }
        let wrong = |what: String| LowerError::internal(format!("after {name}: {what}"));
        verify::verify_standalone(func).map_err(|e| wrong(e.to_string()))?;
        for rule in &self.progress.rules {
            rule.check(func).map_err(wrong)?;
        }
        Ok(())
    }
}

//! Runs programs on executors and says what is wrong with what comes out.

use crate::ast::Program;
use crate::case::{Case, Expected};
use crate::executor::{Answer, Executor};
use crate::interpret;
use crate::options::Options;
use crate::shrink::shrink;
use std::fmt;
use std::path::Path;

/// The size of sub-groups that programs are tried with first.
pub const LIKELY: usize = 8;

/// A fault that a program shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A call failed, such as the build.
    Fails(String),
    Differs(String),
    Crash(String),
    Hang,
    Slow(u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fails(why) => write!(f, "fails: {why}"),
            Self::Differs(how) => write!(f, "differs: {how}"),
            Self::Crash(how) => write!(f, "crash: {how}"),
            Self::Hang => f.write_str("no end"),
            Self::Slow(milliseconds) => write!(f, "takes {milliseconds} ms"),
        }
    }
}

impl Fault {
    /// The two are of one sort. Of failures the messages are, but for numbers.
    pub fn is_like(&self, other: &Self) -> bool {
        // Warnings come first.
        let words = |text: &str| {
            let error = text.find(" error: ").map_or(text, |at| &text[at..]);
            // Without the names of functions.
            let parts = error.split('`').step_by(2).flat_map(str::chars);
            let letters = parts.filter(|c| !c.is_ascii_digit());
            letters.take(90).collect::<String>()
        };
        match (self, other) {
            (Self::Fails(a), Self::Fails(b)) => words(a) == words(b),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// A program that shows a fault.
pub struct Finding {
    pub program: Program,
    pub case: Case,
    pub executor: String,
    pub fault: Fault,
}

/// Runs programs on its executors.
pub struct Judge {
    executors: Vec<Executor>,
    slow: u64,
    /// How long the slowest executor took for the last program.
    pub milliseconds: u64,
    times: Vec<(String, u64)>,
}

/// Returns the fault that an answer shows.
fn fault(
    answer: Answer,
    slow: u64,
    expected: &mut dyn FnMut(usize) -> Result<Expected, String>,
) -> Result<Option<Fault>, String> {
    Ok(match answer {
        Answer::Failed(why) => Some(Fault::Fails(why)),
        Answer::Crash(how) => Some(Fault::Crash(how)),
        Answer::Hang => Some(Fault::Hang),
        Answer::Skipped => None,
        Answer::Done {
            milliseconds,
            sub_group,
            buffers,
            lines,
        } => match expected(sub_group)?.difference(&buffers, &lines) {
            Some(how) => Some(Fault::Differs(how)),
            None => (milliseconds > slow).then_some(Fault::Slow(milliseconds)),
        },
    })
}

impl Judge {
    /// With the executors that are asked for.
    pub fn new(options: &Options, scratch: &Path) -> Self {
        let executor =
            |name: &String| Executor::new(name, &scratch.join("cache"), options.patience);
        Self {
            executors: options.executors.iter().map(executor).collect(),
            slow: options.slow,
            milliseconds: 0,
            times: Vec::new(),
        }
    }

    /// How long executors took since the last time, in milliseconds.
    pub fn take_times(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.times)
    }

    /// Runs a program on one executor: what is wrong, and the case with all that was expected. None: it is not defined.
    fn once(
        &mut self,
        program: &Program,
        executor: usize,
    ) -> Result<Option<(Case, Option<Fault>)>, String> {
        let size = if program.sub_groups { LIKELY } else { 0 };
        let Ok(results) = interpret::run(program, LIKELY) else {
            return Ok(None);
        };
        let mut case = Case::new(program);
        let first = Expected::new(size, results);
        let answer = self.executors[executor].run(&case)?;
        if let Answer::Done { milliseconds, .. } = answer {
            self.milliseconds = self.milliseconds.max(milliseconds);
            self.times
                .push((self.executors[executor].name.clone(), milliseconds));
        }
        let mut defined = true;
        let found = fault(answer, self.slow, &mut |size| {
            if size == first.sub_group || !program.sub_groups {
                case.expected.push(first.clone());
                return Ok(first.clone());
            }
            match interpret::run(program, size) {
                Ok(results) => {
                    let expected = Expected::new(size, results);
                    case.expected.push(expected.clone());
                    Ok(expected)
                }
                Err(_) => {
                    defined = false;
                    Ok(first.clone())
                }
            }
        })?;
        if case.expected.is_empty() {
            case.expected.push(first);
        }
        Ok(defined.then_some((case, found)))
    }

    /// Runs a program on some executors.
    pub fn program(
        &mut self,
        program: &Program,
        executors: &[usize],
    ) -> Result<Option<Finding>, String> {
        self.milliseconds = 0;
        for &executor in executors {
            if let Some((case, Some(fault))) = self.once(program, executor)? {
                return Ok(Some(Finding {
                    program: program.clone(),
                    case,
                    executor: self.executors[executor].name.clone(),
                    fault,
                }));
            }
        }
        Ok(None)
    }

    /// Makes a finding small.
    pub fn shrink(&mut self, finding: Finding, tries: usize) -> Result<Finding, String> {
        let Some(at) = self
            .executors
            .iter()
            .position(|e| e.name == finding.executor)
        else {
            return Ok(finding);
        };
        // Each try takes as long as one waits.
        let tries = match finding.fault {
            Fault::Hang => tries.min(20),
            _ => tries,
        };
        let Finding {
            program,
            mut case,
            executor,
            mut fault,
        } = finding;
        let small = shrink(program, tries, &mut |program| {
            let Some((new, Some(other))) = self.once(program, at)? else {
                return Ok(false);
            };
            let like = other.is_like(&fault);
            if like {
                (case, fault) = (new, other);
            }
            Ok(like)
        })?;
        if small.sub_groups {
            // For the other executors, too.
            for size in [4, 8, 16, 32, 64] {
                let known = case
                    .expected
                    .iter()
                    .any(|expected| expected.sub_group == size);
                if let (false, Ok(results)) = (known, interpret::run(&small, size)) {
                    case.expected.push(Expected::new(size, results));
                }
            }
        }
        Ok(Finding {
            program: small,
            case,
            executor,
            fault,
        })
    }
}

/// Runs cases of files on all executors; how many faults there were.
pub fn files(options: &Options, scratch: &Path) -> Result<u64, String> {
    let mut judge = Judge::new(options, scratch);
    let mut faults = 0;
    for path in &options.files {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let case = Case::parse(&text).ok_or_else(|| format!("{name}: not a case"))?;
        for executor in &mut judge.executors {
            let answer = executor.run(&case)?;
            let mut unknown = None;
            let found = fault(answer, options.slow, &mut |size| {
                let mut known = case.expected.iter();
                let fits = known.find(|e| e.sub_group == 0 || e.sub_group == size);
                if fits.is_none() {
                    unknown = Some(size);
                }
                let nothing = Expected {
                    sub_group: size,
                    buffers: Vec::new(),
                    lines: Vec::new(),
                };
                Ok(fits.cloned().unwrap_or(nothing))
            });
            if let Some(size) = unknown {
                println!(
                    "{name} on {}: not known for sub-groups of {size}",
                    executor.name
                );
                continue;
            }
            if let Some(fault) = found? {
                println!("{name} on {}: {fault}", executor.name);
                faults += 1;
            }
        }
    }
    println!("programs: {} cases, {faults} faults", options.files.len());
    Ok(faults)
}

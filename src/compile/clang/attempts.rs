//! The sequence of attempts: how a source becomes SPIR-V where the compilers fail at first.
//!
//! [`OWN_TARGET`] and [`TRANSLATOR`] are the table: the attempts in order, each with the causes
//! after which it is made. Around them, [`super::compile`] takes these steps:
//!
//! | step | when | starts |
//! |---|---|---|
//! | read: the source to IR without passes | it may have a library of functions, or says `__attribute__((used))` | 1 |
//! | the attempts | always | 9, with llvm-spirv 6 |
//! | read and the attempts again | the SPIR-V lacks `inline` functions of the source (`fixups/missing_inlines.rs`) | as above |
//! | long arrays: the source to IR once more, which shows their lengths (`fixups/long_arrays.rs`) | the source may have arrays of 2^32 elements | 1 |
//! | describe: the types of the kernels' arguments in the source | requested, or `vec_type_hint` | 1 |
//!
//! So one source starts at most 22 compilers (`MOST_STARTS`, with the tests), one after the other;
//! nearly all start one or two. A job whose server does not answer is run again in a process of its
//! own (`process.rs`), and counts once here.

use super::command::{self, run_tool, FROM_IR, FROM_SOURCE, NO_PASSES, PASSES};
use super::toolchain::Toolchain;
use super::Prepared;
use crate::compile::fixups::{
    crash_reports, cut_alignments, device_queues, finite_numbers, float_exchanges, known_sizes,
    lines, local_types, lone_variables, lost_truncations, odd_vectors, wide_integers,
};
use crate::compile::options::BuildOptions;
use crate::compile::words::to_words;
use crate::quirks::Quirk;
use spirv_lowering::error::LowerError;
use spirv_lowering::{Program, ReadOptions};
use std::path::Path;

/// The reason for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Nothing has been tried.
    Begin,
    /// The compiler's back end, or the translator, gave up on what LLVM's passes made.
    GaveUp,
    /// The compiler took all the memory that it may.
    OutOfMemory,
    /// The passes made integers of more than 64 bits.
    TooWide,
    /// The SPIR-V is not valid: types do not fit.
    Invalid,
    /// A second attempt failed too.
    Again,
}

/// The input of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartsFrom {
    /// The input of the sequence: the source, or IR of it that no pass has processed.
    Given,
    /// The source itself. What is not optimised must not be made internal either.
    Source,
}

/// The programs that an attempt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// All.
    All,
    /// Programs that LLVM's passes optimise.
    Optimised,
    /// Programs that the application wants unoptimised.
    Unoptimised,
}

/// One attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The description of its difference.
    pub what: &'static str,
    /// The causes, one of which must have occurred.
    pub after: &'static [Cause],
    programs: For,
    from: StartsFrom,
    /// Set to optimise even if the application wants no optimisation.
    optimise: bool,
    passes: &'static [&'static str],
    /// Set if conversions are separated (`fixups/lost_truncations.rs`), as they are where nothing is
    /// optimised.
    separates: bool,
    /// Set if vectors get other lengths (`fixups/odd_vectors.rs`), as they do wherever there is IR.
    lengthens: bool,
    /// Set if the compiler's messages go to the build log, which does not have them yet.
    heard: bool,
    /// Set for the last attempt, whose result is used as it is.
    last: bool,
    /// The most compilers that it starts.
    pub starts: usize,
}

const FIRST: Attempt = Attempt {
    what: "all passes",
    after: &[Cause::Begin],
    programs: For::All,
    from: StartsFrom::Given,
    optimise: false,
    passes: &PASSES,
    separates: false,
    lengthens: false,
    heard: true,
    last: false,
    starts: 0,
};

/// The attempts with clang alone. Each makes SPIR-V. Where that shows that variables in local
/// memory lost their types (`fixups/local_types.rs`), or that there is no function without which
/// there are no variables (`fixups/lone_variables.rs`), it makes IR with initial values or a
/// function, and SPIR-V of that: three starts. With `-g` it makes the IR at once, and writes the lines into it
/// (`fixups/lines.rs`).
pub const OWN_TARGET: [Attempt; 7] = [
    Attempt { starts: 3, ..FIRST },
    Attempt {
        what: "with separated conversions",
        after: &[Cause::Invalid],
        programs: For::Optimised,
        passes: &[PASSES[0], PASSES[1], PASSES[2], PASSES[3], "-w"],
        separates: true,
        heard: false,
        starts: 2,
        ..FIRST
    },
    Attempt {
        what: "with longer vectors",
        after: &[Cause::OutOfMemory],
        programs: For::Optimised,
        passes: &[PASSES[0], PASSES[1], PASSES[2], PASSES[3], "-w"],
        lengthens: true,
        heard: false,
        starts: 2,
        ..FIRST
    },
    Attempt {
        // It makes vectors of unions, of any length.
        what: "without scalar replacement of aggregates",
        after: &[Cause::GaveUp],
        programs: For::Optimised,
        passes: &[
            PASSES[0],
            PASSES[1],
            PASSES[2],
            PASSES[3],
            "-mllvm",
            "-opt-disable=sroa",
            "-w",
        ],
        heard: false,
        starts: 3,
        ..FIRST
    },
    Attempt {
        what: "without values computed behind loops",
        after: &[Cause::TooWide],
        programs: For::Optimised,
        passes: &[
            PASSES[0],
            PASSES[1],
            PASSES[2],
            PASSES[3],
            "-mllvm",
            "-replexitval=never",
            "-w",
        ],
        heard: false,
        starts: 3,
        ..FIRST
    },
    Attempt {
        starts: 3,
        ..AFTER_ALL
    },
    NO_PASSES_AT_ALL,
];

/// The attempts with clang and llvm-spirv: two starts each.
pub const TRANSLATOR: [Attempt; 3] = [
    Attempt { starts: 2, ..FIRST },
    AFTER_ALL,
    // Optimised code has instructions that the translator does not know (freeze), or that it crashes on.
    Attempt {
        starts: 2,
        ..NO_PASSES_AT_ALL
    },
];

/// The attempt that optimises an unoptimised program: variables in private memory sometimes crash
/// the translator (samplers), and optimisation removes them.
const AFTER_ALL: Attempt = Attempt {
    what: "optimised after all",
    after: &[Cause::GaveUp, Cause::Invalid],
    programs: For::Unoptimised,
    from: StartsFrom::Source,
    optimise: true,
    passes: &["-w"],
    heard: false,
    starts: 2,
    ..FIRST
};

/// The attempt without LLVM's passes, which leaves optimisation to Pumice's.
const NO_PASSES_AT_ALL: Attempt = Attempt {
    what: "no passes",
    after: &[
        Cause::GaveUp,
        Cause::OutOfMemory,
        Cause::TooWide,
        Cause::Invalid,
        Cause::Again,
    ],
    from: StartsFrom::Source,
    passes: &[NO_PASSES[0], NO_PASSES[1], "-w"],
    separates: true,
    last: true,
    starts: 3,
    ..FIRST
};

/// Returns the most compilers that one compilation starts: after the first attempt one for its
/// cause, then the last.
#[cfg(test)]
const fn most_starts(attempts: &[Attempt]) -> usize {
    let mut between = 0;
    let mut at = 1;
    while at + 1 < attempts.len() {
        if attempts[at].starts > between {
            between = attempts[at].starts;
        }
        at += 1;
    }
    attempts[0].starts + between + attempts[attempts.len() - 1].starts
}

/// The most compilers that one source starts: read, the attempts, both again, long arrays,
/// describe.
#[cfg(test)]
const MOST_STARTS: usize = 2 * (1 + most_starts(&OWN_TARGET)) + 2;

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AttemptOutcome {
    Good(Vec<u32>),
    TooWide(Vec<u32>),
    /// The SPIR-V is not valid, for this reason.
    Invalid(String),
    GaveUp,
    OutOfMemory,
    /// The compiler found errors, or did not run.
    Refused,
}

/// Makes the attempts in order. `run_one` makes one, and returns its outcome and its messages.
fn run_attempts(
    attempts: &[Attempt],
    opt_disable: bool,
    log: &mut String,
    mut run_one: impl FnMut(&Attempt) -> (AttemptOutcome, String),
) -> Result<Vec<u32>, ()> {
    let mut cause = Cause::Begin;
    for attempt in attempts {
        let meant = match attempt.programs {
            For::All => true,
            For::Optimised => !opt_disable,
            For::Unoptimised => opt_disable,
        };
        if !meant || !attempt.after.contains(&cause) {
            continue;
        }
        let (outcome, diagnostics) = run_one(attempt);
        if attempt.heard {
            *log += &diagnostics;
        }
        let failed = match outcome {
            AttemptOutcome::Good(words) => return Ok(words),
            AttemptOutcome::TooWide(words) if attempt.last => return Ok(words),
            AttemptOutcome::TooWide(_) => Cause::TooWide,
            AttemptOutcome::Invalid(why) => {
                if attempt.last {
                    *log += &format!("error: the compiler made invalid SPIR-V: {why}\n");
                }
                Cause::Invalid
            }
            AttemptOutcome::GaveUp => Cause::GaveUp,
            AttemptOutcome::OutOfMemory => Cause::OutOfMemory,
            // The source is at fault, unless it was taken before.
            AttemptOutcome::Refused if cause == Cause::Begin => return Err(()),
            AttemptOutcome::Refused => Cause::Again,
        };
        cause = if cause == Cause::Begin {
            failed
        } else {
            Cause::Again
        };
    }
    Err(())
}

/// The input of LLVM's passes.
pub enum Input<'a> {
    /// OpenCL C.
    Source(&'a Prepared<'a>),
    /// Textual IR that no pass has seen.
    Ir(&'a str),
}

impl Input<'_> {
    fn has_blocks(&self) -> bool {
        matches!(self, Self::Ir(ir) if device_queues::has_blocks(ir))
    }

    /// Runs clang on the input.
    fn run(
        &self,
        toolchain: &Toolchain,
        options: &BuildOptions,
        args: &[&str],
        log: &mut String,
    ) -> Result<Vec<u8>, ()> {
        match self {
            Self::Source(source) => source.run(options, &[args, &FROM_SOURCE].concat(), log),
            Self::Ir(ir) => {
                let mut clang = command::clang(toolchain);
                clang.args(options.optimisation()).arg("-w");
                clang.args(args).args(FROM_IR);
                run_tool(clang, ir.as_bytes(), log)
            }
        }
    }
}

/// Compiles an input to SPIR-V words. `source` is the input to begin again with.
pub fn spirv(
    toolchain: &Toolchain,
    given: &Input<'_>,
    source: &Input<'_>,
    options: &BuildOptions,
    log: &mut String,
) -> Result<Vec<u32>, ()> {
    let optimised = BuildOptions {
        opt_disable: false,
        ..options.clone()
    }
    .with_zeroed(options.zeroed);
    let run_one = |attempt: &Attempt| {
        let input = match attempt.from {
            StartsFrom::Given => given,
            StartsFrom::Source => source,
        };
        let options = if attempt.optimise {
            &optimised
        } else {
            options
        };
        let mut diagnostics = String::new();
        let outcome = match &toolchain.llvm_spirv {
            Some(tool) => translated(toolchain, tool, input, options, attempt, &mut diagnostics),
            None => by_own_target(toolchain, input, options, attempt, &mut diagnostics),
        };
        (outcome, diagnostics)
    };
    let attempts: &[Attempt] = match toolchain.llvm_spirv {
        Some(_) => &TRANSLATOR,
        None => &OWN_TARGET,
    };
    run_attempts(attempts, options.opt_disable, log, run_one)
}

fn translated(
    toolchain: &Toolchain,
    tool: &Path,
    input: &Input<'_>,
    options: &BuildOptions,
    attempt: &Attempt,
    diagnostics: &mut String,
) -> AttemptOutcome {
    let args = [attempt.passes, &["-emit-llvm-bc"]].concat();
    let Ok(bitcode) = input.run(toolchain, options, &args, diagnostics) else {
        return AttemptOutcome::Refused;
    };
    let mut of_translator = String::new();
    let object = run_tool(command::translator(tool), &bitcode, &mut of_translator);
    let words = object.and_then(|object| words_of(toolchain, &object, &mut of_translator));
    // The last word of the translator is that of the build.
    if attempt.last {
        *diagnostics += &of_translator;
    }
    words.map_or(AttemptOutcome::GaveUp, |words| judged(toolchain, words))
}

/// Validates the SPIR-V that an attempt made.
fn judged(toolchain: &Toolchain, words: Vec<u32>) -> AttemptOutcome {
    if toolchain.quirks.has(Quirk::WideIntegers) && wide_integers::present(&words) {
        return AttemptOutcome::TooWide(words);
    }
    match Program::read(&words, &ReadOptions::default()) {
        Err(error @ LowerError::InvalidInput { .. }) => AttemptOutcome::Invalid(error.to_string()),
        _ => AttemptOutcome::Good(words),
    }
}

fn by_own_target(
    toolchain: &Toolchain,
    input: &Input<'_>,
    options: &BuildOptions,
    attempt: &Attempt,
    diagnostics: &mut String,
) -> AttemptOutcome {
    match run_own_target(toolchain, input, options, attempt, diagnostics) {
        Ok(words) => judged(toolchain, words),
        Err(()) => {
            let (errors, crashed) = crash_reports::split(diagnostics);
            let out_of_memory = crash_reports::out_of_memory(diagnostics);
            // A source that is too large for the parser is too large with fewer passes as well.
            let too_large = out_of_memory && crash_reports::in_parser(diagnostics);
            let gave_up = crashed && !too_large && toolchain.quirks.has(Quirk::GivesUp);
            if gave_up && !attempt.last {
                *diagnostics = format!(
                    "{errors}note: the compiler gave up on the optimised program; compiled again with fewer passes\n"
                );
            }
            match gave_up {
                true if out_of_memory => AttemptOutcome::OutOfMemory,
                true => AttemptOutcome::GaveUp,
                false => AttemptOutcome::Refused,
            }
        }
    }
}

fn run_own_target(
    toolchain: &Toolchain,
    input: &Input<'_>,
    options: &BuildOptions,
    attempt: &Attempt,
    log: &mut String,
) -> Result<Vec<u32>, ()> {
    let has = |quirk| toolchain.quirks.has(quirk);
    let mut passes = attempt.passes.to_vec();
    if has(Quirk::ThreadedLoops) {
        passes.extend(["-mllvm", "-opt-disable=jump-threading"]);
    }
    let passes = &passes[..];
    let lines = options.debug && has(Quirk::LostLines);
    let blocks = input.has_blocks() && has(Quirk::DeviceQueues);
    let separates = has(Quirk::LostTruncations) && (attempt.separates || options.opt_disable);
    let lengthens = has(Quirk::OddVectors) && attempt.lengthens;
    let mut quiet: &[&str] = &[];
    if !lines && !blocks && !separates && !lengthens {
        let args = [passes, &["-emit-obj", "-mllvm", "-spirv-ext=all"]].concat();
        let object = input.run(toolchain, options, &args, log)?;
        let words = own_words_of(toolchain, &object, options, log)?;
        let local = has(Quirk::LocalTypes) && local_types::doubtful(&words);
        let lone = has(Quirk::LoneVariables) && lone_variables::perhaps_lost(&words);
        if !local && !lone {
            return Ok(words);
        }
        quiet = &["-w"];
    }
    let args = [passes, quiet, &["-emit-llvm"]].concat();
    let optimised = input.run(toolchain, options, &args, log)?;
    let mut ir = String::from_utf8_lossy(&optimised).into_owned();
    if has(Quirk::LocalTypes) {
        ir = local_types::initialised(&ir);
    }
    if has(Quirk::LoneVariables) {
        ir = lone_variables::with_function(&ir);
    }
    if blocks {
        ir = device_queues::without_pointers(&ir);
    }
    if separates {
        ir = lost_truncations::with_separators(&ir);
    }
    if has(Quirk::OddVectors) {
        let longer = odd_vectors::lengthened(&ir);
        if lengthens && longer == ir {
            *log += "no vector can be lengthened\n";
            return Err(());
        }
        ir = longer;
    }
    if lines {
        ir = lines::marked(&ir);
    }
    let mut clang = command::clang(toolchain);
    clang.args(options.optimisation());
    clang.args(["-w", "-disable-llvm-passes", "-emit-obj", "-mllvm"]);
    clang.arg("-spirv-ext=all").args(FROM_IR);
    let object = run_tool(clang, ir.as_bytes(), log)?;
    let words = own_words_of(toolchain, &object, options, log)?;
    match lines {
        true => lines::restored(&words).ok_or_else(|| *log += "lines are where none can be\n"),
        false => Ok(words),
    }
}

/// Returns the words of an object of LLVM's own target.
fn own_words_of(
    toolchain: &Toolchain,
    object: &[u8],
    options: &BuildOptions,
    log: &mut String,
) -> Result<Vec<u32>, ()> {
    let mut words = words_of(toolchain, object, log)?;
    let finite = options.finite_math || options.fast_relaxed_math;
    if options.unsafe_math && !finite && toolchain.quirks.has(Quirk::FiniteNumbers) {
        words = finite_numbers::not_claimed(&words).unwrap_or(words);
    }
    if toolchain.quirks.has(Quirk::FloatExchanges) {
        words = float_exchanges::compared_as_bits(&words).unwrap_or(words);
    }
    if toolchain.quirks.has(Quirk::CutAlignments) {
        words = cut_alignments::made_up(&words).unwrap_or(words);
    }
    Ok(words)
}

fn words_of(toolchain: &Toolchain, object: &[u8], log: &mut String) -> Result<Vec<u32>, ()> {
    let words = to_words(object).ok_or_else(|| *log += "the compiler's output is not SPIR-V\n")?;
    Ok(match toolchain.quirks.has(Quirk::KnownSizes) {
        true => known_sizes::not_claimed(&words).unwrap_or(words),
        false => words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the attempts that are made for these outcomes, the result, and the messages.
    fn tried(
        attempts: &[Attempt],
        opt_disable: bool,
        outcomes: &[AttemptOutcome],
    ) -> (Vec<&'static str>, Result<Vec<u32>, ()>, String) {
        let (mut tried, mut log) = (Vec::new(), String::new());
        let result = run_attempts(attempts, opt_disable, &mut log, |attempt| {
            let outcome = outcomes.get(tried.len()).expect("no more attempts");
            tried.push(attempt.what);
            (outcome.clone(), format!("{};", tried.len()))
        });
        assert_eq!(tried.len(), outcomes.len());
        (tried, result, log)
    }

    #[test]
    fn each_cause_has_its_attempt() {
        use AttemptOutcome::{GaveUp, Good, Invalid, OutOfMemory, Refused, TooWide};
        let good = || Good(vec![1]);
        let wide = || TooWide(vec![2]);
        let invalid = || Invalid("why".to_owned());
        let [all, separated, longer, less, counters, after_all, plain] =
            OWN_TARGET.map(|attempt| attempt.what);
        let own = |outcomes: &[AttemptOutcome]| tried(&OWN_TARGET, false, outcomes);
        assert_eq!(own(&[good()]), (vec![all], Ok(vec![1]), "1;".into()));
        assert_eq!(own(&[Refused]), (vec![all], Err(()), "1;".into()));
        let repaired = (vec![all, less], Ok(vec![1]), "1;".into());
        assert_eq!(own(&[GaveUp, good()]), repaired);
        let repaired = (vec![all, counters], Ok(vec![1]), "1;".into());
        assert_eq!(own(&[wide(), good()]), repaired);
        let repaired = (vec![all, longer], Ok(vec![1]), "1;".into());
        assert_eq!(own(&[OutOfMemory, good()]), repaired);
        let repairing = [
            (GaveUp, less),
            (OutOfMemory, longer),
            (wide(), counters),
            (invalid(), separated),
        ];
        for second in [wide(), GaveUp, OutOfMemory, Refused, invalid()] {
            for (first, attempt) in repairing.clone() {
                let list = vec![all, attempt, plain];
                let outcomes = |last| [first.clone(), second.clone(), last];
                let good = (list.clone(), Ok(vec![1]), "1;3;".to_owned());
                assert_eq!(own(&outcomes(Good(vec![1]))), good);
                // The last is taken as it is.
                let wide = (list.clone(), Ok(vec![2]), "1;3;".to_owned());
                assert_eq!(own(&outcomes(TooWide(vec![2]))), wide);
                // But never what is invalid.
                let (_, refused, log) = own(&outcomes(invalid()));
                assert!(refused.is_err() && log.ends_with("invalid SPIR-V: why\n"));
                assert_eq!(own(&outcomes(GaveUp)), (list, Err(()), "1;3;".to_owned()));
            }
        }
        for first in [GaveUp, invalid()] {
            let unoptimised = tried(&OWN_TARGET, true, &[first.clone(), GaveUp, good()]);
            let list = vec![all, after_all, plain];
            assert_eq!(unoptimised, (list, Ok(vec![1]), "1;3;".into()));
            assert_eq!(tried(&TRANSLATOR, false, &[first, good()]).0, [all, plain]);
        }
        let translator = |off, outcomes: &[AttemptOutcome]| tried(&TRANSLATOR, off, outcomes).0;
        let after_all = [all, after_all, plain];
        assert_eq!(translator(true, &[GaveUp, GaveUp, good()]), after_all);
        assert_eq!(translator(true, &[GaveUp, Refused, GaveUp]), after_all);
    }

    /// Checks that no more compilers are started than the table says.
    #[test]
    fn starts_are_bounded() {
        let outcomes = [
            AttemptOutcome::Good(Vec::new()),
            AttemptOutcome::TooWide(Vec::new()),
            AttemptOutcome::GaveUp,
            AttemptOutcome::OutOfMemory,
            AttemptOutcome::Refused,
            AttemptOutcome::Invalid(String::new()),
        ];
        for (attempts, most) in [(&OWN_TARGET[..], 9), (&TRANSLATOR[..], 6)] {
            assert_eq!(most_starts(attempts), most);
            let mut reached = 0;
            for chosen in 0..outcomes.len().pow(4) * 2 {
                let (mut starts, mut number) = (0, chosen / 2);
                let _ = run_attempts(attempts, chosen % 2 == 1, &mut String::new(), |attempt| {
                    starts += attempt.starts;
                    let outcome = outcomes[number % outcomes.len()].clone();
                    number /= outcomes.len();
                    (outcome, String::new())
                });
                reached = reached.max(starts);
            }
            assert_eq!(reached, most);
        }
        assert_eq!(MOST_STARTS, 22);
    }
}

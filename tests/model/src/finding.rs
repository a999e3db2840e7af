//! A finding: the program, how often it shows it, the smallest form of it, and its class in a few
//! words.

use crate::fault::fault;
use crate::program::{Operand, Program, ProgramAction, What};
use crate::shrink::{shows, shrink};
use crate::worker::{Outcome, Worker};
use std::fmt::{Display, Formatter};

/// A finding.
pub struct Finding {
    /// The number of the program in the run, from 1 on.
    pub number: u64,
    seed: u64,
    /// The runs of the original program, and how many showed the finding.
    often: (usize, usize),
    actions: usize,
    first: Outcome,
    program: Program,
    shown: Outcome,
    /// The class, in a few words.
    pub kind: String,
}

/// Runs of a program to judge how often it shows what it shows.
const JUDGE: usize = 10;

impl Finding {
    /// Examines a program that showed something: runs it again, and reduces it.
    pub fn new(
        worker: &mut Worker,
        number: u64,
        program: Program,
        first: Outcome,
        budget: usize,
    ) -> Result<Self, String> {
        // A hang costs all the patience there is.
        let hangs = first == Outcome::Hang;
        let runs = if hangs { 1 } else { JUDGE };
        let mut wrong = 0;
        for _ in 0..runs {
            wrong += usize::from(worker.run(&program)? != Outcome::Same);
        }
        let (seed, actions) = (program.seed, program.actions.len());
        // So often that a program which shows it as often as this one does is hardly missed.
        let times = (3 * runs / (wrong + 1)).clamp(2, 30);
        let budget = if hangs { budget.min(25) } else { budget };
        let seldom = wrong == 0 && shows(worker, &program, 30)? == Outcome::Same;
        let (program, shown) = match seldom {
            true => (program, first.clone()),
            false => shrink(worker, program, first.clone(), times, budget)?,
        };
        Ok(Self {
            number,
            seed,
            often: (wrong, runs),
            actions,
            first,
            kind: kind(&program, &shown),
            program,
            shown,
        })
    }
}

impl Display for Finding {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let (wrong, runs) = self.often;
        writeln!(
            out,
            "program {} (--only {}), {} actions",
            self.number, self.seed, self.actions
        )?;
        writeln!(out, "  showed: {:?}", self.first)?;
        writeln!(out, "  again: {wrong} of {runs} runs")?;
        writeln!(out, "  kind: {}", self.kind)?;
        writeln!(out, "  smallest shows: {:?}", self.shown)?;
        let text = self.program.to_string();
        text.lines()
            .try_for_each(|line| writeln!(out, "    {line}"))
    }
}

/// An action in a few words: what, and between which kinds of memory.
fn words(program: &Program, action: &ProgramAction) -> String {
    let kind = |memory: usize| {
        let name = program.memories[memory].kind.to_string();
        name.split('+').next().unwrap_or_default().to_owned()
    };
    let operand = |operand: &Operand| match operand {
        Operand::Object(side) => kind(side.memory),
        Operand::Pointer(place) | Operand::Number(place) => kind(place.memory),
    };
    let place = |place: &crate::program::Place| match place.map {
        Some(_) => format!("mapped {}", kind(place.memory)),
        None => kind(place.memory),
    };
    let blocking = match action.blocking {
        _ if action.recording.is_some() => "recorded ",
        true => "blocking ",
        false => "",
    };
    let verb = action.what.verb();
    let rest = match &action.what {
        What::Read(a, b, _) => format!(" {}->{}", kind(a.memory), place(b)),
        What::Write(a, b, _) => format!(" {}->{}", place(b), kind(a.memory)),
        What::Copy(a, b, _) => format!(" {}->{}", kind(a.memory), kind(b.memory)),
        What::Memcpy(a, b, ..) => format!(" {}->{}", place(b), place(a)),
        What::Fill(a, ..) | What::Map(a, ..) => format!(" {}", kind(a.memory)),
        What::MemFill(a, ..) | What::SvmMap(a, ..) | What::Store(a, ..) | What::Check(a, _) => {
            format!(" {}", place(a))
        }
        What::Kernel {
            dst, src, manner, ..
        } => format!("{manner} {}->{}", operand(src), operand(dst)),
        What::Update { dst, src, .. } => format!(" {}->{}", operand(src), operand(dst)),
        What::Create(of) | What::Release(of) | What::Free(of) => format!(" {}", kind(*of)),
        _ => String::new(),
    };
    format!("{blocking}{verb}{rest}")
}

/// The kind of a finding: what happens in the smallest program, and which action showed it.
fn kind(program: &Program, shown: &Outcome) -> String {
    let list: Vec<String> = program
        .actions
        .iter()
        .map(|one| words(program, one))
        .collect();
    let what = match shown {
        Outcome::Differs(text) => text.split(':').next().unwrap_or_default(),
        Outcome::Crash(_) => "crash",
        Outcome::Hang => "hang",
        Outcome::Same => "nothing",
    };
    format!("{}: {} => {what}", fault(program, shown), list.join("; "))
}

/// The kinds of some findings, with the first program of each.
pub fn kinds(findings: &[Finding]) -> Vec<(u64, &str)> {
    let mut list: Vec<(u64, &str)> = Vec::new();
    for finding in findings {
        match list.iter_mut().find(|(_, kind)| *kind == finding.kind) {
            Some((first, _)) => *first = finding.number.min(*first),
            None => list.push((finding.number, &finding.kind)),
        }
    }
    list.sort_unstable();
    list
}

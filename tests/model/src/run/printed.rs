//! Checks what kernels print: a line for each run, and in the order of the runs where they have one.

use crate::expect::Line;
use crate::order::Set;
use crate::output::Output;
use crate::plan::Planner;
use crate::program::{Program, What};

/// The lines that the kernels of a program have printed.
pub struct Printed<'a> {
    output: &'a mut Output,
    /// All actions. None: no kernel prints.
    planner: Option<Planner>,
    seen: Vec<String>,
}

impl<'a> Printed<'a> {
    /// Nothing yet.
    pub fn new(program: &Program, output: &'a mut Output) -> Self {
        let prints = |what: &What| matches!(what, What::Kernel { manner, .. } if manner.prints);
        let planner = match program.has(prints) {
            true => Planner::check(program).ok(),
            false => None,
        };
        // A program that failed may have left something.
        output.take();
        let seen = Vec::new();
        Self {
            output,
            planner,
            seen,
        }
    }

    /// Checks what has come when the host makes an action: at least what is over before it.
    pub fn check_before(&mut self, lines: &[Line], action: usize) -> Result<(), String> {
        let over = self.planner.as_ref().map(|planner| planner.known(action));
        over.map_or(Ok(()), |over| self.check(lines, over))
    }

    /// Checks what has come where these actions are over.
    pub fn check(&mut self, lines: &[Line], over: Set) -> Result<(), String> {
        let Some(planner) = &self.planner else {
            return Ok(());
        };
        self.seen.extend(self.output.take());
        check(planner, lines, &self.seen, over)
    }
}

/// Checks lines that have come where these actions are over, against those that kernels print.
pub fn check(planner: &Planner, lines: &[Line], seen: &[String], over: Set) -> Result<(), String> {
    // Where a number is not known, lines differ by the other one alone.
    let vague = |name: &str| {
        let mut unknown = lines.iter().filter(|line| line.value.is_none());
        unknown.any(|line| line.name.to_string() == name)
    };
    let text = |line: &Line| match (line.value, line.name.to_string()) {
        (Some(value), name) if !vague(&name) => format!("{name} {value}"),
        (_, name) => name,
    };
    let seen = seen.iter().map(|line| match line.split_once(' ') {
        Some((name, _)) if vague(name) => name,
        _ => line,
    });
    let seen: Vec<&str> = seen.collect();
    let texts: Vec<String> = lines.iter().map(text).collect();
    if let Some(line) = seen
        .iter()
        .find(|line| !texts.iter().any(|one| one == **line))
    {
        return Err(format!("printed, and by no kernel: {line}"));
    }
    let count = |list: &[&str], text: &str| list.iter().filter(|one| **one == text).count();
    let all = || lines.iter().zip(&texts);
    for text in &texts {
        let own = || all().filter(|(_, other)| *other == text);
        let ends = |line: &Line| line.sure && over >> line.action & 1 == 1;
        let (least, most) = (own().filter(|(line, _)| ends(line)).count(), own().count());
        let times = count(&seen, text);
        if !(least..=most).contains(&times) {
            return Err(format!(
                "printed {times} times, not {least} to {most}: {text}"
            ));
        }
    }
    for (line, text) in all() {
        let runs = |of: &str| -> Vec<&Line> {
            let same = all().filter(|(_, other)| *other == of);
            same.map(|(line, _)| line).collect()
        };
        // Which of some runs that print the same has printed a line is not known: it was this one at the latest.
        let own = runs(text);
        let later = own
            .iter()
            .filter(|other| planner.precedes(line.run(), other.run()));
        let latest = own.len() - later.count();
        let mut places = (0..seen.len()).filter(|&at| seen[at] == text);
        let Some(place) = places.nth(latest - 1) else {
            continue;
        };
        for other in &texts {
            let others = runs(other);
            let sure = own.iter().chain(&others).all(|line| line.sure);
            let first = |one: &&&Line| planner.precedes(one.run(), line.run());
            let least = others.iter().filter(first).count();
            if sure && text != other && count(&seen[..place], other) < least {
                return Err(format!("printed before what comes first, {other}: {text}"));
            }
        }
    }
    Ok(())
}

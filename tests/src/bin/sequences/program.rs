//! A program: calls with small numbers for arguments, which the state that a run has decides the meaning of ([`crate::state`]). As
//! text one call a line, `name number number ...`.
//!
//! The number 0 is the plainest choice for every argument, so that programs get simpler as numbers get smaller.

use pumice_tests::rng::Rng;
use std::fmt::{Display, Formatter};

/// Numbers that a call has.
pub const NUMBERS: usize = 6;

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Row of [`crate::calls::all`].
    pub row: usize,
    /// What it is called with.
    pub numbers: [u32; NUMBERS],
}

/// Calls, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program(pub Vec<Call>);

impl Program {
    /// The program of a seed: it begins with what most others need.
    pub fn generate(seed: u64) -> Self {
        let mut random = Rng::new(seed, 0);
        let rows = crate::calls::all().count();
        let length = 6 + random.below(50);
        let mut calls = Vec::new();
        for name in crate::calls::BEGIN {
            if random.percent(90) {
                let row = crate::calls::find(name).expect("a call");
                calls.push(Call {
                    row,
                    numbers: [0; NUMBERS],
                });
            }
        }
        for _ in 0..length {
            let numbers = std::array::from_fn(|_| match random.below(3) {
                // Plain, one of few, anything.
                0 => 0,
                1 => random.below(16) as u32,
                _ => random.bits() as u32 >> random.below(32),
            });
            calls.push(Call {
                row: random.below(rows),
                numbers,
            });
        }
        Self(calls)
    }

    /// Reads the text of a program.
    pub fn parse(text: &str) -> Result<Self, String> {
        let call = |line: &str| {
            let mut words = line.split_whitespace();
            let row = words.next().and_then(crate::calls::find)?;
            let mut numbers = [0; NUMBERS];
            for (place, word) in numbers.iter_mut().zip(words) {
                *place = word.parse().ok()?;
            }
            Some(Call { row, numbers })
        };
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let calls = lines.map(|line| call(line).ok_or_else(|| format!("no call: {line}")));
        calls.collect::<Result<_, _>>().map(Self)
    }
}

impl Display for Program {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        for Call { row, numbers } in &self.0 {
            write!(out, "{}", crate::calls::row(*row).0)?;
            let last = numbers.iter().rposition(|number| *number != 0);
            for number in &numbers[..last.map_or(0, |last| last + 1)] {
                write!(out, " {number}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read_as_they_are_written() {
        for seed in 0..50 {
            let program = Program::generate(seed);
            assert_eq!(Program::parse(&program.to_string()), Ok(program));
        }
        assert!(Program::parse("clNothing 1").is_err());
        assert!(Program::parse("clFinish x").is_err());
    }
}

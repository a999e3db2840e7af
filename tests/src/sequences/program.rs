//! A program: calls with small numbers for arguments, which the state that a run has decides the meaning of ([`super::state`]). As
//! text one call a line, `name number number ...`, with `name@thread` where it is not that of thread 0.
//!
//! The number 0 is the plainest choice for every argument, so that programs get simpler as numbers get smaller.

use super::calls;
use crate::rng::Rng;
use std::fmt::{Display, Formatter};

/// Numbers that a call has.
pub const NUMBERS: usize = 6;
/// Threads that a program has at most.
pub const THREADS: u32 = 4;

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Row of [`calls::all`].
    pub row: usize,
    /// The thread that makes it, below [`THREADS`].
    pub thread: u32,
    /// The numbers that it is called with.
    pub numbers: [u32; NUMBERS],
}

/// Calls, one after the other on each thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program(pub Vec<Call>);

/// The choices that make a program. 0 is the plainest choice.
pub trait Choices {
    /// One of so many, of which there is at least one.
    fn below(&mut self, limit: usize) -> usize;
    /// Any number.
    fn bits(&mut self) -> u32;
    /// Whether there is another call.
    fn another(&mut self) -> bool;
}

/// Random ones.
struct Random {
    rng: Rng,
    left: usize,
}

impl Choices for Random {
    fn below(&mut self, limit: usize) -> usize {
        self.rng.below(limit)
    }

    fn bits(&mut self) -> u32 {
        self.rng.bits() as u32
    }

    fn another(&mut self) -> bool {
        let more = self.left > 0;
        self.left -= usize::from(more);
        more
    }
}

/// Choices that bytes make: the first [`RECORD`] of them those that a program begins with, each further so many those of a call.
/// Missing bytes are 0.
pub struct Bytes<'a> {
    record: &'a [u8],
    rest: &'a [u8],
}

/// Bytes of a call, so that a change within one leaves the others what they are.
pub const RECORD: usize = 24;

impl<'a> Bytes<'a> {
    /// Creates the choices of an input.
    pub fn new(bytes: &'a [u8]) -> Self {
        let (record, rest) = bytes.split_at(RECORD.min(bytes.len()));
        Self { record, rest }
    }

    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.record.split_first() else {
            return 0;
        };
        self.record = rest;
        first
    }
}

impl Choices for Bytes<'_> {
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    fn bits(&mut self) -> u32 {
        let half = u32::from(u16::from_le_bytes([self.byte(), self.byte()]));
        half << 16 | half
    }

    fn another(&mut self) -> bool {
        let more = !self.rest.is_empty();
        *self = Self::new(self.rest);
        more
    }
}

impl Program {
    /// The program of a seed, on one thread or, one of three, on up to [`THREADS`].
    pub fn generate(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0);
        let left = 6 + rng.below(50);
        let threads = match rng.below(3) {
            0 => 2 + rng.below(THREADS as usize - 1),
            _ => 1,
        };
        Self::from_choices(&mut Random { rng, left }, threads)
    }

    /// The program that choices make, on so many threads: it begins with what most others need.
    pub fn from_choices(choices: &mut impl Choices, threads: usize) -> Self {
        let rows: Vec<usize> = (0..calls::all().count())
            .filter(|row| threads == 1 || !calls::alone(*row))
            .collect();
        let mut calls = Vec::new();
        for name in calls::BEGIN {
            if choices.below(100) < 90 {
                calls.push(Call {
                    row: calls::find(name).expect("a call"),
                    thread: 0,
                    numbers: [0; NUMBERS],
                });
            }
        }
        while choices.another() {
            let row = rows[choices.below(rows.len())];
            let thread = match threads {
                1 => 0,
                _ => choices.below(threads) as u32,
            };
            let numbers = std::array::from_fn(|_| match choices.below(3) {
                // Plain, one of few, anything.
                0 => 0,
                1 => choices.below(16) as u32,
                _ => choices.bits() >> choices.below(32),
            });
            calls.push(Call {
                row,
                thread,
                numbers,
            });
        }
        Self(calls)
    }

    /// Whether it has several threads.
    pub fn is_threaded(&self) -> bool {
        self.0.iter().any(|call| call.thread != 0)
    }

    /// Reads the text of a program.
    pub fn parse(text: &str) -> Result<Self, String> {
        let call = |line: &str| {
            let mut words = line.split_whitespace();
            let name = words.next()?;
            let (name, thread) = match name.split_once('@') {
                Some((name, thread)) => (name, thread.parse().ok()?),
                None => (name, 0),
            };
            if thread >= THREADS {
                return None;
            }
            let row = calls::find(name)?;
            let mut numbers = [0; NUMBERS];
            for (place, word) in numbers.iter_mut().zip(words) {
                *place = word.parse().ok()?;
            }
            Some(Call {
                row,
                thread,
                numbers,
            })
        };
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let calls = lines.map(|line| call(line).ok_or_else(|| format!("no call: {line}")));
        calls.collect::<Result<_, _>>().map(Self)
    }
}

impl Display for Program {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        for call in &self.0 {
            write!(out, "{}", calls::row(call.row).0)?;
            if call.thread != 0 {
                write!(out, "@{}", call.thread)?;
            }
            let last = call.numbers.iter().rposition(|number| *number != 0);
            for number in &call.numbers[..last.map_or(0, |last| last + 1)] {
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
        let mut threaded = 0;
        for seed in 0..50 {
            let program = Program::generate(seed);
            threaded += usize::from(program.is_threaded());
            assert_eq!(Program::parse(&program.to_string()), Ok(program));
        }
        assert!((5..30).contains(&threaded), "{threaded}");
        assert!(Program::parse("clNothing 1").is_err());
        assert!(Program::parse("clFinish x").is_err());
        assert!(Program::parse("clFinish@4").is_err());
    }

    #[test]
    fn bytes_of_a_call_change_that_call() {
        let of = |bytes: &[u8]| Program::from_choices(&mut Bytes::new(bytes), 1);
        // Nothing is the plainest program; all there is is read.
        assert_eq!(of(&[]).0.len(), calls::BEGIN.len());
        assert_eq!(of(&[99]).0.len(), calls::BEGIN.len() - 1);
        let mut bytes: Vec<u8> = (0..RECORD * 4 + 1).map(|at| (at * 7) as u8).collect();
        let before = of(&bytes);
        let begin = before.0.len() - 4;
        bytes[RECORD * 2 + 3] ^= 0x55;
        let after = of(&bytes);
        let changed: Vec<_> = (0..before.0.len())
            .filter(|at| before.0[*at] != after.0[*at])
            .collect();
        assert_eq!(changed, [begin + 1]);
    }
}

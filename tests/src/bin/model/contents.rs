//! The sequential model: what each memory holds after each action, if one ran after the other.

use crate::program::{MapHow, Memory, Operand, Program, Shape, What, FACTOR};
use pumice_tests::rng::Rng;
use std::ops::Range;

/// A byte whose value the specification leaves open.
const OPEN: u16 = 0x100;

/// What the memories hold.
pub struct Contents {
    bytes: Vec<Vec<u16>>,
    /// The action that wrote each byte last; 0xff: none.
    writers: Vec<Vec<u8>>,
}

/// Initial contents of a memory of a program.
pub fn initial(program: &Program, memory: usize) -> Vec<u8> {
    Rng::new(program.seed, 1000 + memory as u64).bytes(program.memories[memory].size)
}

/// A byte that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which memory.
    pub memory: usize,
    /// The first such byte.
    pub at: usize,
    /// How many there are.
    pub count: usize,
    /// What was expected, and what is there, from the first on.
    pub expected: Vec<u8>,
    /// See `expected`.
    pub got: Vec<u8>,
    /// The action that should have written it last.
    pub writer: Option<usize>,
}

impl Contents {
    /// Before the first action.
    pub fn new(program: &Program) -> Self {
        let bytes: Vec<Vec<u16>> = (0..program.memories.len())
            .map(|memory| {
                initial(program, memory)
                    .into_iter()
                    .map(u16::from)
                    .collect()
            })
            .collect();
        Self {
            writers: bytes.iter().map(|bytes| vec![0xff; bytes.len()]).collect(),
            bytes,
        }
    }

    /// What is wrong with bytes that were read from a memory.
    pub fn compare(&self, memory: usize, range: Range<usize>, got: &[u8]) -> Option<Difference> {
        let bytes = &self.bytes[memory][range.clone()];
        let wrong = |(value, got): (&u16, &u8)| *value < OPEN && *value != u16::from(*got);
        let first = bytes.iter().zip(got).position(wrong)?;
        let count = bytes.iter().zip(got).filter(|pair| wrong(*pair)).count();
        let end = (first + 16).min(bytes.len());
        let writer = self.writers[memory][range.start + first];
        Some(Difference {
            memory,
            at: range.start + first,
            count,
            expected: bytes[first..end].iter().map(|value| *value as u8).collect(),
            got: got[first..end].to_vec(),
            writer: (writer != 0xff).then_some(usize::from(writer)),
        })
    }

    fn put(&mut self, memory: &Memory, number: usize, index: usize, at: usize, values: &[u16]) {
        debug_assert!(at + values.len() <= memory.size);
        self.bytes[index][at..at + values.len()].copy_from_slice(values);
        self.writers[index][at..at + values.len()].fill(number as u8);
    }

    /// Carries out an action of the program.
    pub fn step(&mut self, program: &Program, number: usize) {
        let mut put = |memory: usize, at: usize, values: &[u16]| {
            self.put(&program.memories[memory], number, memory, at, values);
        };
        let pattern = |size: usize, pattern: &[u8]| -> Vec<u16> {
            let bytes = pattern.iter().cycle().take(size);
            bytes.map(|byte| u16::from(*byte)).collect()
        };
        let line = Shape::line;
        match &program.actions[number].what {
            What::Read(side, place, shape) => {
                let (from, to) = ((side.memory, side.at), (place.memory, place.at));
                self.rows(program, number, from, to, shape, false);
            }
            What::Write(side, place, shape) => {
                let (to, from) = ((side.memory, side.at), (place.memory, place.at));
                self.rows(program, number, from, to, shape, true);
            }
            What::Copy(src, dst, shape) => {
                let (from, to) = ((src.memory, src.at), (dst.memory, dst.at));
                self.rows(program, number, from, to, shape, false);
            }
            What::ImageToBuffer(src, dst, size) | What::BufferToImage(src, dst, size) => {
                let (from, to) = ((src.memory, src.at), (dst.memory, dst.at));
                self.rows(program, number, from, to, &line(*size), false);
            }
            What::ReadImage(side, place, size) => {
                let (from, to) = ((side.memory, side.at), (place.memory, place.at));
                self.rows(program, number, from, to, &line(*size), false);
            }
            What::WriteImage(side, place, size) => {
                let (to, from) = ((side.memory, side.at), (place.memory, place.at));
                self.rows(program, number, from, to, &line(*size), false);
            }
            What::Memcpy(dst, src, size) => {
                let (from, to) = ((src.memory, src.at), (dst.memory, dst.at));
                self.rows(program, number, from, to, &line(*size), false);
            }
            What::Fill(side, size, bytes) => put(side.memory, side.at, &pattern(*size, bytes)),
            What::FillImage(side, size, byte) => {
                put(side.memory, side.at, &pattern(*size, &[*byte]));
            }
            What::MemFill(place, size, bytes) => {
                put(place.memory, place.at, &pattern(*size, bytes));
            }
            What::Store(place, size, byte) => {
                put(place.memory, place.at, &pattern(*size, &[*byte]));
            }
            What::Map {
                side,
                size,
                how: MapHow::Invalidate,
                ..
            } => put(side.memory, side.at, &vec![OPEN; *size]),
            What::Kernel {
                dst,
                src,
                words,
                add,
                ..
            } => {
                let place = |operand: &Operand| match operand {
                    Operand::Object(side) => (side.memory, side.at),
                    Operand::Address(place) => (place.memory, place.at),
                };
                let ((from, first), (to, at)) = (place(src), place(dst));
                let words = self.bytes[from][first..first + words * 4].chunks_exact(4);
                let result: Vec<u16> = words.flat_map(|word| kernel_word(word, *add)).collect();
                self.put(&program.memories[to], number, to, at, &result);
            }
            _ => {}
        }
    }

    /// Copies rows. `swapped`: the first pitch of the shape is the destination's.
    fn rows(
        &mut self,
        program: &Program,
        number: usize,
        from: (usize, usize),
        to: (usize, usize),
        shape: &Shape,
        swapped: bool,
    ) {
        let (src, dst) = match swapped {
            false => (shape.first, shape.second),
            true => (shape.second, shape.first),
        };
        for row in 0..shape.rows {
            let first = from.1 + row * src;
            let values = self.bytes[from.0][first..first + shape.row].to_vec();
            self.put(
                &program.memories[to.0],
                number,
                to.0,
                to.1 + row * dst,
                &values,
            );
        }
    }
}

fn kernel_word(word: &[u16], add: u32) -> [u16; 4] {
    if word.iter().any(|byte| *byte >= OPEN) {
        return [OPEN; 4];
    }
    let bytes: [u8; 4] = std::array::from_fn(|index| word[index] as u8);
    let value = u32::from_le_bytes(bytes)
        .wrapping_mul(FACTOR)
        .wrapping_add(add);
    value.to_le_bytes().map(u16::from)
}

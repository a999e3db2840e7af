//! The model: what memories contain when the actions are carried out one after the other.
//!
//! Bytes that the specification leaves undefined, those of a map that invalidates, are not known; what is made of them is
//! not known either, and nothing is said about it.

use crate::access::accesses;
use crate::program::{MapHow, Operand, Place, Program, ProgramAction, Shape, What, FACTOR};
use std::ops::Range;

/// Contents of a memory, or of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// 1 for each that is known, else 0.
    pub known: Vec<u8>,
}

/// A byte that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// The first one.
    pub at: usize,
    /// The last one.
    pub last: usize,
    /// How many.
    pub count: usize,
    /// The expected first byte.
    pub expected: u8,
    /// The byte that was read.
    pub got: u8,
}

/// Bytes made of a number, eight at a time.
pub fn pattern(number: u32, size: usize) -> Vec<u8> {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    // Not a multiple of the step: the bytes of one number would be those of another, further on.
    let mut sum = u64::from(number).wrapping_mul(0xd1b5_4a32_d192_ed03);
    let mut bytes = vec![0; size.next_multiple_of(8)];
    for eight in bytes.as_chunks_mut().0 {
        sum = sum.wrapping_add(STEP);
        let word = (sum ^ (sum >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        *eight = (word ^ (word >> 32)).to_le_bytes();
    }
    bytes.truncate(size);
    bytes
}

/// Returns the contents of a memory before the first action.
pub fn initial(memory: usize, size: usize) -> Vec<u8> {
    pattern(0x5eed + memory as u32, size)
}

impl Contents {
    fn new(bytes: Vec<u8>) -> Self {
        Self {
            known: vec![1; bytes.len()],
            bytes,
        }
    }

    fn part(&self, range: Range<usize>) -> Self {
        Self {
            bytes: self.bytes[range.clone()].to_vec(),
            known: self.known[range].to_vec(),
        }
    }

    fn put(&mut self, at: usize, part: &Self) {
        let range = at..at + part.bytes.len();
        self.bytes[range.clone()].copy_from_slice(&part.bytes);
        self.known[range].copy_from_slice(&part.known);
    }

    /// Where other bytes are not these.
    pub fn differs(&self, other: &[u8]) -> Option<Difference> {
        if self.bytes == other {
            return None;
        }
        let mut found: Option<Difference> = None;
        let all = self.bytes.iter().zip(&self.known).zip(other).enumerate();
        for (at, ((&expected, &known), &got)) in all {
            if known == 0 || expected == got {
                continue;
            }
            let first = found.get_or_insert(Difference {
                at,
                last: at,
                count: 0,
                expected,
                got,
            });
            first.last = at;
            first.count += 1;
        }
        found
    }
}

/// A line that a kernel prints.
pub struct Line {
    /// The action that enqueues it.
    pub action: usize,
    /// The one that recorded it, if that is another.
    pub command: usize,
    /// The number that the kernel adds.
    pub name: u32,
    /// The first word that it writes. None: it is not known.
    pub value: Option<u32>,
    /// Set if it is printed for sure.
    pub sure: bool,
}

impl Line {
    /// The run of the kernel, as the planner names it.
    pub fn run(&self) -> (usize, usize) {
        (self.action, self.command)
    }
}

/// The contents of all memories.
pub struct Model {
    memories: Vec<Contents>,
}

fn place(operand: Operand) -> (usize, usize) {
    match operand {
        Operand::Object(side) => (side.memory, side.at),
        Operand::Pointer(place) | Operand::Number(place) => (place.memory, place.at),
    }
}

impl Model {
    fn copy(&mut self, from: (usize, usize), to: (usize, usize), shape: &Shape) {
        for row in 0..shape.rows {
            let start = from.1 + row * shape.first;
            let part = self.memories[from.0].part(start..start + shape.row);
            self.memories[to.0].put(to.1 + row * shape.second, &part);
        }
    }

    fn fill(&mut self, memory: usize, at: usize, size: usize, pattern: &[u8]) {
        let mut bytes = pattern.repeat(size.div_ceil(pattern.len()));
        bytes.truncate(size);
        self.memories[memory].put(at, &Contents::new(bytes));
    }

    /// Returns the line of a kernel that prints: the number that it adds, and the first word that it has written.
    fn printed(&self, action: &ProgramAction) -> Option<(u32, Option<u32>)> {
        let What::Kernel {
            dst, add, manner, ..
        } = &action.what
        else {
            return None;
        };
        let (memory, at) = place(*dst);
        let part = self.memories[memory].part(at..at + 4);
        let word = part.bytes.try_into().ok().map(u32::from_le_bytes);
        let known = word.filter(|_| part.known == [1; 4]);
        manner.prints.then_some((*add, known))
    }

    fn kernel(&mut self, dst: Operand, src: Operand, words: usize, add: u32) {
        let ((from, at), (to, put)) = (place(src), place(dst));
        let mut part = self.memories[from].part(at..at + words * 4);
        for word in part.bytes.as_chunks_mut().0 {
            let value = u32::from_le_bytes(*word);
            *word = value.wrapping_mul(FACTOR).wrapping_add(add).to_le_bytes();
        }
        for word in part.known.as_chunks_mut().0 {
            if *word != [1; 4] {
                *word = [0; 4];
            }
        }
        self.memories[to].put(put, &part);
    }

    fn forget(&mut self, memory: usize, range: Range<usize>, how: MapHow) {
        if how == MapHow::Invalidate {
            self.memories[memory].known[range].fill(0);
        }
    }

    fn part(&self, place: Place, size: usize) -> Contents {
        self.memories[place.memory].part(place.at..place.at + size)
    }

    /// Some of what the commands of a replay do has been done.
    fn break_off(&mut self, program: &Program, commands: &[(usize, ProgramAction)]) {
        for access in (commands.iter()).flat_map(|(_, one)| accesses(program, one)) {
            if access.write {
                self.forget(access.memory, access.range, MapHow::Invalidate);
            }
        }
    }

    fn apply(&mut self, action: &ProgramAction) {
        match &action.what {
            What::Read(side, place, shape) => {
                self.copy((side.memory, side.at), (place.memory, place.at), shape);
            }
            What::Write(side, place, shape) => {
                let turned = Shape {
                    first: shape.second,
                    second: shape.first,
                    ..*shape
                };
                self.copy((place.memory, place.at), (side.memory, side.at), &turned);
            }
            What::Copy(src, dst, shape) => {
                self.copy((src.memory, src.at), (dst.memory, dst.at), shape);
            }
            What::Fill(side, size, pattern) => self.fill(side.memory, side.at, *size, pattern),
            What::MemFill(place, size, pattern) => {
                self.fill(place.memory, place.at, *size, pattern);
            }
            What::Memcpy(dst, src, size, _) => {
                let part = self.part(*src, *size);
                self.memories[dst.memory].put(dst.at, &part);
            }
            What::Map(side, size, how) => {
                self.forget(side.memory, side.at..side.at + size, *how);
            }
            What::SvmMap(place, size, how) => {
                self.forget(place.memory, place.at..place.at + size, *how);
            }
            What::Kernel {
                dst,
                src,
                words,
                add,
                ..
            } => self.kernel(*dst, *src, *words, *add),
            What::Store(place, size, number) => {
                let bytes = Contents::new(pattern(*number, *size));
                self.memories[place.memory].put(place.at, &bytes);
            }
            _ => {}
        }
    }
}

/// The expected results of a program.
pub struct Expected {
    /// The memory that each check reads.
    pub checks: Vec<Option<Contents>>,
    /// The lines that kernels print.
    pub lines: Vec<Line>,
    /// The final contents of the memories.
    pub last: Vec<Contents>,
}

/// Returns the expected results of a program.
pub fn expected(program: &Program) -> Expected {
    let sizes = program.memories.iter().enumerate();
    let mut model = Model {
        memories: sizes
            .map(|(index, memory)| Contents::new(initial(index, memory.size)))
            .collect(),
    };
    let (mut checks, mut lines) = (Vec::new(), Vec::new());
    for (index, action) in program.actions.iter().enumerate() {
        checks.push(match action.what {
            What::Check(place, size) => Some(model.part(place, size)),
            _ => None,
        });
        if !program.has_effect(index, action) {
            continue;
        }
        let commands = match action.what {
            What::Replay { .. } => program.replayed(action, index),
            _ if action.recording.is_some() => Vec::new(),
            _ => vec![(index, action.clone())],
        };
        let sure = !program.breaks(action);
        if !sure {
            model.break_off(program, &commands);
        }
        for (command, one) in &commands {
            if sure {
                model.apply(one);
            }
            lines.extend(model.printed(one).map(|(name, value)| Line {
                action: index,
                command: *command,
                name,
                value: value.filter(|_| sure),
                sure,
            }));
        }
    }
    Expected {
        checks,
        lines,
        last: model.memories,
    }
}

//! What an action touches.

use crate::program::{Action, MapHow, Memory, Operand, Place, Program, Shape, Side, What};
use std::ops::Range;

/// Bytes that an action touches.
#[derive(Debug, Clone)]
pub struct Access {
    /// Which memory.
    pub memory: usize,
    /// The bytes.
    pub range: Range<usize>,
    /// It changes them.
    pub write: bool,
    /// By this memory object; None: by a pointer.
    pub view: Option<usize>,
    /// Through the pointer of this map.
    pub map: Option<usize>,
}

/// Two ranges have bytes in common.
pub fn meet(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Access {
    /// One of the two must be over before the other begins. A buffer and its sub-buffers are not used at once where one
    /// of them is written, whatever the bytes.
    pub fn conflicts(&self, other: &Self, memory: &Memory) -> bool {
        if self.memory != other.memory || !(self.write || other.write) {
            return false;
        }
        meet(&self.range, &other.range)
            || matches!((self.view, other.view), (Some(a), Some(b))
                if a != b && meet(&memory.views[a], &memory.views[b]))
    }
}

fn object(side: Side, size: usize, write: bool) -> Access {
    Access {
        memory: side.memory,
        range: side.at..side.at + size,
        write,
        view: Some(side.view),
        map: None,
    }
}

fn pointer(place: Place, size: usize, write: bool) -> Access {
    Access {
        memory: place.memory,
        range: place.at..place.at + size,
        write,
        view: None,
        map: place.map,
    }
}

/// A kernel may touch all of its argument, for all that the runtime knows.
fn operand(program: &Program, operand: Operand, size: usize, write: bool) -> Access {
    match operand {
        Operand::Object(side) => Access {
            range: program.memories[side.memory].views[side.view].clone(),
            ..object(side, 0, write)
        },
        Operand::Address(place) => pointer(place, size, write),
    }
}

/// What an action touches, the next of the program or one of them.
pub fn accesses(program: &Program, action: &Action) -> Vec<Access> {
    let all = |memory: usize, write| Access {
        memory,
        range: 0..program.memories[memory].size,
        write,
        view: None,
        map: None,
    };
    let rows = |shape: &Shape| (shape.span(shape.first), shape.span(shape.second));
    match &action.what {
        What::Read(side, place, shape) => {
            let (first, second) = rows(shape);
            vec![object(*side, first, false), pointer(*place, second, true)]
        }
        What::Write(side, place, shape) => {
            let (first, second) = rows(shape);
            vec![object(*side, first, true), pointer(*place, second, false)]
        }
        What::Copy(src, dst, shape) => {
            let (first, second) = rows(shape);
            vec![object(*src, first, false), object(*dst, second, true)]
        }
        What::Fill(side, size, _) => vec![object(*side, *size, true)],
        What::Memcpy(dst, src, size) => {
            vec![pointer(*dst, *size, true), pointer(*src, *size, false)]
        }
        What::MemFill(place, size, _) => vec![pointer(*place, *size, true)],
        What::Map {
            side,
            size,
            how,
            svm,
        } => vec![Access {
            view: (!svm).then_some(side.view),
            ..object(*side, *size, *how != MapHow::Read)
        }],
        What::Unmap(map) => match &program.actions[*map].what {
            What::Map {
                side,
                size,
                how,
                svm,
            } => vec![Access {
                view: (!svm).then_some(side.view),
                ..object(*side, *size, *how != MapHow::Read)
            }],
            _ => Vec::new(),
        },
        What::Kernel {
            dst, src, words, ..
        } => vec![
            operand(program, *dst, words * 4, true),
            operand(program, *src, words * 4, false),
        ],
        What::ReadImage(side, place, size) => {
            vec![object(*side, *size, false), pointer(*place, *size, true)]
        }
        What::WriteImage(side, place, size) => {
            vec![object(*side, *size, true), pointer(*place, *size, false)]
        }
        What::ImageToBuffer(src, dst, size) | What::BufferToImage(src, dst, size) => {
            vec![object(*src, *size, false), object(*dst, *size, true)]
        }
        What::FillImage(side, size, _) => vec![object(*side, *size, true)],
        What::Migrate(memory) => vec![all(*memory, true)],
        What::Free(memory) => vec![all(*memory, true)],
        What::Store(place, size, _) => vec![pointer(*place, *size, true)],
        What::Check(place, size) => vec![pointer(*place, *size, false)],
        // Commands that use a memory object keep it.
        What::Release(_)
        | What::Marker
        | What::Barrier
        | What::Gate(_)
        | What::Flush
        | What::Finish
        | What::Wait(_)
        | What::Sleep(_)
        | What::NewQueue => Vec::new(),
    }
}

//! The accesses of an action, and which two accesses must not run at once.
//!
//! The rules are those of the OpenCL specification, with the stricter reading where it has several:
//! - who uses a memory object from different queues shares all of it (appendix A, shared objects);
//! - a buffer and its sub-buffers are not used at once where one of them is written, whatever the bytes (5.2.4);
//! - a mapped object is not used by commands, whatever the bytes; maps of other bytes are fine (5.4.2);
//! - fine-grained shared virtual memory is shared byte by byte, all other memory of devices as a whole.

use crate::program::{MapHow, Memory, Operand, Place, Program, ProgramAction, Shape, Side, What};
use std::ops::Range;

/// The way in which an action refers to the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// One of its memory objects.
    Object(usize),
    /// The memory's own pointer.
    Pointer,
    /// The pointer of a map.
    Mapped(usize),
    /// The action is a map, or an unmap, of a memory object.
    Map,
}

/// Bytes that an action touches.
#[derive(Debug, Clone)]
pub struct Access {
    /// Which memory.
    pub memory: usize,
    /// The bytes.
    pub range: Range<usize>,
    /// Set if it changes them.
    pub write: bool,
    /// The way of reference.
    pub by: By,
    /// The number of the queue; None: the host.
    pub queue: Option<usize>,
}

/// Two ranges have bytes in common.
pub fn meet(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Access {
    /// One of the two must be over before the other begins.
    pub fn conflicts(&self, other: &Self, memory: &Memory) -> bool {
        if self.memory != other.memory || !(self.write || other.write) {
            return false;
        }
        if meet(&self.range, &other.range) {
            return true;
        }
        match (self.by, other.by) {
            (By::Mapped(_), _) | (_, By::Mapped(_)) | (By::Map, By::Map) => false,
            (By::Map, _) | (_, By::Map) => true,
            (By::Object(a), By::Object(b)) => {
                self.queue != other.queue || a != b && meet(&memory.views[a], &memory.views[b])
            }
            _ => self.queue != other.queue && !memory.kind.is_fine() && memory.kind.has_address(),
        }
    }
}

fn object(side: Side, size: usize, write: bool) -> Access {
    Access {
        memory: side.memory,
        range: side.at..side.at + size,
        write,
        by: By::Object(side.view),
        queue: None,
    }
}

fn pointer(place: Place, size: usize, write: bool) -> Access {
    Access {
        memory: place.memory,
        range: place.at..place.at + size,
        write,
        by: place.map.map_or(By::Pointer, By::Mapped),
        queue: None,
    }
}

/// A kernel uses all of an image: the validation layer does not know better either.
fn operand(program: &Program, operand: Operand, size: usize, write: bool) -> Access {
    match operand {
        Operand::Object(side) => {
            let memory = &program.memories[side.memory];
            let used = object(side, size, write);
            match memory.kind.pitch() {
                Some(_) => Access {
                    range: 0..memory.size,
                    ..used
                },
                None => used,
            }
        }
        Operand::Pointer(place) | Operand::Number(place) => pointer(place, size, write),
    }
}

fn all(program: &Program, memory: usize) -> Access {
    let place = Place {
        memory,
        at: 0,
        map: None,
    };
    pointer(place, program.memories[memory].size, true)
}

fn map_of(program: &Program, map: usize) -> Option<Access> {
    let (memory, range, how) = program.mapped(map)?;
    let by = match program.actions[map].what {
        What::Map(..) => By::Map,
        _ => By::Pointer,
    };
    Some(Access {
        memory,
        range,
        write: how != MapHow::Read,
        by,
        queue: None,
    })
}

fn rows(shape: &Shape) -> (usize, usize) {
    (shape.span(shape.first), shape.span(shape.second))
}

/// Returns the accesses of an action that follows the actions of the program.
pub fn accesses(program: &Program, action: &ProgramAction) -> Vec<Access> {
    if let What::Replay { .. } = action.what {
        let commands = program.replayed(action, usize::MAX);
        return commands
            .iter()
            .flat_map(|(_, one)| accesses(program, one))
            .collect();
    }
    let mut list = match &action.what {
        What::Read(side, place, shape) => {
            let (first, second) = rows(shape);
            vec![object(*side, first, false), pointer(*place, second, true)]
        }
        What::Write(side, place, shape) => {
            let (first, second) = rows(shape);
            vec![pointer(*place, second, false), object(*side, first, true)]
        }
        What::Copy(src, dst, shape) => {
            let (first, second) = rows(shape);
            vec![object(*src, first, false), object(*dst, second, true)]
        }
        What::Fill(side, size, _) => vec![object(*side, *size, true)],
        What::Memcpy(dst, src, size, _) => {
            vec![pointer(*src, *size, false), pointer(*dst, *size, true)]
        }
        What::MemFill(place, size, _) => vec![pointer(*place, *size, true)],
        What::Map(side, size, how) => vec![Access {
            by: By::Map,
            ..object(*side, *size, *how != MapHow::Read)
        }],
        What::SvmMap(place, size, how) => vec![pointer(*place, *size, *how != MapHow::Read)],
        What::Unmap(map) => map_of(program, *map).into_iter().collect(),
        What::Kernel {
            dst, src, words, ..
        } => vec![
            operand(program, *src, words * 4, false),
            operand(program, *dst, words * 4, true),
        ],
        What::Migrate(memory, _) => {
            let by = match program.memories[*memory].kind.is_object() {
                true => By::Object(0),
                false => By::Pointer,
            };
            vec![Access {
                by,
                ..all(program, *memory)
            }]
        }
        What::Free(memory) => vec![all(program, *memory)],
        What::Store(place, size, _) => vec![pointer(*place, *size, true)],
        What::Check(place, size) => vec![pointer(*place, *size, false)],
        _ => Vec::new(),
    };
    for access in &mut list {
        access.queue = action.what.is_command().then_some(action.queue);
    }
    list
}

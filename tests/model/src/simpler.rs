//! Edits that may make a program simpler, and which of two programs is.
//!
//! An edit is made to the plain data; the planner then plays the result once more ([`replay`]): waits that have become
//! necessary are added, and what is not legal any more is left out.

use crate::plan::{Mending, Planner};
use crate::program::{
    Kind, Manner, MapHow, Memory, Operand, Origin, Place, Program, ProgramAction, Shape, Side, What,
};
use std::ops::Range;

/// An edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// These actions go.
    Remove(Range<usize>),
    /// A memory that nothing names goes.
    DropMemory(usize),
    /// Drops a queue; the first one takes its commands.
    DropQueue(usize),
    /// A wait goes: action, place in its list.
    DropWait(usize, usize),
    /// An action is changed in this way.
    Change(usize, Change),
    /// A memory is changed in this way.
    Memory(usize, Other),
    /// A queue is in order, without measured times, there from the start.
    PlainQueue(usize),
    /// No memory is larger than this.
    Clip(usize),
    /// A command buffer is not updated, and not used simultaneously.
    PlainRecording(usize),
    /// A recorded command is enqueued.
    Unrecord(usize),
}

/// A simplification of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Neither event nor callback.
    Quiet,
    /// Makes it block.
    Block,
    /// One row in place of many.
    Line,
    /// Everything begins at byte 0, of the first object.
    Start,
    /// A quarter of the loop.
    Spins,
    /// Half the bytes.
    Half,
    /// A map for reading and writing.
    MapWrite,
    /// Pointers in place of numbers.
    Pointers,
    /// A kernel that neither prints nor enqueues.
    Plain,
}

/// A simplification of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// There from the start.
    FromStart,
    /// No sub-buffers.
    Whole,
    /// A simpler kind.
    Kind,
}

const CHANGES: [Change; 9] = [
    Change::Quiet,
    Change::Block,
    Change::Line,
    Change::Start,
    Change::Spins,
    Change::Half,
    Change::MapWrite,
    Change::Pointers,
    Change::Plain,
];

fn log(number: usize) -> usize {
    number.checked_ilog2().map_or(0, |log| log as usize + 1)
}

fn cost_of_kind(kind: Kind) -> usize {
    match kind {
        Kind::Plain => 0,
        Kind::Buffer(Origin::Written) => 5,
        Kind::Buffer(_) => 10,
        Kind::Svm { fine: true } => 15,
        Kind::UseHost(0) | Kind::Svm { fine: false } => 20,
        Kind::SvmBuffer { lead: 0, .. } => 25,
        Kind::UseHost(_) | Kind::SvmBuffer { .. } => 35,
        Kind::Usm(_) | Kind::Image(_) | Kind::System => 22,
    }
}

fn cost_of_action(action: &ProgramAction) -> usize {
    let flags = 10 * usize::from(action.event) + 15 * usize::from(action.callback);
    let flows = 5 * usize::from(action.what.can_block() && !action.blocking);
    let side = |side: &Side| 5 * usize::from(side.view > 0) + 3 * usize::from(side.at > 0);
    let place = |place: &Place| 3 * usize::from(place.at > 0);
    let operand = |of: &Operand| match of {
        Operand::Object(of) => side(of),
        Operand::Pointer(of) => place(of),
        Operand::Number(of) => 10 + place(of),
    };
    let shape = |shape: &Shape| 30 * usize::from(shape.rows > 1) + log(shape.row * shape.rows);
    let own = match &action.what {
        What::Read(a, b, c) | What::Write(a, b, c) => side(a) + place(b) + shape(c),
        What::Copy(a, b, c) => side(a) + side(b) + shape(c),
        What::Fill(a, size, pattern) => side(a) + log(*size) + log(pattern.len()),
        What::Memcpy(a, b, size, _) => place(a) + place(b) + log(*size),
        What::MemFill(a, size, pattern) => place(a) + log(*size) + log(pattern.len()),
        What::Map(a, size, how) => side(a) + log(*size) + 5 * usize::from(*how != MapHow::Write),
        What::SvmMap(a, size, how) => {
            place(a) + log(*size) + 5 * usize::from(*how != MapHow::Write)
        }
        What::Kernel {
            dst,
            src,
            words,
            spins,
            manner,
            ..
        } => {
            let manners = usize::from(manner.prints) + usize::from(manner.enqueues);
            operand(dst) + operand(src) + log(*words) + 2 * log(*spins) + 50 * manners
        }
        What::Update {
            dst, src, words, ..
        } => operand(dst) + operand(src) + log(*words),
        What::Store(a, size, _) | What::Check(a, size) => place(a) + log(*size),
        _ => 0,
    };
    let recorded = 40 * usize::from(action.recording.is_some());
    1000 + 60 * action.waits.len() + flags + flows + own + recorded
}

/// How far a program is from simple.
pub fn cost(program: &Program) -> usize {
    let memory = |memory: &Memory| {
        300 + 40 * usize::from(memory.late)
            + 50 * memory.views.len().saturating_sub(1)
            + cost_of_kind(memory.kind)
            + 3 * log(memory.size)
    };
    let queue = |queue: &crate::program::Queue| {
        300 + 30 * usize::from(!queue.in_order)
            + 20 * usize::from(queue.profiling)
            + 40 * usize::from(queue.late)
    };
    let recording = |of: &crate::program::Recording| {
        20 * usize::from(of.simultaneous) + 20 * usize::from(of.mutable)
    };
    program.actions.iter().map(cost_of_action).sum::<usize>()
        + program.recordings.iter().map(recording).sum::<usize>()
        + program.memories.iter().map(memory).sum::<usize>()
        + program.queues.iter().map(queue).sum::<usize>()
}

/// The edits that can be tried on a program, those that take most away first.
pub fn edits(program: &Program) -> Vec<Edit> {
    let mut list = Vec::new();
    let count = program.actions.len();
    let mut length = count / 2;
    while length > 0 {
        let starts = (0..count).step_by(length).rev();
        list.extend(starts.map(|start| Edit::Remove(start..(start + length).min(count))));
        length /= 2;
    }
    list.extend((0..program.memories.len()).rev().map(Edit::DropMemory));
    list.extend((1..program.queues.len()).rev().map(Edit::DropQueue));
    list.extend([64, 1024, 16 << 10, 64 << 10].map(Edit::Clip));
    list.extend((0..program.queues.len()).map(Edit::PlainQueue));
    list.extend((0..program.recordings.len()).map(Edit::PlainRecording));
    let recorded = (0..count).filter(|&at| program.actions[at].recording.is_some());
    list.extend(recorded.map(Edit::Unrecord));
    for (index, action) in program.actions.iter().enumerate() {
        list.extend((0..action.waits.len()).map(|at| Edit::DropWait(index, at)));
    }
    for index in 0..program.memories.len() {
        list.extend(
            [Other::FromStart, Other::Whole, Other::Kind].map(|of| Edit::Memory(index, of)),
        );
    }
    for index in 0..count {
        list.extend(CHANGES.map(|change| Edit::Change(index, change)));
    }
    list
}

/// Changes the places that an action names.
fn places(what: &mut What, mut side: impl FnMut(&mut Side), mut place: impl FnMut(&mut Place)) {
    let mut operand = |of: &mut Operand, side: &mut dyn FnMut(&mut Side)| match of {
        Operand::Object(of) => side(of),
        Operand::Pointer(of) | Operand::Number(of) => place(of),
    };
    match what {
        What::Kernel { dst, src, .. } | What::Update { dst, src, .. } => {
            operand(dst, &mut side);
            operand(src, &mut side);
        }
        What::Read(a, b, _) | What::Write(a, b, _) => {
            side(a);
            place(b);
        }
        What::Copy(a, b, _) => {
            side(a);
            side(b);
        }
        What::Fill(a, ..) | What::Map(a, ..) => side(a),
        What::Memcpy(a, b, ..) => {
            place(a);
            place(b);
        }
        What::MemFill(a, ..) | What::SvmMap(a, ..) | What::Store(a, ..) | What::Check(a, _) => {
            place(a);
        }
        _ => {}
    }
}

/// The memory that an action names by number alone.
fn named(what: &mut What) -> Option<&mut usize> {
    match what {
        What::Migrate(of, _) | What::Free(of) | What::Create(of) | What::Release(of) => Some(of),
        _ => None,
    }
}

/// The queue that an action names although it is no command.
fn named_queue(what: &mut What) -> Option<&mut usize> {
    match what {
        What::NewQueue(of) | What::EndQueue(of) | What::Flush(of) | What::Finish(of) => Some(of),
        _ => None,
    }
}

fn uses(program: &Program, memory: usize) -> bool {
    program.actions.iter().any(|action| {
        let mut what = action.what.clone();
        let mut found = named(&mut what).is_some_and(|of| *of == memory);
        let mut other = false;
        places(
            &mut what,
            |side| found |= side.memory == memory,
            |place| other |= place.memory == memory,
        );
        found || other
    })
}

/// The size of an action, to make smaller.
fn shrink_size(what: &mut What, to: impl Fn(usize) -> usize) {
    match what {
        What::Read(_, _, shape) | What::Write(_, _, shape) | What::Copy(_, _, shape) => {
            if shape.rows > 1 {
                shape.rows = to(shape.rows * 4).div_ceil(4).clamp(1, shape.rows);
            } else {
                *shape = Shape::line(to(shape.row).clamp(1, shape.row));
            }
        }
        What::Fill(_, size, pattern) | What::MemFill(_, size, pattern) => {
            *size = to(*size).next_multiple_of(pattern.len()).min(*size);
        }
        What::Memcpy(_, _, size, _)
        | What::Map(_, size, _)
        | What::SvmMap(_, size, _)
        | What::Store(_, size, _)
        | What::Check(_, size) => *size = to(*size).clamp(1, *size),
        What::Kernel { words, .. } | What::Update { words, .. } => {
            *words = (to(*words * 4) / 4).clamp(1, *words)
        }
        _ => {}
    }
}

fn change(action: &mut ProgramAction, change: Change) {
    match (change, &mut action.what) {
        (Change::Quiet, _) => (action.event, action.callback) = (false, false),
        (Change::Block, what) => action.blocking = what.can_block(),
        (
            Change::Line,
            What::Read(_, _, shape) | What::Write(_, _, shape) | What::Copy(_, _, shape),
        ) => *shape = Shape::line(shape.row * shape.rows / 4 * 4),
        (Change::Start, what) => places(
            what,
            |side| (side.at, side.view) = (0, 0),
            |place| place.at = if place.map.is_some() { place.at } else { 0 },
        ),
        (Change::Spins, What::Kernel { spins, .. }) => *spins /= 4,
        (Change::Plain, What::Kernel { manner, .. }) => *manner = Manner::default(),
        (Change::Half, what) => shrink_size(what, |size| size / 2 / 4 * 4),
        (Change::MapWrite, What::Map(_, _, how) | What::SvmMap(_, _, how)) => *how = MapHow::Write,
        (Change::Pointers, What::Kernel { dst, src, .. }) => {
            for side in [dst, src] {
                if let Operand::Number(place) = *side {
                    *side = Operand::Pointer(place);
                }
            }
        }
        _ => {}
    }
}

fn simpler_kind(kind: Kind) -> Kind {
    match kind {
        Kind::Buffer(_) => Kind::Buffer(Origin::Written),
        Kind::UseHost(0) => Kind::Buffer(Origin::Written),
        Kind::UseHost(_) => Kind::UseHost(0),
        Kind::SvmBuffer { fine, lead: 0 } => Kind::Svm { fine },
        Kind::SvmBuffer { fine, .. } => Kind::SvmBuffer { fine, lead: 0 },
        Kind::Svm { fine: false } | Kind::Usm(_) | Kind::System => Kind::Svm { fine: true },
        other => other,
    }
}

fn clip(program: &mut Program, most: usize) {
    // Where the objects of each memory are afterwards: sub-buffers cannot begin anywhere.
    let mut objects: Vec<Vec<usize>> = Vec::new();
    for memory in &mut program.memories {
        let pitch = memory.kind.pitch().unwrap_or(1);
        memory.size = memory.size.min(most.next_multiple_of(pitch));
        let mut left = 0;
        let mut now = Vec::new();
        for view in &memory.views {
            now.push(if view.start < memory.size { left } else { 0 });
            left += usize::from(view.start < memory.size);
        }
        memory.views.retain(|view| view.start < memory.size);
        for view in &mut memory.views {
            view.end = view.end.min(memory.size);
        }
        objects.push(now);
    }
    let low = |at: &mut usize| *at = if *at >= most { 0 } else { *at };
    for action in &mut program.actions {
        let at = std::cell::Cell::new(0);
        places(
            &mut action.what,
            |side| {
                side.view = objects[side.memory][side.view];
                low(&mut side.at);
                at.set(at.get().max(side.at));
            },
            |place| {
                low(&mut place.at);
                at.set(at.get().max(place.at));
            },
        );
        shrink_size(&mut action.what, |size| size.min(most - at.get()));
    }
}

/// The program after an edit, legal again. None: nothing changes.
pub fn apply(program: &Program, edit: &Edit) -> Option<Program> {
    let mut next = program.clone();
    let mut gone = 0..0;
    match edit {
        Edit::Remove(range) => gone = range.clone(),
        Edit::DropMemory(index) => {
            if uses(program, *index) || program.memories.len() == 1 {
                return None;
            }
            next.memories.remove(*index);
            let lower = |of: &mut usize| *of -= usize::from(*of > *index);
            for action in &mut next.actions {
                let (side, place) = (
                    |side: &mut Side| lower(&mut side.memory),
                    |place: &mut Place| lower(&mut place.memory),
                );
                places(&mut action.what, side, place);
                named(&mut action.what).map(lower);
            }
        }
        Edit::DropQueue(index) => {
            // What a device can do of gates stands in the actions.
            let of = &program.actions;
            let gate = of
                .iter()
                .any(|one| one.queue == *index && one.what.is_gate_of_device());
            if gate && program.queues[*index].device != program.queues[0].device {
                return None;
            }
            next.queues.remove(*index);
            let lower = |of: &mut usize| match *of == *index {
                true => *of = 0,
                false => *of -= usize::from(*of > *index),
            };
            let queues = next.recordings.iter_mut().flat_map(|one| &mut one.queues);
            queues.for_each(lower);
            for action in &mut next.actions {
                lower(&mut action.queue);
                named_queue(&mut action.what).map(lower);
                if let What::Replay { queues, .. } = &mut action.what {
                    queues.iter_mut().for_each(lower);
                }
            }
        }
        Edit::DropWait(index, at) => {
            next.actions[*index].waits.remove(*at);
        }
        Edit::Change(index, how) => change(&mut next.actions[*index], *how),
        Edit::Memory(index, how) => {
            let memory = &mut next.memories[*index];
            match how {
                Other::FromStart => memory.late = false,
                Other::Whole => memory.views.truncate(1),
                Other::Kind => {
                    memory.kind = simpler_kind(memory.kind);
                    if !memory.kind.is_object() {
                        memory.views.clear();
                    }
                }
            }
        }
        Edit::PlainQueue(index) => {
            let queue = &mut next.queues[*index];
            (queue.in_order, queue.profiling, queue.late) = (true, false, false);
        }
        Edit::Clip(most) => clip(&mut next, *most),
        Edit::PlainRecording(index) => {
            // Copies are as what they are copies of.
            let mut plain = vec![*index];
            for (at, recording) in next.recordings.iter_mut().enumerate() {
                if at == *index || recording.from.is_some_and(|from| plain.contains(&from)) {
                    (recording.simultaneous, recording.mutable) = (false, false);
                    plain.push(at);
                }
            }
        }
        Edit::Unrecord(index) => {
            let action = &mut next.actions[*index];
            action.recording = None;
            action.waits.clear();
        }
    }
    if gone.is_empty() && next == *program {
        return None;
    }
    let next = replay(&next, &gone);
    (cost(&next) < cost(program)).then_some(next)
}

/// The program as the planner lets it be, without some actions.
pub fn replay(program: &Program, gone: &Range<usize>) -> Program {
    let mut planner = Planner::new(program);
    // Where the actions are now.
    let mut now: Vec<Option<usize>> = Vec::new();
    for (index, action) in program.actions.iter().enumerate() {
        let moved = if gone.contains(&index) {
            None
        } else {
            moved(action, &now)
        };
        now.push(moved.and_then(|action| planner.mend(action, |_| Mending::Event).ok()));
    }
    planner.program().clone()
}

/// An action that names others where they are now. None: one of them is gone.
fn moved(action: &ProgramAction, now: &[Option<usize>]) -> Option<ProgramAction> {
    let mut action = action.clone();
    action.waits = action.waits.iter().filter_map(|&of| now[of]).collect();
    if let What::Unmap(of) | What::Wait(of) | What::Open(of) | What::Update { of, .. } =
        &mut action.what
    {
        *of = now[*of]?;
    }
    let mut whole = true;
    places(
        &mut action.what,
        |_| {},
        |place| {
            if let Some(map) = place.map {
                place.map = now[map];
                whole &= place.map.is_some();
            }
        },
    );
    whole.then_some(action)
}

//! Programs and faults in words.

use crate::program::{Action, Kind, Operand, Place, Program, Shape, Side, What};
use crate::run::Fault;
use std::fmt::Write;

fn side(side: &Side, size: usize) -> String {
    let view = match side.view {
        0 => String::new(),
        view => format!(".sub{view}"),
    };
    format!("m{}{view}[{}..{}]", side.memory, side.at, side.at + size)
}

fn place(place: &Place, size: usize) -> String {
    let map = place
        .map
        .map_or(String::new(), |map| format!(" by map {map}"));
    format!("*m{}[{}..{}]{map}", place.memory, place.at, place.at + size)
}

fn shape(shape: &Shape) -> String {
    match shape.rows {
        1 => String::new(),
        rows => format!(
            " in {rows} rows of {} (pitches {}, {})",
            shape.row, shape.first, shape.second
        ),
    }
}

fn operand(operand: &Operand, words: usize) -> String {
    match operand {
        Operand::Object(object) => side(object, words * 4),
        Operand::Address(address) => place(address, words * 4),
    }
}

/// The name of what an action does.
pub fn name(what: &What) -> &'static str {
    match what {
        What::Read(_, _, shape) if shape.rows > 1 => "ReadBufferRect",
        What::Read(..) => "ReadBuffer",
        What::Write(_, _, shape) if shape.rows > 1 => "WriteBufferRect",
        What::Write(..) => "WriteBuffer",
        What::Copy(_, _, shape) if shape.rows > 1 => "CopyBufferRect",
        What::Copy(..) => "CopyBuffer",
        What::Fill(..) => "FillBuffer",
        What::Memcpy(..) => "Memcpy",
        What::MemFill(..) => "MemFill",
        What::Map { svm: true, .. } => "SVMMap",
        What::Map { .. } => "MapBuffer",
        What::Unmap(_) => "Unmap",
        What::Kernel { .. } => "Kernel",
        What::ReadImage(..) => "ReadImage",
        What::WriteImage(..) => "WriteImage",
        What::ImageToBuffer(..) => "CopyImageToBuffer",
        What::BufferToImage(..) => "CopyBufferToImage",
        What::FillImage(..) => "FillImage",
        What::Marker => "Marker",
        What::Barrier => "Barrier",
        What::Migrate(_) => "Migrate",
        What::Free(_) => "SVMFree",
        What::Release(_) => "Release",
        What::Gate(_) => "user event",
        What::Store(..) => "host writes",
        What::Check(..) => "host reads",
        What::Flush => "Flush",
        What::Finish => "Finish",
        What::Wait(_) => "WaitForEvents",
        What::Sleep(_) => "sleep",
        What::NewQueue => "new queue",
    }
}

fn details(what: &What) -> String {
    match what {
        What::Read(from, to, rows) => {
            let (first, second) = (rows.span(rows.first), rows.span(rows.second));
            let (from, to) = (side(from, first), place(to, second));
            format!("{from} to {to}{}", shape(rows))
        }
        What::Write(to, from, rows) => {
            let (first, second) = (rows.span(rows.first), rows.span(rows.second));
            let (to, from) = (side(to, first), place(from, second));
            format!("{from} to {to}{}", shape(rows))
        }
        What::Copy(from, to, rows) => {
            let (first, second) = (rows.span(rows.first), rows.span(rows.second));
            let (from, to) = (side(from, first), side(to, second));
            format!("{from} to {to}{}", shape(rows))
        }
        What::Fill(to, size, pattern) => format!("{} with {pattern:?}", side(to, *size)),
        What::Memcpy(to, from, size) => format!("{} to {}", place(from, *size), place(to, *size)),
        What::MemFill(to, size, pattern) => format!("{} with {pattern:?}", place(to, *size)),
        What::Map {
            side: of,
            size,
            how,
            ..
        } => format!("{} {how:?}", side(of, *size)),
        What::Unmap(map) => format!("of {map}"),
        What::Kernel {
            dst,
            src,
            words,
            add,
            spins,
        } => {
            let (src, dst) = (operand(src, *words), operand(dst, *words));
            format!("{src} to {dst} (add {add}, {spins} turns)")
        }
        What::ReadImage(from, to, size) => {
            format!("{} to {}", side(from, *size), place(to, *size))
        }
        What::WriteImage(to, from, size) => {
            format!("{} to {}", place(from, *size), side(to, *size))
        }
        What::ImageToBuffer(from, to, size) | What::BufferToImage(from, to, size) => {
            let (from, to) = (side(from, *size), side(to, *size));
            format!("{from} to {to}")
        }
        What::FillImage(to, size, byte) => format!("{} with {byte}", side(to, *size)),
        What::Migrate(memory) | What::Free(memory) | What::Release(memory) => format!("m{memory}"),
        What::Gate(time) => format!("set after {time} us"),
        What::Store(to, size, byte) => format!("{byte} to {}", place(to, *size)),
        What::Check(from, size) => place(from, *size),
        What::Wait(other) => format!("{other}"),
        What::Sleep(time) => format!("{time} us"),
        What::Marker | What::Barrier | What::Flush | What::Finish | What::NewQueue => String::new(),
    }
}

fn action(number: usize, action: &Action) -> String {
    let mut line = format!("{number:3}  ");
    let of_queue = action.is_command() || matches!(action.what, What::Flush | What::Finish);
    if of_queue {
        let _ = write!(line, "q{} ", action.queue);
    }
    let _ = write!(line, "{} {}", name(&action.what), details(&action.what));
    if action.blocking {
        line += ", blocking";
    }
    if !action.waits.is_empty() {
        let _ = write!(line, ", after {:?}", action.waits);
    }
    if action.callback {
        line += ", callback";
    } else if action.event {
        line += ", event";
    }
    line
}

/// A program, a line each for memories, queues and actions.
pub fn program(program: &Program) -> String {
    let mut text = String::new();
    let uses = |memory: usize| {
        program.actions.iter().any(|action| {
            crate::access::accesses(program, action)
                .iter()
                .any(|access| access.memory == memory)
        })
    };
    for (index, memory) in program.memories.iter().enumerate() {
        if uses(index) {
            let _ = write!(
                text,
                "     m{index}: {:?}, {} bytes",
                memory.kind, memory.size
            );
            for view in &memory.views[1..] {
                let _ = write!(text, ", sub-buffer {view:?}");
            }
            text += "\n";
        }
    }
    for (index, queue) in program.queues.iter().enumerate() {
        let order = if queue.in_order {
            "in order"
        } else {
            "out of order"
        };
        let profiling = if queue.profiling { ", profiling" } else { "" };
        let _ = writeln!(
            text,
            "     q{index}: device {}, {order}{profiling}",
            queue.device
        );
    }
    for (number, one) in program.actions.iter().enumerate() {
        let _ = writeln!(text, "{}", action(number, one));
    }
    text
}

/// What kind of memory, in a word.
fn kind(kind: Kind) -> String {
    match kind {
        Kind::Svm { fine: true } => "fine SVM".into(),
        Kind::Svm { fine: false } => "coarse SVM".into(),
        Kind::SvmBuffer { fine: true, .. } => "buffer over fine SVM".into(),
        Kind::SvmBuffer { fine: false, .. } => "buffer over coarse SVM".into(),
        Kind::UseHost(_) => "buffer over host memory".into(),
        Kind::Buffer(_) => "buffer".into(),
        Kind::Image(_) => "image".into(),
        Kind::Plain => "host memory".into(),
        Kind::Usm(usm) => format!("USM {usm:?}").to_lowercase(),
    }
}

/// A fault: what kind of thing it is, and the bytes.
pub fn fault(program: &Program, fault: &Fault) -> String {
    match fault {
        Fault::Bytes(seen, wrong) => {
            let by = wrong.writer.and_then(|writer| program.actions.get(writer));
            let by = by.map_or("nothing", |action| name(&action.what));
            let writer = wrong
                .writer
                .map_or(String::new(), |writer| format!(" {writer}"));
            let seen = seen.map_or("at the end".into(), |seen| format!("by {seen}"));
            format!(
                "what {by}{writer} should have left in {} is wrong: m{}, {} bytes from {} on, seen {seen}: \
                 expected {:02x?}, got {:02x?}",
                kind(program.memories[wrong.memory].kind),
                wrong.memory,
                wrong.count,
                wrong.at,
                wrong.expected,
                wrong.got
            )
        }
        Fault::Status(number, status) => format!("the event of {number} ended with {status}"),
        Fault::Callbacks(count) => format!("{count} callbacks did not come"),
        Fault::Called => "a callback came twice, or with an error".into(),
    }
}

//! Programs as text: one line for each memory, queue and action. [`crate::parse`] reads the same.
//!
//! ```text
//! seed 7
//! memory 0 svm-fine 65536 views
//! memory 1 buffer 65536 views 0..65536 4096..8192
//! queue 0 in-order device 0
//! 0 q0 kernel m0@0 m0@0 words 16384 add 5 spins 4000
//! 1 q0 write m1/0@0 m0@0 65536
//! 2 q0 read m1/1@4096 m2@0 16x4:256:16 after 1 blocking event callback
//! 3 check m2@0 64
//! recording 0 queues 0 simultaneous mutable
//! recording 1 queues 1 simultaneous mutable from 0
//! semaphore 0 device 0
//! 4 begin 0
//! 5 q0 record 0 fill m1/0@0 64 ab
//! 6 q0 record 0 kernel m0@0 m1/0@0 words 16 add 5 spins 0 after 5
//! 7 finalize 0
//! 8 q0 replay 0 own 0 after 2
//! 9 update 6 m0@0 m1/1@4096 words 8 add 7
//! 10 q0 signal 0
//! 11 begin 1
//! 12 update 6 m0@0 m1/1@4096 words 8 add 9 copy 1
//! 13 q0 kernel m0@0 m0@0 words 16 add 5 spins 0 prints enqueues
//! ```
//! `m1/1@4096` is byte 4096 of memory 1 by its object 1, `m0@0` by its pointer, `m0@0^5` by the pointer that action 5
//! mapped, `*m0@0` by a number that a kernel makes a pointer of. Rows are `bytes x rows : pitch : pitch`.

use crate::program::{
    Kind, Manner, MapHow, Memory, Misuse, Operand, Origin, Place, Program, ProgramAction, Queue,
    Recording, Shape, Side, Thread, Usm, What,
};
use std::fmt::{Display, Formatter, Result};

impl Display for Kind {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let grain = |fine: bool| if fine { "fine" } else { "coarse" };
        match self {
            Self::Plain => write!(out, "plain"),
            Self::System => write!(out, "system"),
            Self::Buffer(Origin::Written) => write!(out, "buffer"),
            Self::Buffer(Origin::Copied) => write!(out, "copied"),
            Self::Buffer(Origin::CopiedAlloc) => write!(out, "copied-alloc"),
            Self::UseHost(lead) => write!(out, "use-host+{lead}"),
            Self::Svm { fine } => write!(out, "svm-{}", grain(*fine)),
            Self::SvmBuffer { fine, lead } => write!(out, "buffer-svm-{}+{lead}", grain(*fine)),
            Self::Usm(Usm::Host) => write!(out, "usm-host"),
            Self::Usm(Usm::Device) => write!(out, "usm-device"),
            Self::Usm(Usm::Shared) => write!(out, "usm-shared"),
            Self::Image(pitch) => write!(out, "image+{pitch}"),
        }
    }
}

impl Display for Memory {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "{} {} device {}", self.kind, self.size, self.device)?;
        if self.late {
            write!(out, " late")?;
        }
        write!(out, " views")?;
        let mut views = self.views.iter();
        views.try_for_each(|view| write!(out, " {}..{}", view.start, view.end))
    }
}

impl Display for Queue {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let order = if self.in_order {
            "in-order"
        } else {
            "out-of-order"
        };
        write!(out, "{order} device {}", self.device)?;
        if self.profiling {
            write!(out, " profiling")?;
        }
        if self.late {
            write!(out, " late")?;
        }
        Ok(())
    }
}

/// Numbers with commas between.
fn list(numbers: &[usize]) -> String {
    let list: Vec<String> = numbers.iter().map(usize::to_string).collect();
    list.join(",")
}

impl Display for Recording {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "queues {}", list(&self.queues))?;
        if self.simultaneous {
            write!(out, " simultaneous")?;
        }
        if self.mutable {
            write!(out, " mutable")?;
        }
        if let Some(from) = self.from {
            write!(out, " from {from}")?;
        }
        Ok(())
    }
}

impl Display for Manner {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        if self.prints {
            write!(out, " prints")?;
        }
        if self.enqueues {
            write!(out, " enqueues")?;
        }
        Ok(())
    }
}

impl Display for Side {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "m{}/{}@{}", self.memory, self.view, self.at)
    }
}

impl Display for Place {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "m{}@{}", self.memory, self.at)?;
        self.map.map_or(Ok(()), |map| write!(out, "^{map}"))
    }
}

impl Display for Operand {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Object(side) => write!(out, "{side}"),
            Self::Pointer(place) => write!(out, "{place}"),
            Self::Number(place) => write!(out, "*{place}"),
        }
    }
}

impl Display for Shape {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        if *self == Self::line(self.row) {
            return write!(out, "{}", self.row);
        }
        let Self {
            row,
            rows,
            first,
            second,
        } = self;
        write!(out, "{row}x{rows}:{first}:{second}")
    }
}

impl Display for MapHow {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "{}",
            match self {
                Self::Read => "read",
                Self::Write => "write",
                Self::Invalidate => "invalidate",
            }
        )
    }
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl What {
    /// Its name in the text.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Read(..) => "read",
            Self::Write(..) => "write",
            Self::Copy(..) => "copy",
            Self::Fill(..) => "fill",
            Self::Memcpy(.., false) => "svm-memcpy",
            Self::Memcpy(.., true) => "usm-memcpy",
            Self::MemFill(..) => "memfill",
            Self::Map(..) => "map",
            Self::SvmMap(..) => "svm-map",
            Self::Unmap(_) => "unmap",
            Self::Kernel { .. } => "kernel",
            Self::Marker => "marker",
            Self::Barrier => "barrier",
            Self::Migrate(_, false) => "migrate",
            Self::Migrate(_, true) => "migrate-host",
            Self::Free(_) => "free",
            Self::Create(_) => "create",
            Self::Release(_) => "release",
            Self::NewQueue(_) => "new-queue",
            Self::EndQueue(_) => "end-queue",
            Self::Gate(_) => "gate",
            Self::Refuse(_) => "refuse",
            Self::Hold => "hold",
            Self::GateKernel(false) => "gate-kernel",
            Self::GateKernel(true) => "gate-kernel-alone",
            Self::GateNative => "gate-native",
            Self::Open(_) => "open",
            Self::Doomed => "doomed",
            Self::Begin(_) => "begin",
            Self::Finalize(_) => "finalize",
            Self::Replay { .. } => "replay",
            Self::Update { .. } => "update",
            Self::Discard(_) => "discard",
            Self::Misuse(_, Misuse::Unfinalized) => "misuse-unfinalized",
            Self::Misuse(_, Misuse::Point) => "misuse-point",
            Self::Misuse(_, Misuse::Finalized) => "misuse-finalized",
            Self::Signal(_) => "signal",
            Self::Await(_) => "await",
            Self::Thread(Thread::Fresh) => "thread",
            Self::Thread(Thread::Local) => "thread-local",
            Self::Thread(Thread::Key) => "thread-key",
            Self::Store(..) => "store",
            Self::Check(..) => "check",
            Self::Flush(_) => "flush",
            Self::Finish(_) => "finish",
            Self::Wait(_) => "wait",
            Self::Sleep(_) => "sleep",
        }
    }
}

impl Display for What {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "{}", self.verb())?;
        match self {
            Self::Read(side, place, shape) | Self::Write(side, place, shape) => {
                write!(out, " {side} {place} {shape}")
            }
            Self::Copy(src, dst, shape) => write!(out, " {src} {dst} {shape}"),
            Self::Fill(side, size, pattern) => write!(out, " {side} {size} {}", hex(pattern)),
            Self::Memcpy(dst, src, size, _) => write!(out, " {dst} {src} {size}"),
            Self::MemFill(place, size, pattern) => write!(out, " {place} {size} {}", hex(pattern)),
            Self::Map(side, size, how) => write!(out, " {side} {size} {how}"),
            Self::SvmMap(place, size, how) => write!(out, " {place} {size} {how}"),
            Self::Kernel {
                dst,
                src,
                words,
                add,
                spins,
                manner,
            } => {
                write!(out, " {dst} {src} words {words} add {add} spins {spins}")?;
                write!(out, "{manner}")
            }
            Self::Marker
            | Self::Barrier
            | Self::Hold
            | Self::GateKernel(_)
            | Self::GateNative
            | Self::Doomed
            | Self::Thread(_) => Ok(()),
            Self::Replay { of, queues, own } => {
                let how = if *own { "own" } else { "queues" };
                write!(out, " {of} {how} {}", list(queues))
            }
            Self::Update {
                of,
                copy,
                dst,
                src,
                words,
                add,
            } => {
                write!(out, " {of} {dst} {src} words {words} add {add}")?;
                copy.map_or(Ok(()), |copy| write!(out, " copy {copy}"))
            }
            Self::Signal(semaphores) | Self::Await(semaphores) => {
                write!(out, " {}", list(semaphores))
            }
            Self::Store(place, size, number) => write!(out, " {place} {size} {number}"),
            Self::Check(place, size) => write!(out, " {place} {size}"),
            Self::Unmap(number)
            | Self::Migrate(number, _)
            | Self::Free(number)
            | Self::Create(number)
            | Self::Release(number)
            | Self::NewQueue(number)
            | Self::EndQueue(number)
            | Self::Flush(number)
            | Self::Finish(number)
            | Self::Open(number)
            | Self::Begin(number)
            | Self::Finalize(number)
            | Self::Discard(number)
            | Self::Misuse(number, _)
            | Self::Wait(number) => write!(out, " {number}"),
            Self::Gate(time) | Self::Refuse(time) | Self::Sleep(time) => write!(out, " {time}"),
        }
    }
}

impl Display for ProgramAction {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        if self.what.is_command() {
            write!(out, "q{} ", self.queue)?;
        }
        if let Some(of) = self.recording {
            write!(out, "record {of} ")?;
        }
        write!(out, "{}", self.what)?;
        if !self.waits.is_empty() {
            write!(out, " after {}", list(&self.waits))?;
        }
        for (set, name) in [
            (self.blocking, "blocking"),
            (self.event, "event"),
            (self.callback, "callback"),
        ] {
            if set {
                write!(out, " {name}")?;
            }
        }
        Ok(())
    }
}

impl Display for Program {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        writeln!(out, "seed {}", self.seed)?;
        if self.strict {
            writeln!(out, "strict")?;
        }
        for (index, memory) in self.memories.iter().enumerate() {
            writeln!(out, "memory {index} {memory}")?;
        }
        for (index, queue) in self.queues.iter().enumerate() {
            writeln!(out, "queue {index} {queue}")?;
        }
        for (index, recording) in self.recordings.iter().enumerate() {
            writeln!(out, "recording {index} {recording}")?;
        }
        for (index, device) in self.semaphores.iter().enumerate() {
            writeln!(out, "semaphore {index} device {device}")?;
        }
        for (index, action) in self.actions.iter().enumerate() {
            writeln!(out, "{index} {action}")?;
        }
        Ok(())
    }
}

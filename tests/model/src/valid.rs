//! Whether an action makes sense by itself: what it names exists at that time and has the bytes that are asked for.

mod recorded;

use crate::access::meet;
use crate::program::{
    Kind, Manner, MapHow, Memory, Operand, Place, Program, ProgramAction, Shape, Side, Usm, What,
    MOST,
};
use std::ops::Range;

/// The state of a command buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not created yet.
    New,
    /// Commands are recorded.
    Recording,
    /// Ready to be enqueued.
    Finalized,
    /// Released.
    Gone,
}

/// The objects that exist after the actions so far.
#[derive(Debug, Clone)]
pub struct State {
    /// Queues that can be used.
    pub queues: Vec<bool>,
    /// Memories whose memory objects can be used.
    pub objects: Vec<bool>,
    /// Memories that can be used at all.
    pub memories: Vec<bool>,
    /// Maps without an unmap so far.
    pub open: Vec<usize>,
    /// Gates that are closed.
    pub closed: Vec<usize>,
    /// The command buffers.
    pub recordings: Vec<Phase>,
}

type Verdict = Result<(), &'static str>;

fn check(holds: bool, complaint: &'static str) -> Verdict {
    match holds {
        true => Ok(()),
        false => Err(complaint),
    }
}

/// Sizes of patterns that are allowed.
fn fits_pattern(at: usize, size: usize, pattern: usize) -> bool {
    pattern.is_power_of_two()
        && pattern <= 128
        && size > 0
        && at % pattern == 0
        && size % pattern == 0
}

/// An action has an event.
fn is_event(program: &Program, of: usize) -> bool {
    program.actions.get(of).is_some_and(|one| match one.what {
        What::Gate(_) | What::Refuse(_) | What::Hold => true,
        // A call that fails gives no event.
        _ => one.is_command() && !(one.blocking && program.fails(of)),
    })
}

impl State {
    /// Before the first action.
    pub fn new(program: &Program) -> Self {
        let objects = program.memories.iter();
        Self {
            queues: program.queues.iter().map(|queue| !queue.late).collect(),
            objects: objects
                .map(|memory| memory.kind.is_object() && !memory.late)
                .collect(),
            memories: vec![true; program.memories.len()],
            open: Vec::new(),
            closed: Vec::new(),
            recordings: vec![Phase::New; program.recordings.len()],
        }
    }

    /// An action has come.
    pub fn push(&mut self, program: &Program, index: usize, action: &ProgramAction) {
        match action.what {
            What::Map(..) | What::SvmMap(..) => self.open.push(index),
            What::Unmap(map) => self.open.retain(|open| *open != map),
            What::Free(memory) => self.memories[memory] = false,
            What::Create(memory) => self.objects[memory] = true,
            What::Release(memory) => self.objects[memory] = false,
            What::NewQueue(queue) => self.queues[queue] = true,
            What::EndQueue(queue) => self.queues[queue] = false,
            What::Begin(of) => {
                let from = program.recordings[of].from;
                self.recordings[of] = from.map_or(Phase::Recording, |from| self.recordings[from]);
            }
            What::Finalize(of) => self.recordings[of] = Phase::Finalized,
            What::Discard(of) => self.recordings[of] = Phase::Gone,
            What::Open(gate) => self.closed.retain(|closed| *closed != gate),
            _ if action.what.is_gate() => self.closed.push(index),
            _ => {}
        }
    }

    fn side(&self, program: &Program, side: Side, size: usize) -> Verdict {
        let memory = program.memories.get(side.memory).ok_or("no such memory")?;
        check(self.objects[side.memory], "the object does not exist now")?;
        let view = memory.views.get(side.view).ok_or("no such object")?;
        check(
            size > 0 && view.start <= side.at && side.at + size <= view.end,
            "beyond the object",
        )
    }

    fn place(&self, program: &Program, place: Place, size: usize) -> Verdict {
        let memory = program.memories.get(place.memory).ok_or("no such memory")?;
        check(self.memories[place.memory], "the memory is freed")?;
        let range = place.at..place.at + size;
        check(size > 0 && range.end <= memory.size, "beyond the memory")?;
        let Some(map) = place.map else { return Ok(()) };
        check(self.open.contains(&map), "not mapped now")?;
        let (of, mapped, _) = program.mapped(map).ok_or("no map")?;
        check(of == place.memory, "mapped elsewhere")?;
        check(
            mapped.start <= range.start && range.end <= mapped.end,
            "beyond what is mapped",
        )
    }

    /// The host may use it, for writing too?
    fn host(&self, program: &Program, place: Place, size: usize, write: bool) -> Verdict {
        self.place(program, place, size)?;
        let kind = program.memories[place.memory].kind;
        let Some(map) = place.map else {
            return check(kind.is_open(), "not for the host");
        };
        let how = program.mapped(map).map(|(_, _, how)| how);
        check(!write || how != Some(MapHow::Read), "mapped for reading")?;
        // Rows of a mapped image lie apart as the driver likes.
        let one_row = |pitch: usize| place.at / pitch == (place.at + size - 1) / pitch;
        check(
            kind.pitch().is_none_or(one_row),
            "more than a row of a mapped image",
        )
    }

    /// A command of this queue may follow it.
    fn pointer(&self, program: &Program, place: Place, size: usize, queue: usize) -> Verdict {
        self.place(program, place, size)?;
        let memory = &program.memories[place.memory];
        let own = !matches!(memory.kind, Kind::Usm(Usm::Device | Usm::Shared))
            || memory.device == program.queues[queue].device;
        check(
            place.map.is_none() && memory.kind.has_address() && own,
            "no address",
        )
    }

    fn operand(&self, program: &Program, of: Operand, words: usize, queue: usize) -> Verdict {
        let size = words * 4;
        match of {
            Operand::Pointer(place) | Operand::Number(place) => {
                check(place.at % 4 == 0, "not aligned")?;
                self.pointer(program, place, size, queue)
            }
            Operand::Object(side) => {
                self.side(program, side, size)?;
                check(side.at % 4 == 0, "not aligned")?;
                let whole = |pitch: usize| side.at % pitch == 0 && size % pitch == 0;
                let kind = program.memories[side.memory].kind;
                check(kind.pitch().is_none_or(whole), "not whole rows")
            }
        }
    }

    /// The rows fit an image.
    fn rows(&self, program: &Program, side: Side, shape: &Shape, pitch: usize) -> Verdict {
        let Some(own) = program.memories[side.memory].kind.pitch() else {
            return Ok(());
        };
        let fits = shape.row % 4 == 0
            && side.at % 4 == 0
            && side.at % own + shape.row <= own
            && (shape.rows == 1 || pitch == own);
        check(fits, "not rows of the image")
    }

    fn transfer(&self, program: &Program, action: &ProgramAction, host_writes: bool) -> Verdict {
        let (What::Read(side, place, shape) | What::Write(side, place, shape)) = action.what else {
            return Ok(());
        };
        check(shape.rows > 0 && shape.first >= shape.row, "pitch")?;
        check(shape.second >= shape.row, "pitch")?;
        self.side(program, side, shape.span(shape.first))?;
        self.host(program, place, shape.span(shape.second), host_writes)?;
        self.rows(program, side, &shape, shape.first)?;
        let image = program.memories[side.memory].kind.pitch().is_some();
        check(!image || shape.second % 4 == 0, "pitch of an image")
    }

    fn copy(&self, program: &Program, src: Side, dst: Side, shape: &Shape) -> Verdict {
        check(shape.rows > 0 && shape.first >= shape.row, "pitch")?;
        check(shape.second >= shape.row, "pitch")?;
        self.side(program, src, shape.span(shape.first))?;
        self.side(program, dst, shape.span(shape.second))?;
        self.rows(program, src, shape, shape.first)?;
        self.rows(program, dst, shape, shape.second)?;
        let ordered = src.memory != dst.memory || shape.rows == 1 || shape.first == shape.second;
        check(ordered, "pitches within one buffer")?;
        let pitch = |side: Side| program.memories[side.memory].kind.pitch();
        let packed = |pitch: usize| shape.rows == 1 || pitch == shape.row;
        match (pitch(src), pitch(dst)) {
            (Some(_), None) => check(packed(shape.second), "a copy of an image is packed"),
            (None, Some(_)) => check(packed(shape.first), "a copy of an image is packed"),
            _ => Ok(()),
        }
    }

    fn memcpy(&self, program: &Program, action: &ProgramAction) -> Verdict {
        let What::Memcpy(dst, src, size, intel) = action.what else {
            return Ok(());
        };
        for (place, write) in [(dst, true), (src, false)] {
            let kind = program.memories[place.memory].kind;
            match place.map {
                // Neither the host's nor the device's while it is mapped.
                Some(_) if kind.is_svm() => return Err("mapped shared virtual memory"),
                Some(_) => self.host(program, place, size, write)?,
                None if kind == Kind::Plain => self.host(program, place, size, write)?,
                None => self.pointer(program, place, size, action.queue)?,
            }
            let fits = match intel {
                true => kind.is_open() || kind.is_usm() || place.map.is_some(),
                false => !kind.is_usm(),
            };
            check(fits, "memory of the other interface")?;
        }
        Ok(())
    }

    fn fill(&self, program: &Program, side: Side, size: usize, pattern: usize) -> Verdict {
        self.side(program, side, size)?;
        let memory = &program.memories[side.memory];
        let at = side.at - memory.views[side.view].start;
        check(fits_pattern(at, size, pattern), "pattern")?;
        let whole = |own: usize| pattern == 4 && side.at % own == 0 && size % own == 0;
        check(memory.kind.pitch().is_none_or(whole), "not whole rows")
    }

    fn map(&self, program: &Program, memory: usize, range: &Range<usize>, how: MapHow) -> Verdict {
        let clash = |&map: &usize| {
            program.mapped(map).is_some_and(|(of, other, as_)| {
                of == memory && meet(&other, range) && (how != MapHow::Read || as_ != MapHow::Read)
            })
        };
        // One that fails may not have failed yet.
        let mut failing = (0..program.actions.len()).filter(|&index| program.fails(index));
        let free = !self.open.iter().any(clash) && !failing.any(|index| clash(&index));
        check(free, "mapped for writing already")
    }

    fn has_map(&self, program: &Program, memory: usize) -> bool {
        self.open
            .iter()
            .any(|&map| program.mapped(map).is_some_and(|(of, ..)| of == memory))
    }

    /// The action may come next, as far as it itself goes.
    pub fn check(&self, program: &Program, action: &ProgramAction) -> Verdict {
        let index = program.actions.len();
        check(index < MOST, "too many actions")?;
        let events = |of: &usize| is_event(program, *of);
        // Whether what follows comes behind one that fails is not said.
        let fence = matches!(action.what, What::Marker | What::Barrier);
        let gate = action.what.is_gate_of_device();
        check(
            !(fence || gate) || !program.would_fail(action),
            "a fence or gate that fails",
        )?;
        if let Some(of) = action.recording {
            self.recorded(program, of, action)?;
        } else if action.what.is_command() {
            check(action.waits.iter().all(events), "not an event")?;
            let own = matches!(action.what, What::Replay { own: true, .. });
            let there = |lane: &usize| own || self.queues.get(*lane) == Some(&true);
            check(
                action.lanes().iter().all(there),
                "the queue does not exist now",
            )?;
        } else {
            check(
                action.waits.is_empty() && !action.event && !action.callback,
                "no command",
            )?;
        }
        check(!action.blocking || action.what.can_block(), "cannot block")?;
        self.command(program, action)
    }

    /// The same of what it does.
    fn command(&self, program: &Program, action: &ProgramAction) -> Verdict {
        let memory_exists = |of: usize| check(of < program.memories.len(), "no such memory");
        let events = |of: &usize| is_event(program, *of);
        match &action.what {
            What::Read(..) => self.transfer(program, action, true),
            What::Write(..) => self.transfer(program, action, false),
            What::Copy(src, dst, shape) => self.copy(program, *src, *dst, shape),
            What::Fill(side, size, pattern) => self.fill(program, *side, *size, pattern.len()),
            What::Memcpy(..) => self.memcpy(program, action),
            What::MemFill(place, size, pattern) => {
                self.pointer(program, *place, *size, action.queue)?;
                check(fits_pattern(place.at, *size, pattern.len()), "pattern")
            }
            What::Map(side, size, how) => {
                self.side(program, *side, *size)?;
                let whole = |own: usize| side.at % own == 0 && size % own == 0;
                let kind = program.memories[side.memory].kind;
                check(kind.pitch().is_none_or(whole), "not whole rows")?;
                self.map(program, side.memory, &(side.at..side.at + size), *how)
            }
            What::SvmMap(place, size, how) => {
                self.pointer(program, *place, *size, action.queue)?;
                let kind = program.memories[place.memory].kind;
                check(kind.is_svm(), "not shared virtual memory")?;
                self.map(program, place.memory, &(place.at..place.at + size), *how)
            }
            What::Unmap(map) => {
                check(self.open.contains(map), "not mapped now")?;
                // One that fails may not have failed yet when the next is enqueued.
                let again = program.actions.iter().any(|one| one.what == action.what);
                check(!again, "unmapped already")
            }
            What::Kernel {
                dst,
                src,
                words,
                manner,
                ..
            } => {
                self.operand(program, *dst, *words, action.queue)?;
                self.operand(program, *src, *words, action.queue)?;
                let of = |operand: &Operand| match operand {
                    Operand::Object(side) => Some(side.memory),
                    _ => None,
                };
                let image = |of: &usize| program.memories[*of].kind.pitch().is_some();
                let alone = of(dst).filter(image).is_none_or(|dst| of(src) != Some(dst));
                check(alone, "an image is read or written")?;
                let images = [dst, src].into_iter().filter_map(of).any(|of| image(&of));
                check(*manner == Manner::default() || !images, "an image")
            }
            What::Migrate(memory, _) => {
                memory_exists(*memory)?;
                let kind = program.memories[*memory].kind;
                let there = match kind.is_object() {
                    true => self.objects[*memory],
                    false => self.memories[*memory] && kind.has_address() && kind != Kind::System,
                };
                check(there, "nothing to migrate")?;
                let place = Place {
                    memory: *memory,
                    at: 0,
                    map: None,
                };
                match kind.is_object() {
                    true => Ok(()),
                    false => self.pointer(program, place, 1, action.queue),
                }
            }
            What::Free(memory) => {
                memory_exists(*memory)?;
                let kind = program.memories[*memory].kind;
                let fits = kind.is_svm() && self.memories[*memory] && !self.objects[*memory];
                let made = !program.memories[*memory].late || !kind.is_object();
                check(fits && made, "cannot be freed")?;
                check(
                    !self.is_recorded(program, *memory, false),
                    "a command buffer uses it",
                )?;
                check(!self.has_map(program, *memory), "mapped")
            }
            What::Create(memory) => {
                memory_exists(*memory)?;
                let waits = program.memories[*memory].late && !self.objects[*memory];
                let again = |one: &ProgramAction| one.what == What::Create(*memory);
                check(waits && !program.actions.iter().any(again), "made already")
            }
            What::Release(memory) => {
                memory_exists(*memory)?;
                check(self.objects[*memory], "the object does not exist now")?;
                check(
                    !self.is_recorded(program, *memory, true),
                    "an argument of a recorded kernel",
                )?;
                check(!self.has_map(program, *memory), "mapped")
            }
            What::NewQueue(queue) => {
                let late = program.queues.get(*queue).is_some_and(|queue| queue.late);
                let again = |one: &ProgramAction| one.what == What::NewQueue(*queue);
                check(late && !program.actions.iter().any(again), "made already")
            }
            What::EndQueue(queue) | What::Flush(queue) | What::Finish(queue) => {
                let there = self.queues.get(*queue) == Some(&true);
                check(there, "the queue does not exist now")
            }
            What::Store(place, size, _) => self.host(program, *place, *size, true),
            What::Check(place, size) => self.host(program, *place, *size, false),
            What::Wait(of) => check(events(of), "not an event"),
            What::Open(gate) => check(self.closed.contains(gate), "not a closed gate"),
            // Who occupies a device of two processors twice leaves nothing of it for others.
            What::GateKernel(_) | What::GateNative => {
                // An image that was released is destroyed when its last batch is, by whichever call sees that; and a
                // context of several devices makes it on each when that uses it first.
                let image = |memory: &Memory| memory.kind.pitch().is_some();
                let goes = |one: &ProgramAction| match one.what {
                    What::Release(memory) => image(&program.memories[memory]),
                    _ => false,
                };
                let several = program.queues.iter().any(|queue| queue.device != 0)
                    || program.memories.iter().any(|memory| memory.device != 0);
                let late = several && program.memories.iter().any(image);
                let alone = action.what == What::GateKernel(true) && !program.strict;
                check(
                    !alone || !late && !program.actions.iter().any(goes),
                    "an image may be made or destroyed meanwhile",
                )?;
                let device = |queue: usize| program.queues[queue].device;
                let other = self.closed.iter().any(|&of| {
                    let one = &program.actions[of];
                    one.what.is_gate_of_device() && device(one.queue) == device(action.queue)
                });
                check(!other, "the device is occupied")
            }
            What::Begin(_)
            | What::Finalize(_)
            | What::Discard(_)
            | What::Misuse(..)
            | What::Update { .. } => self.call(program, action),
            What::Replay { of, queues, own } => self.replay(program, action, *of, queues, *own),
            What::Signal(list) | What::Await(list) => {
                let distinct = (1..list.len()).all(|at| !list[..at].contains(&list[at]));
                let device = program.queues[action.queue].device;
                let fits = |of: &usize| program.semaphores.get(*of) == Some(&device);
                let fits = !list.is_empty() && distinct && list.iter().all(fits);
                check(fits, "not semaphores of this device")?;
                let end = program.actions.len();
                let signalled = |of: &usize| program.signal(*of, end).is_some();
                match action.what {
                    What::Signal(_) => {
                        check(!list.iter().any(signalled), "signalled already")?;
                        let mut waits = list.iter().map(|of| program.waiter(*of, end));
                        let awaited = waits.any(|wait| wait.is_some());
                        // What is behind the wait would fail after it has been planned.
                        check(
                            !awaited || !program.would_fail(action),
                            "a signal that fails",
                        )
                    }
                    _ => {
                        // The signal may be taken or not.
                        let fails = |&of: &usize| program.fails(of);
                        check(
                            !action.waits.iter().any(fails),
                            "a wait that fails otherwise",
                        )?;
                        let first = list.len() == 1 && program.waiter(list[0], end).is_none();
                        check(
                            first || list.iter().all(signalled),
                            "two waits for a signal",
                        )
                    }
                }
            }
            What::Marker
            | What::Barrier
            | What::Gate(_)
            | What::Refuse(_)
            | What::Hold
            | What::Doomed
            | What::Thread(_)
            | What::Sleep(_) => Ok(()),
        }
    }
}

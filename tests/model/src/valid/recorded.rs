//! Decides whether an action on a command buffer makes sense, and whether what it recorded can run.

use super::{check, Phase, State, Verdict};
use crate::program::{Misuse, Operand, Place, Program, ProgramAction, What};

/// The memories that a command names, and those whose memory objects are arguments of its kernel.
fn memories(what: &What) -> (Vec<usize>, Vec<usize>) {
    let (mut all, mut arguments) = (Vec::new(), Vec::new());
    let mut operand = |of: &Operand| match of {
        Operand::Object(side) => {
            all.push(side.memory);
            arguments.push(side.memory);
        }
        Operand::Pointer(place) | Operand::Number(place) => all.push(place.memory),
    };
    match what {
        What::Kernel { dst, src, .. } => [dst, src].into_iter().for_each(&mut operand),
        What::Copy(src, dst, _) => all.extend([src.memory, dst.memory]),
        What::Fill(side, ..) => all.push(side.memory),
        What::Memcpy(dst, src, ..) => all.extend([dst.memory, src.memory]),
        What::MemFill(place, ..) => all.push(place.memory),
        _ => {}
    }
    (all, arguments)
}

impl State {
    /// A command buffer that exists has a command that uses a memory: any, or a kernel that has its memory object as an
    /// argument.
    pub(super) fn is_recorded(&self, program: &Program, memory: usize, argument: bool) -> bool {
        let lives =
            |of: &usize| matches!(self.recordings[*of], Phase::Recording | Phase::Finalized);
        let recorded = (0..program.recordings.len()).filter(lives);
        recorded
            .flat_map(|of| program.recorded(of, usize::MAX))
            .any(|(_, command)| {
                let (all, arguments) = memories(&command.what);
                if argument { arguments } else { all }.contains(&memory)
            })
    }

    /// The command may be recorded.
    pub(super) fn recorded(&self, program: &Program, of: usize, action: &ProgramAction) -> Verdict {
        let recording = program.recordings.get(of).ok_or("no such command buffer")?;
        check(
            self.recordings[of] == Phase::Recording,
            "records nothing now",
        )?;
        let queue = recording.queues.contains(&action.queue) && self.queues[action.queue];
        check(queue, "not a queue of the command buffer")?;
        let quiet = !action.blocking && !action.event && !action.callback;
        check(quiet, "recorded commands have no events")?;
        let points = |at: &usize| {
            let earlier = program.actions.get(*at);
            earlier.is_some_and(|one| one.recording == Some(of))
        };
        check(action.waits.iter().all(points), "not a sync point")?;
        let pointer = |place: &Place| {
            let kind = program.memories.get(place.memory).map(|memory| memory.kind);
            place.map.is_none() && kind.is_some_and(|kind| !kind.is_usm())
        };
        let fits = match &action.what {
            What::Kernel { .. }
            | What::Copy(..)
            | What::Fill(..)
            | What::Barrier
            | What::Doomed => true,
            What::Memcpy(dst, src, _, intel) => !intel && pointer(dst) && pointer(src),
            What::MemFill(place, ..) => pointer(place),
            _ => false,
        };
        check(fits, "cannot be recorded")
    }

    /// A call for a command buffer makes sense.
    pub(super) fn call(&self, program: &Program, action: &ProgramAction) -> Verdict {
        let phase = |of: usize| self.recordings.get(of).copied();
        let is = |of: usize, wanted: Phase| check(phase(of) == Some(wanted), "in another state");
        match &action.what {
            What::Begin(of) => {
                is(*of, Phase::New)?;
                let queues = &program.recordings[*of].queues;
                let there = |queue: &usize| self.queues.get(*queue) == Some(&true);
                let distinct = (1..queues.len()).all(|at| !queues[..at].contains(&queues[at]));
                let there = !queues.is_empty() && queues.iter().all(there);
                check(there && distinct, "the queues do not exist now")?;
                let Some((from, own)) = program.source(*of) else {
                    return Ok(());
                };
                let copied = phase(from.0).filter(|_| from.0 != *of);
                let fits = matches!(copied, Some(Phase::Recording | Phase::Finalized))
                    && (own.queues.len() == from.1.queues.len() || own.queues.len() == 1)
                    && (own.simultaneous, own.mutable) == (from.1.simultaneous, from.1.mutable);
                check(fits, "not a copy")?;
                self.commands(program, &program.copied(*of, usize::MAX))
            }
            What::Finalize(of) => is(*of, Phase::Recording),
            What::Discard(of) => is(*of, Phase::Recording).or_else(|_| is(*of, Phase::Finalized)),
            What::Misuse(of, Misuse::Unfinalized | Misuse::Point) => is(*of, Phase::Recording),
            What::Misuse(of, Misuse::Finalized) => is(*of, Phase::Finalized),
            What::Update {
                of,
                dst,
                src,
                words,
                ..
            } => {
                let recording = program.updated(&action.what);
                let recording = recording.ok_or("not a recorded command")?;
                is(recording, Phase::Finalized)?;
                check(program.recordings[recording].mutable, "cannot be updated")?;
                let commands = program.recorded(recording, usize::MAX);
                let command = commands.iter().find(|(index, _)| index == of);
                let (_, command) = command.ok_or("not of this command buffer")?;
                let What::Kernel {
                    dst: to,
                    src: from,
                    manner,
                    ..
                } = &command.what
                else {
                    return Err("not a kernel");
                };
                // The kernel stays, and so do the kinds of its operands.
                let kind = |operand: &Operand| match operand {
                    Operand::Object(side) => {
                        let memory = program.memories.get(side.memory);
                        match memory.and_then(|memory| memory.kind.pitch()) {
                            Some(_) => 'I',
                            None => 'P',
                        }
                    }
                    Operand::Pointer(_) => 'P',
                    Operand::Number(_) => 'N',
                };
                let fits =
                    |old: &Operand, new: &Operand| kind(old) == kind(new) && kind(new) != 'N';
                check(fits(to, dst) && fits(from, src), "operands of another kind")?;
                // No update sets a pointer to unified shared memory.
                let plain = |operand: &Operand| match operand {
                    Operand::Pointer(place) => {
                        let memory = program.memories.get(place.memory);
                        memory.is_some_and(|memory| !memory.kind.is_usm())
                    }
                    _ => true,
                };
                check(plain(dst) && plain(src), "unified shared memory")?;
                let kernel = What::Kernel {
                    dst: *dst,
                    src: *src,
                    words: *words,
                    add: 0,
                    spins: 0,
                    manner: *manner,
                };
                self.command(program, &ProgramAction::new(kernel, command.queue))
            }
            _ => Ok(()),
        }
    }

    /// A replay can run: its queues fit, and what its commands use exists.
    pub(super) fn replay(
        &self,
        program: &Program,
        action: &ProgramAction,
        of: usize,
        queues: &[usize],
        own: bool,
    ) -> Verdict {
        let recording = program.recordings.get(of).ok_or("no such command buffer")?;
        check(self.recordings[of] == Phase::Finalized, "not finalized")?;
        check(queues.first() == Some(&action.queue), "not the first queue")?;
        check(queues.len() == recording.queues.len(), "not so many queues")?;
        let distinct = (1..queues.len()).all(|at| !queues[..at].contains(&queues[at]));
        let device = |queue: &usize| program.queues.get(*queue).map(|queue| queue.device);
        let mut both = queues.iter().zip(&recording.queues);
        let fits = both.all(|(one, other)| device(one) == device(other)) && distinct;
        check(fits, "queues of other devices")?;
        check(!own || queues == recording.queues, "not its own queues")?;
        self.commands(program, &program.replayed(action, usize::MAX))
    }

    /// Commands of a command buffer can run in their queues.
    fn commands(&self, program: &Program, commands: &[(usize, ProgramAction)]) -> Verdict {
        for (_, command) in commands {
            // Memory objects that were released live on in the command buffer.
            let mut held = self.clone();
            let (all, arguments) = memories(&command.what);
            for memory in all.into_iter().filter(|memory| !arguments.contains(memory)) {
                held.objects[memory] = program.memories[memory].kind.is_object();
            }
            held.command(program, command)?;
        }
        Ok(())
    }
}

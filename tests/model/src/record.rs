//! Command buffers and semaphores in a program: the commands that a replay runs, and the signal that a wait takes.

use crate::program::{Program, ProgramAction, Recording, What};

/// Returns the queue in the place of another one of a list, or the only one.
fn moved(queue: usize, from: &[usize], to: &[usize]) -> Option<usize> {
    let number = from.iter().position(|own| *own == queue)?;
    to.get(number % to.len().max(1)).copied()
}

impl Program {
    /// Returns the commands of a command buffer as they are behind so many actions, in the order in which they were recorded,
    /// with the numbers of the actions that recorded them.
    pub fn recorded(&self, of: usize, at: usize) -> Vec<(usize, ProgramAction)> {
        let mut list: Vec<(usize, ProgramAction)> = Vec::new();
        for (index, action) in self.actions[..at.min(self.actions.len())]
            .iter()
            .enumerate()
        {
            if action.recording == Some(of) {
                list.push((index, action.clone()));
            }
            if action.what == What::Begin(of) {
                list = self.copied(of, index);
            }
            let What::Update {
                of: command,
                dst: to,
                src: from,
                words: size,
                add: number,
                ..
            } = &action.what
            else {
                continue;
            };
            if self.updated(&action.what) != Some(of) {
                continue;
            }
            let Some((_, command)) = list.iter_mut().find(|(at, _)| at == command) else {
                continue;
            };
            if let What::Kernel {
                dst,
                src,
                words,
                add,
                ..
            } = &mut command.what
            {
                (*dst, *src, *words, *add) = (*to, *from, *size, *number);
            }
        }
        list
    }

    /// Returns the commands that a command buffer has where it is made behind so many actions: those of the one that it is a
    /// copy of, in its own queues.
    pub fn copied(&self, of: usize, at: usize) -> Vec<(usize, ProgramAction)> {
        let Some((from, own)) = self.source(of) else {
            return Vec::new();
        };
        let moved = |(index, command): (usize, ProgramAction)| {
            let queue = moved(command.queue, &from.1.queues, &own.queues)?;
            let recording = Some(of);
            Some((
                index,
                ProgramAction {
                    queue,
                    recording,
                    ..command
                },
            ))
        };
        self.recorded(from.0, at)
            .into_iter()
            .filter_map(moved)
            .collect()
    }

    /// Returns the command buffer that another is a copy of, with its number, and that other.
    pub fn source(&self, of: usize) -> Option<((usize, &Recording), &Recording)> {
        let own = self.recordings.get(of)?;
        let from = own.from?;
        Some(((from, self.recordings.get(from)?), own))
    }

    /// Returns the command buffer that an update changes.
    pub fn updated(&self, update: &What) -> Option<usize> {
        match update {
            What::Update {
                copy: Some(copy), ..
            } => Some(*copy),
            What::Update { of, .. } => self.actions.get(*of)?.recording,
            _ => None,
        }
    }

    /// Returns true if a command buffer is finalized, or a copy of one that was, behind so many actions.
    pub fn finalized(&self, of: usize, at: usize) -> bool {
        let mut actions = self.actions[..at.min(self.actions.len())]
            .iter()
            .enumerate();
        actions.any(|(index, action)| match (&action.what, self.source(of)) {
            (What::Begin(made), Some((from, _))) => *made == of && self.finalized(from.0, index),
            (what, _) => *what == What::Finalize(of),
        })
    }

    /// Returns true if some command of a command buffer is so, behind so many actions.
    fn records(&self, of: usize, at: usize, is: &impl Fn(&What) -> bool) -> bool {
        let mut actions = self.actions[..at.min(self.actions.len())]
            .iter()
            .enumerate();
        actions.any(|(index, action)| match (&action.what, self.source(of)) {
            (What::Begin(made), Some((from, _))) if *made == of => self.records(from.0, index, is),
            (what, _) => action.recording == Some(of) && is(what),
        })
    }

    /// Returns the commands that a replay runs, as if each was enqueued in its queue, where the replay comes behind so many
    /// actions, with the numbers of the actions that recorded them.
    pub fn replayed(&self, replay: &ProgramAction, at: usize) -> Vec<(usize, ProgramAction)> {
        let What::Replay { of, queues, .. } = &replay.what else {
            return Vec::new();
        };
        let Some(recording) = self.recordings.get(*of) else {
            return Vec::new();
        };
        let enqueued = |(index, command): (usize, ProgramAction)| {
            let queue = moved(command.queue, &recording.queues, queues)?;
            let (recording, waits) = (None, Vec::new());
            Some((
                index,
                ProgramAction {
                    queue,
                    recording,
                    waits,
                    ..command
                },
            ))
        };
        self.recorded(*of, at)
            .into_iter()
            .filter_map(enqueued)
            .collect()
    }

    /// A replay with a command that fails by itself: what the others have done then is not said.
    pub fn breaks(&self, action: &ProgramAction) -> bool {
        let What::Replay { of, .. } = action.what else {
            return false;
        };
        self.records(of, usize::MAX, &|what| *what == What::Doomed)
    }

    /// An action behind so many changes memory as it does by itself, or in part where a replay breaks.
    pub fn has_effect(&self, at: usize, action: &ProgramAction) -> bool {
        let at = at.min(self.actions.len());
        !self.would_fail_at(at, action) || self.breaks(action) && !self.fails_by_waits(at, action)
    }

    /// Returns the signal of a semaphore that no wait has taken yet, behind so many actions.
    pub fn signal(&self, semaphore: usize, at: usize) -> Option<usize> {
        let index = self.unpaired(semaphore, at)?;
        matches!(self.actions[index].what, What::Signal(_)).then_some(index)
    }

    /// Returns the wait for a semaphore that no signal has come for yet, behind so many actions.
    pub fn waiter(&self, semaphore: usize, at: usize) -> Option<usize> {
        let index = self.unpaired(semaphore, at)?;
        matches!(self.actions[index].what, What::Await(_)).then_some(index)
    }

    /// Returns the waits without a signal so far.
    pub fn waiters(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.semaphores.len()).filter_map(|one| self.waiter(one, usize::MAX))
    }

    /// Returns the last signal or wait without a partner, behind so many actions.
    fn unpaired(&self, semaphore: usize, at: usize) -> Option<usize> {
        let actions = self.actions[..at.min(self.actions.len())].iter();
        let uses = actions.enumerate().filter(|(_, action)| {
            matches!(&action.what, What::Signal(list) | What::Await(list) if list.contains(&semaphore))
        });
        uses.fold(None, |open: Option<usize>, (index, _)| match open {
            None => Some(index),
            Some(_) => None,
        })
    }

    /// Returns the last signal of a semaphore, or wait for it, behind so many actions.
    pub fn last_use(&self, semaphore: usize, at: usize) -> Option<(usize, &What)> {
        let actions = self.actions[..at.min(self.actions.len())]
            .iter()
            .enumerate();
        let names = |what: &What| matches!(what, What::Signal(list) | What::Await(list) if list.contains(&semaphore));
        let found = actions.rev().find(|(_, action)| names(&action.what));
        found.map(|(index, action)| (index, &action.what))
    }

    /// The actions that an action depends on by its wait list, or by semaphores, behind so many actions.
    pub fn dependencies(&self, at: usize, action: &ProgramAction) -> impl Iterator<Item = usize> {
        let mut list = match action.recording {
            Some(_) => Vec::new(),
            None => action.waits.clone(),
        };
        if let What::Await(semaphores) = &action.what {
            list.extend(semaphores.iter().filter_map(|one| self.signal(*one, at)));
        }
        list.into_iter()
    }
}

//! Chooses what is done with command buffers and semaphores.

use super::{Choice, Chooser};
use crate::program::{Misuse, ProgramAction, What};
use crate::valid::Phase;

/// Returns the choices while commands are recorded, with weights.
pub(super) fn choices<'a>() -> [(usize, Choice<'a>); 7] {
    [
        (26, Chooser::kernel),
        (8, Chooser::copy),
        (6, Chooser::fill),
        (8, Chooser::memcpy),
        (4, Chooser::mem_fill),
        (3, |_| Some(What::Barrier)),
        (14, Chooser::finalize),
    ]
}

impl Chooser<'_> {
    /// The command buffers in a state.
    fn recordings(&self, phase: Phase) -> Vec<usize> {
        let all = self.planner.state().recordings.iter().enumerate();
        all.filter(|(_, now)| **now == phase)
            .map(|(at, _)| at)
            .collect()
    }

    fn recording(&mut self, phase: Phase) -> Option<usize> {
        let list = self.recordings(phase);
        (!list.is_empty()).then(|| *self.rng.pick(&list))
    }

    pub(super) fn begin(&mut self) -> Option<What> {
        self.recording(Phase::New).map(What::Begin)
    }

    /// One without commands, too, but seldom.
    pub(super) fn finalize(&mut self) -> Option<What> {
        let of = self.recording(Phase::Recording)?;
        let count = self.program().recorded(of, usize::MAX).len();
        self.rng
            .percent([5, 15, 30, 50, 80][count.min(4)])
            .then_some(What::Finalize(of))
    }

    pub(super) fn replay(&mut self) -> Option<What> {
        let of = self.recording(Phase::Finalized)?;
        let mut queues = self.program().recordings[of].queues.clone();
        let own = self.rng.percent(45);
        let number = if own { 0 } else { queues.len() };
        for at in 0..number {
            let all = &self.program().queues;
            let device = all[queues[at]].device;
            let fits = |queue: &usize| {
                self.planner.state().queues[*queue]
                    && all[*queue].device == device
                    && !queues[..at].contains(queue)
            };
            let list: Vec<usize> = (0..all.len()).filter(fits).collect();
            queues[at] = *(!list.is_empty()).then(|| self.rng.pick(&list))?;
        }
        Some(What::Replay { of, queues, own })
    }

    /// Other operands for a recorded kernel, of the same kinds.
    pub(super) fn update(&mut self) -> Option<What> {
        let recording = self.recording(Phase::Finalized)?;
        let commands = self.program().recorded(recording, usize::MAX);
        let kernel = |what: &What| matches!(what, What::Kernel { .. });
        let kernels: Vec<_> = (commands.iter())
            .filter(|(_, command)| kernel(&command.what))
            .collect();
        if kernels.is_empty() {
            return None;
        }
        let (of, old) = *self.rng.pick(&kernels);
        let Some(What::Kernel {
            dst,
            src,
            words,
            add,
            ..
        }) = self.kernel()
        else {
            return None;
        };
        let What::Kernel {
            dst: to,
            src: from,
            words: size,
            add: number,
            spins,
            ..
        } = &old.what
        else {
            return None;
        };
        // The loop stays as long as it was. Often something else stays, too.
        let fits = words * spins <= 1 << 22 || words <= *size;
        let original = self.program().actions[*of].recording == Some(recording);
        let mut keep = |percent| self.rng.percent(percent);
        let update = What::Update {
            of: *of,
            copy: (!original).then_some(recording),
            dst: if keep(30) { *to } else { dst },
            src: if keep(30) { *from } else { src },
            words: if keep(30) { *size } else { words },
            add: if keep(50) { *number } else { add },
        };
        fits.then_some(update)
    }

    pub(super) fn discard(&mut self) -> Option<What> {
        self.recording(Phase::Finalized).map(What::Discard)
    }

    pub(super) fn misuse(&mut self) -> Option<What> {
        if let (Some(of), true) = (self.recording(Phase::Recording), self.rng.percent(60)) {
            let how = *self.rng.pick(&[Misuse::Unfinalized, Misuse::Point]);
            return Some(What::Misuse(of, how));
        }
        let of = self.recording(Phase::Finalized)?;
        Some(What::Misuse(of, Misuse::Finalized))
    }

    /// A signal, or a wait for those that are there, of one semaphore or of all.
    pub(super) fn semaphores(&mut self) -> Option<What> {
        let program = self.program();
        let end = program.actions.len();
        let all = 0..program.semaphores.len();
        let signalled = |of: &usize| program.signal(*of, end).is_some();
        let (taken, free): (Vec<usize>, Vec<usize>) = all.partition(signalled);
        let idle = |of: &&usize| program.waiter(**of, end).is_none();
        if let (Some(of), true) = (free.iter().find(idle), self.rng.percent(15)) {
            return Some(What::Await(vec![*of]));
        }
        let wait = !taken.is_empty() && (free.is_empty() || self.rng.percent(70));
        let mut list = if wait { taken } else { free };
        if list.len() > 1 && self.rng.percent(60) {
            list = vec![*self.rng.pick(&list)];
        }
        Some(if wait {
            What::Await(list)
        } else {
            What::Signal(list)
        })
    }

    /// Makes of a command that is enqueued one that is recorded, where it can be.
    pub(super) fn record(&mut self, action: &mut ProgramAction) {
        let open = self.recordings(Phase::Recording);
        let can = matches!(
            action.what,
            What::Kernel { .. }
                | What::Copy(..)
                | What::Fill(..)
                | What::Barrier
                | What::Memcpy(..)
                | What::MemFill(..)
                | What::Doomed
        );
        if !can || open.is_empty() || self.rng.percent(25) {
            return;
        }
        let of = *self.rng.pick(&open);
        action.recording = Some(of);
        action.queue = *self.rng.pick(&self.program().recordings[of].queues);
        (action.blocking, action.event, action.callback) = (false, false, false);
        action.waits.clear();
        let points = self.program().recorded(of, usize::MAX);
        if !points.is_empty() && self.rng.percent(25) {
            action.waits.push(self.rng.pick(&points).0);
        }
        if let What::Memcpy(_, _, _, intel) = &mut action.what {
            *intel = false;
        }
    }
}

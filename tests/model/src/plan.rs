//! The planner: programs grow by one action at a time, and only by actions whose result the specification defines.
//!
//! An action may come if all that it must not run beside is over before it begins ([`crate::order`]). The planner says what
//! is missing for that; who adds the action makes it wait for that ([`Planner::mend`]), or leaves it out. So the contents
//! of every memory are those of the actions carried out one after the other.

use crate::access::{accesses, Access, By};
use crate::gates::Promises;
use crate::order::{Order, Set};
use crate::program::{Operand, Program, ProgramAction, What};
use crate::valid::State;

/// Why an action may not come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The action is not valid here.
    Invalid(&'static str),
    /// Something that it touches is mapped.
    Mapped,
    /// The action would race with this earlier one.
    Race(usize),
    /// The host would wait for a gate that is closed.
    Closed,
}

/// A program that grows.
#[derive(Debug, Clone)]
pub struct Planner {
    program: Program,
    order: Order,
    state: State,
    touched: Vec<Vec<Access>>,
    /// The order within each command buffer, of the actions that record its commands.
    recordings: Vec<Order>,
}

/// How what is missing is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mending {
    /// By the wait list, or clWaitForEvents.
    Event,
    /// By clFinish of its queue.
    Finish,
    /// By a barrier, where it is of the same queue, which is out of order.
    Barrier,
    /// By the event of a marker behind all of its queue.
    Marker,
    /// By clWaitForEvents.
    Host,
}

impl Planner {
    /// A program without actions: with these memories and queues.
    pub fn new(of: &Program) -> Self {
        let program = Program {
            actions: Vec::new(),
            ..of.clone()
        };
        Self {
            order: Order::new(&program),
            state: State::new(&program),
            touched: Vec::new(),
            recordings: vec![Order::new(&program); program.recordings.len()],
            program,
        }
    }

    /// The program so far.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the objects that exist now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Checks a program with all its actions. Returns the first that is not legal, and why.
    pub fn check(of: &Program) -> Result<Self, (usize, Refusal)> {
        let mut planner = Self::new(of);
        for (index, action) in of.actions.iter().enumerate() {
            planner.add(action.clone()).map_err(|why| (index, why))?;
        }
        Ok(planner)
    }

    /// Returns true if a command is over before another begins. Each is named by the action that enqueued it, and by the one that
    /// recorded it, if that is another.
    pub fn precedes(&self, first: (usize, usize), second: (usize, usize)) -> bool {
        if first.0 != second.0 {
            return self.known(second.0) >> first.0 & 1 == 1;
        }
        let What::Replay { of, .. } = self.program.actions[first.0].what else {
            return false;
        };
        self.recordings[of].known(second.1) >> first.1 & 1 == 1
    }

    /// Returns the actions that are over before an action begins.
    pub fn known(&self, index: usize) -> Set {
        self.order.known(index)
    }

    /// Returns the promises that hold for the present state of the gates.
    pub fn promises(&self) -> Promises<'_> {
        let gates = self.state.closed.iter().copied();
        let closed: Vec<usize> = gates.chain(self.program.waiters()).collect();
        Promises::new(&self.program, &self.order, &closed)
    }

    /// Returns true if an action's own operands overlap, and it is not a kernel that works in place.
    fn overlaps_itself(&self, what: &What, list: &[Access]) -> bool {
        let [first, second] = list else { return false };
        if !first.conflicts(second, &self.program.memories[first.memory]) {
            return false;
        }
        let same = |a: &Operand, b: &Operand| a == b && !matches!(a, Operand::Number(_));
        !matches!(what, What::Kernel { dst, src, .. } | What::Update { dst, src, .. } if same(dst, src))
    }

    /// The action with all that it waits for in its wait list.
    fn resolved(&self, action: &ProgramAction) -> ProgramAction {
        let mut resolved = action.clone();
        if resolved.is_command() {
            let at = self.program.actions.len();
            resolved.waits = self.program.dependencies(at, action).collect();
        }
        resolved
    }

    /// The waits that a signal is for, where they came first.
    fn waiters(&self, action: &ProgramAction) -> impl Iterator<Item = usize> + '_ {
        let list = match &action.what {
            What::Signal(list) => list.clone(),
            _ => Vec::new(),
        };
        list.into_iter()
            .filter_map(|one| self.program.waiter(one, usize::MAX))
    }

    fn conflict(&self, ones: &[Access], others: &[Access]) -> bool {
        let mut both = ones.iter().flat_map(|a| others.iter().map(move |b| (a, b)));
        both.any(|(a, b)| a.conflicts(b, &self.program.memories[a.memory]))
    }

    /// The commands of the same command buffer that one which is recorded next must wait for, and does not yet.
    fn missing_points(&self, of: usize, action: &ProgramAction, list: &[Access]) -> Vec<usize> {
        let before = self.recordings[of].before(&enqueued(action));
        let commands = self.program.recorded(of, usize::MAX).into_iter();
        let races = |(index, other): &(usize, ProgramAction)| {
            before >> index & 1 == 0 && self.conflict(list, &accesses(&self.program, other))
        };
        commands.filter(races).map(|(index, _)| index).collect()
    }

    /// Commands of a command buffer would race with one another after an update.
    fn update_races(&self, action: &ProgramAction) -> bool {
        let What::Update { of: updated, .. } = action.what else {
            return false;
        };
        let Some(of) = self.program.updated(&action.what) else {
            return false;
        };
        let mut program = self.program.clone();
        program.actions.push(action.clone());
        let commands = program.recorded(of, usize::MAX);
        let touched: Vec<_> = (commands.iter())
            .map(|(index, command)| (*index, accesses(&program, command)))
            .collect();
        let own = touched.iter().find(|(index, _)| *index == updated);
        if own.is_some_and(|(_, list)| self.overlaps_itself(&action.what, list)) {
            return true;
        }
        touched.iter().enumerate().any(|(at, (later, list))| {
            let known = self.recordings[of].known(*later);
            let mut earlier = touched[..at].iter();
            earlier.any(|(index, others)| known >> index & 1 == 0 && self.conflict(list, others))
        })
    }

    /// Earlier actions that an action must be behind although no memory says so.
    fn prerequisites(&self, action: &ProgramAction) -> Vec<usize> {
        let all = self.program.actions.iter().enumerate();
        match &action.what {
            What::Unmap(map) => vec![*map],
            // Without simultaneous use a replay is behind those before it.
            What::Replay { of, .. } if !self.program.recordings[*of].simultaneous => all
                .filter(
                    |(_, one)| matches!(one.what, What::Replay { of: other, .. } if other == *of),
                )
                .map(|(index, _)| index)
                .filter(|&index| !self.program.fails(index))
                .collect(),
            // A semaphore that is signalled is not signalled again, and waits are in their order.
            What::Signal(list) | What::Await(list) => (list.iter())
                .filter(|one| self.program.signal(**one, usize::MAX).is_none())
                .filter(|one| self.program.waiter(**one, usize::MAX).is_none())
                .filter_map(|one| self.program.last_use(*one, usize::MAX))
                .map(|(index, _)| index)
                .filter(|&index| !self.program.fails(index))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the earlier actions that the action must depend on, and does not yet.
    pub fn missing(&self, action: &ProgramAction) -> Result<Vec<usize>, Refusal> {
        self.state
            .check(&self.program, action)
            .map_err(Refusal::Invalid)?;
        let resolved = self.resolved(action);
        let slow = self.order.slow_before(&resolved);
        if self.promises().holds_up(&resolved)
            || self.waiters(action).any(|wait| slow >> wait & 1 == 1)
        {
            return Err(Refusal::Closed);
        }
        let list = accesses(&self.program, action);
        let replay = matches!(action.what, What::Replay { .. });
        if !replay && self.overlaps_itself(&action.what, &list) {
            return Err(Refusal::Invalid("its operands overlap"));
        }
        if self.update_races(action) {
            return Err(Refusal::Invalid("its command buffer would race"));
        }
        if let Some(of) = action.recording {
            return Ok(self.missing_points(of, action, &list));
        }
        if !self.program.has_effect(usize::MAX, action) {
            return Ok(Vec::new());
        }
        let before = self.order.before(&resolved);
        let mut missing = Vec::new();
        let mut need = |index: usize| {
            if before >> index & 1 == 0 && !missing.contains(&index) {
                missing.push(index);
            }
        };
        self.prerequisites(action).into_iter().for_each(&mut need);
        for access in &list {
            if let By::Mapped(map) = access.by {
                need(map);
            }
        }
        for (index, others) in self.touched.iter().enumerate() {
            for (own, other) in list.iter().flat_map(|a| others.iter().map(move |b| (a, b))) {
                if !own.conflicts(other, &self.program.memories[own.memory]) {
                    continue;
                }
                let through = own.by == By::Mapped(index) || action.what == What::Unmap(index);
                if !through && self.state.open.contains(&index) {
                    return Err(Refusal::Mapped);
                }
                need(index);
            }
        }
        // Uses of the pointer of a map for reading do not conflict with the unmap by their bytes alone.
        if let What::Unmap(map) = action.what {
            for (index, others) in self.touched.iter().enumerate() {
                if others.iter().any(|other| other.by == By::Mapped(map)) {
                    need(index);
                }
            }
        }
        Ok(missing)
    }

    /// The action comes next, if it may.
    pub fn add(&mut self, action: ProgramAction) -> Result<usize, Refusal> {
        if let Some(&earlier) = self.missing(&action)?.first() {
            return Err(Refusal::Race(earlier));
        }
        let index = self.program.actions.len();
        let touches = action.recording.is_none() && self.program.has_effect(usize::MAX, &action);
        self.touched.push(match touches {
            true => accesses(&self.program, &action),
            false => Vec::new(),
        });
        let resolved = self.resolved(&action);
        if self.program.would_fail(&action) {
            self.order.push_failing(&resolved);
        } else {
            self.order.push(&resolved);
            self.state.push(&self.program, index, &action);
        }
        let waiters: Vec<usize> = self.waiters(&action).collect();
        for wait in waiters {
            self.order.lead(wait, index);
        }
        for (of, order) in self.recordings.iter_mut().enumerate() {
            match action.recording == Some(of) {
                true => order.push(&enqueued(&action)),
                false => order.push(&ProgramAction::host(What::Sleep(0))),
            }
        }
        if let (What::Begin(of), false) = (&action.what, self.program.would_fail(&action)) {
            if let Some((from, own)) = self.program.source(*of) {
                let order = &self.recordings[from.0];
                self.recordings[*of] = order.moved(&from.1.queues, &own.queues);
            }
        }
        self.program.actions.push(action);
        Ok(index)
    }

    /// The action comes next, behind all that it has to, which it is made to wait for in the ways that `how` gives for each.
    pub fn mend(
        &mut self,
        mut action: ProgramAction,
        mut how: impl FnMut(&ProgramAction) -> Mending,
    ) -> Result<usize, Refusal> {
        if action.recording.is_some() {
            return self.mend_points(action, how);
        }
        // The latest first: what comes before it is then waited for, too.
        while let Some(&earlier) = self.missing(&action)?.iter().max() {
            let first = &self.program.actions[earlier];
            let queue = first.queue;
            let command = action.is_command();
            let same = command && queue == action.queue && action.lanes().len() == 1;
            let way = match how(first) {
                // Only the event stands for all queues.
                Mending::Barrier | Mending::Finish | Mending::Marker if first.lanes().len() > 1 => {
                    Mending::Event
                }
                Mending::Barrier if !same || self.program.queues[queue].in_order => Mending::Event,
                Mending::Finish | Mending::Marker if !self.state.queues[queue] => Mending::Event,
                Mending::Finish | Mending::Marker if !first.is_command() => Mending::Event,
                way => way,
            };
            let earlier = match way {
                Mending::Marker => self.add(ProgramAction::new(What::Marker, queue))?,
                _ => earlier,
            };
            match way {
                Mending::Event | Mending::Marker if command => {
                    if action.waits.contains(&earlier) {
                        return Err(Refusal::Race(earlier));
                    }
                    action.waits.push(earlier);
                    action.waits.sort_unstable();
                }
                Mending::Event | Mending::Marker | Mending::Host => {
                    self.add(ProgramAction::host(What::Wait(earlier)))?;
                }
                Mending::Finish => {
                    self.add(ProgramAction::host(What::Finish(queue)))?;
                }
                Mending::Barrier => {
                    self.add(ProgramAction::new(What::Barrier, queue))?;
                }
            }
        }
        self.add(action)
    }

    /// The same of a command that is recorded: behind sync points, and barriers of its queue.
    fn mend_points(
        &mut self,
        mut action: ProgramAction,
        mut how: impl FnMut(&ProgramAction) -> Mending,
    ) -> Result<usize, Refusal> {
        while let Some(&earlier) = self.missing(&action)?.iter().max() {
            let recording = action.recording.unwrap_or_default();
            let commands = self.program.recorded(recording, usize::MAX);
            let Some((_, first)) = commands.iter().find(|(index, _)| *index == earlier) else {
                return Err(Refusal::Race(earlier));
            };
            // A copy has no sync points of the commands that it was made with.
            let copied = self.program.actions[earlier].recording != action.recording;
            if (copied || how(first) == Mending::Barrier) && first.queue == action.queue {
                let mut barrier = ProgramAction::new(What::Barrier, action.queue);
                barrier.recording = action.recording;
                self.add(barrier)?;
            } else {
                action.waits.push(earlier);
                action.waits.sort_unstable();
            }
        }
        self.add(action)
    }
}

/// A recorded command as one that is enqueued.
fn enqueued(action: &ProgramAction) -> ProgramAction {
    ProgramAction {
        recording: None,
        ..action.clone()
    }
}

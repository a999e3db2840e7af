//! The planner: programs grow by one action at a time, and only by actions whose result the specification defines.
//!
//! An action may come if all that it must not run beside is over before it begins ([`crate::order`]). The planner says what
//! is missing for that; who adds the action makes it wait for that ([`Planner::mend`]), or leaves it out. So the contents
//! of every memory are those of the actions carried out one after the other.

use crate::access::{accesses, Access, By};
use crate::gates::Promises;
use crate::order::Order;
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

    /// Returns the promises that hold for the present state of the gates.
    pub fn promises(&self) -> Promises<'_> {
        Promises::new(&self.program, &self.order, &self.state.closed)
    }

    /// Returns true if an action's own operands overlap, and it is not a kernel that works in place.
    fn overlaps_itself(&self, what: &What, list: &[Access]) -> bool {
        let [first, second] = list else { return false };
        if !first.conflicts(second, &self.program.memories[first.memory]) {
            return false;
        }
        let same = |a: &Operand, b: &Operand| a == b && !matches!(a, Operand::Number(_));
        !matches!(what, What::Kernel { dst, src, .. } if same(dst, src))
    }

    /// Returns the earlier actions that the action must depend on, and does not yet.
    pub fn missing(&self, action: &ProgramAction) -> Result<Vec<usize>, Refusal> {
        self.state
            .check(&self.program, action)
            .map_err(Refusal::Invalid)?;
        if self.promises().holds_up(action) {
            return Err(Refusal::Closed);
        }
        let list = accesses(&self.program, action);
        if self.overlaps_itself(&action.what, &list) {
            return Err(Refusal::Invalid("its operands overlap"));
        }
        if self.program.would_fail(action) {
            return Ok(Vec::new());
        }
        let before = self.order.before(action);
        let mut missing = Vec::new();
        let mut need = |index: usize| {
            if before >> index & 1 == 0 && !missing.contains(&index) {
                missing.push(index);
            }
        };
        if let What::Unmap(map) = action.what {
            need(map);
        }
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
        if self.program.would_fail(&action) {
            self.touched.push(Vec::new());
            self.order.push_failing(&action);
        } else {
            self.touched.push(accesses(&self.program, &action));
            self.order.push(&action);
            self.state.push(index, &action);
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
        // The latest first: what comes before it is then waited for, too.
        while let Some(&earlier) = self.missing(&action)?.iter().max() {
            let first = &self.program.actions[earlier];
            let queue = first.queue;
            let command = action.what.is_command();
            let same = command && queue == action.queue;
            let way = match how(first) {
                Mending::Barrier if !same || self.program.queues[queue].in_order => Mending::Event,
                Mending::Finish | Mending::Marker if !self.state.queues[queue] => Mending::Event,
                Mending::Finish | Mending::Marker if !first.what.is_command() => Mending::Event,
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
}

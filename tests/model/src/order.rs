//! The order of actions: for every action the set of those that are complete before it begins.
//!
//! Order comes from in-order queues, wait lists, markers and barriers, and from what the host has waited for. Commands of
//! different queues are ordered by events and by the host alone. (Who waits for a command of another queue would have to
//! flush that queue, says the specification; Pumice does so by itself, and programs count on it.)

use crate::program::{Program, ProgramAction, What};

/// A set of actions.
pub type Set = u128;

#[derive(Debug, Clone)]
struct Lane {
    in_order: bool,
    /// All its commands and what comes before them.
    all: Set,
    /// The last command of an in-order queue, the last barrier of another, with what comes before it.
    fence: Set,
    /// As `all`, with what may come before it.
    slow_all: Set,
    /// As `fence`, with what may come before it.
    slow_fence: Set,
}

/// The order of the actions so far.
#[derive(Debug, Clone)]
pub struct Order {
    before: Vec<Set>,
    /// The actions that may have to complete before the action does: more than `before` where an
    /// action fails.
    slow: Vec<Set>,
    host: Set,
    lanes: Vec<Lane>,
}

impl Order {
    /// Creates the order of a program without actions.
    pub fn new(program: &Program) -> Self {
        let lane = |queue: &crate::program::Queue| Lane {
            in_order: queue.in_order,
            all: 0,
            fence: 0,
            slow_all: 0,
            slow_fence: 0,
        };
        Self {
            before: Vec::new(),
            slow: Vec::new(),
            host: 0,
            lanes: program.queues.iter().map(lane).collect(),
        }
    }

    /// Returns the order with what queues have in other queues, one by one, or in the only one.
    pub fn moved(&self, from: &[usize], to: &[usize]) -> Self {
        let mut moved = self.clone();
        for lane in &mut moved.lanes {
            (lane.all, lane.fence, lane.slow_all, lane.slow_fence) = (0, 0, 0, 0);
        }
        for (number, &queue) in from.iter().enumerate() {
            let (old, lane) = (&self.lanes[queue], &mut moved.lanes[to[number % to.len()]]);
            lane.all |= old.all;
            lane.slow_all |= old.slow_all;
            // A barrier in one of several queues is one for the commands of that queue alone.
            match lane.in_order {
                true => (lane.fence, lane.slow_fence) = (lane.all, lane.slow_all),
                false if !old.in_order && from.len() == to.len() => {
                    (lane.fence, lane.slow_fence) = (old.fence, old.slow_fence);
                }
                false => {}
            }
        }
        moved
    }

    fn with(&self, index: usize) -> Set {
        self.before[index] | 1 << index
    }

    /// Returns the actions that would be complete before this action begins, if it came next. What it waits for by semaphores
    /// stands in its wait list.
    pub fn before(&self, action: &ProgramAction) -> Set {
        let waits = action.waits.iter().fold(0, |set, &of| set | self.with(of));
        let mut set = self.host | waits;
        // What runs on several queues is behind all of them by what comes before it on each.
        let lanes = action.lanes().iter().map(|&lane| self.lanes[lane].fence);
        set |= lanes.reduce(|all, lane| all & lane).unwrap_or(0);
        if matches!(action.what, What::Marker | What::Barrier)
            && action.is_command()
            && action.waits.is_empty()
        {
            set |= self.lanes[action.queue].all;
        }
        set
    }

    /// The actions that are over before this one begins.
    pub fn known(&self, index: usize) -> Set {
        self.before[index]
    }

    /// The action, and all that it may have to wait for.
    pub fn slow(&self, index: usize) -> Set {
        self.slow[index] | 1 << index
    }

    /// All that this action, if it came next, might have to wait for.
    pub fn slow_before(&self, action: &ProgramAction) -> Set {
        let set = action.waits.iter().fold(0, |set, &of| set | self.slow(of));
        if matches!(action.what, What::Marker | What::Barrier)
            && action.is_command()
            && action.waits.is_empty()
        {
            return set | self.lanes[action.queue].slow_all;
        }
        let lanes = action.lanes().iter();
        lanes.fold(set, |set, &lane| set | self.lanes[lane].slow_fence)
    }

    /// The commands of a queue, and all that they may have to wait for.
    pub fn slow_queue(&self, queue: usize) -> Set {
        self.lanes[queue].slow_all
    }

    /// Notes what the next action may have to wait for.
    fn push_slow(&mut self, action: &ProgramAction) {
        let set = self.slow_before(action);
        let index = self.slow.len();
        self.slow.push(set);
        for &lane in action.lanes() {
            let lane = &mut self.lanes[lane];
            lane.slow_all |= set | 1 << index;
            if lane.in_order || action.what == What::Barrier {
                lane.slow_fence |= set | 1 << index;
            }
        }
    }

    /// A wait for a semaphore that came before its signal has got it: the wait, and what is behind it, is behind the signal.
    pub fn lead(&mut self, wait: usize, signal: usize) {
        let (before, slow) = (self.with(signal), self.slow(signal));
        let add = |set: &mut Set, more: Set| {
            if *set >> wait & 1 == 1 {
                *set |= more;
            }
        };
        self.before.iter_mut().for_each(|set| add(set, before));
        self.slow.iter_mut().for_each(|set| add(set, slow));
        self.before[wait] |= before;
        self.slow[wait] |= slow;
        for lane in &mut self.lanes {
            add(&mut lane.all, before);
            add(&mut lane.fence, before);
            add(&mut lane.slow_all, slow);
            add(&mut lane.slow_fence, slow);
        }
    }

    /// Appends an action that fails, which is known as soon as one of its dependencies has failed.
    pub fn push_failing(&mut self, action: &ProgramAction) {
        let index = self.before.len();
        self.push_slow(action);
        self.before.push(self.host);
        if let &[lane] = action.lanes() {
            self.lanes[lane].all |= 1 << index;
            if action.blocking {
                self.host |= 1 << index;
            }
        }
    }

    /// Appends an action.
    pub fn push(&mut self, action: &ProgramAction) {
        let index = self.before.len();
        let before = self.before(action);
        self.push_slow(action);
        self.before.push(before);
        let with = self.with(index);
        if action.is_command() {
            // Of what runs on several queues, only the event says that all of it is over.
            if let &[lane] = action.lanes() {
                let lane = &mut self.lanes[lane];
                lane.all |= with;
                if lane.in_order || action.what == What::Barrier {
                    lane.fence |= with;
                }
            }
            if action.blocking {
                self.host |= with;
            }
            return;
        }
        self.host |= match action.what {
            What::Gate(_) | What::Refuse(_) | What::Hold => 0,
            _ if action.recording.is_some() => 0,
            What::Wait(of) => 1 << index | self.with(of),
            What::Finish(queue) => 1 << index | self.lanes[queue].all,
            _ => 1 << index,
        };
    }
}

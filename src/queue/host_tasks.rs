//! What the host thread of a queue has yet to do, and what memory that touches.

use crate::command::access::{Ranges, Touched};
use crate::command::Work;
use std::collections::VecDeque;
use std::ops::Range;

/// A place in a queue: its timeline and its host tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueuePosition {
    /// Value of the timeline.
    pub value: u64,
    /// Number of the host task.
    pub host_seq: u64,
}

/// A task that the host thread has yet to do.
struct HostTask {
    seq: u64,
    ranges: Ranges,
    /// Devices reach the memory.
    shared: bool,
    /// It launches kernels, which may touch anything: what comes later in an in-order queue, and later barriers, wait for it.
    launches: bool,
}

/// The host tasks of a queue, and what later commands must know of them.
#[derive(Default)]
pub struct HostTasks {
    /// Number of the last one.
    pub posted: u64,
    /// Those that touch memory which other commands may touch.
    touching: VecDeque<HostTask>,
}

impl HostTasks {
    /// A task after the others, of which those up to `done` are over. Gives its number.
    pub fn add(&mut self, done: u64, ranges: Ranges, shared: bool) -> u64 {
        self.posted += 1;
        while self.touching.front().is_some_and(|task| task.seq <= done) {
            self.touching.pop_front();
        }
        if !ranges.is_empty() {
            self.touching.push_back(HostTask {
                seq: self.posted,
                ranges,
                shared,
                launches: false,
            });
        }
        self.posted
    }

    /// A task that launches kernels, after the others. Gives its number.
    pub fn add_launches(&mut self, done: u64) -> u64 {
        self.add(done, Ranges::new(), true);
        self.touching.push_back(HostTask {
            seq: self.posted,
            ranges: Ranges::new(),
            shared: true,
            launches: true,
        });
        self.posted
    }

    /// A command comes after tasks, later than `done`, that launch kernels.
    pub fn follows_launches(&self, done: u64, in_order: bool, work: &Work) -> bool {
        if self.posted <= done || self.touching.is_empty() {
            return false;
        }
        (in_order || matches!(work, Work::Marker | Work::Barrier))
            && self
                .touching
                .iter()
                .any(|task| task.launches && task.seq > done)
    }

    /// Work touches memory that tasks later than `done` have yet to touch.
    pub fn meet(&self, done: u64, work: &Work) -> bool {
        if self.posted <= done || self.touching.is_empty() {
            return false;
        }
        let touched = work.touched();
        let meets = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        self.touching
            .iter()
            .filter(|task| task.seq > done)
            .any(|task| {
                !task.launches
                    && match &touched {
                        Touched::Anything => true,
                        Touched::Shared => task.shared,
                        Touched::Ranges(ranges) => ranges
                            .iter()
                            .any(|range| task.ranges.iter().any(|other| meets(range, other))),
                    }
            })
    }
}

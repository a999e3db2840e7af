//! Hazards between host and device: when the host's part of a command may access memory that devices access, and when a
//! device may access memory that the host has yet to read or write.
//!
//! A command has up to three parts, each with a time of its own:
//!
//! | part | who | when |
//! |---|---|---|
//! | source copy | the thread that encodes it | at once |
//! | device | the stream | in the order of the stream and its semaphores |
//! | host task | the queue's host executor | when the timeline is at the command's value |
//!
//! A command comes after what its wait list names; in an in-order queue after all that was recorded; else after all before
//! the last barrier. Between parts of two commands, of which the first comes before the second:
//!
//! | first | second | RAW, WAR and WAW hazards are avoided by |
//! |---|---|---|
//! | device | device | barriers of the stream, semaphores |
//! | device | host task | the task waits for the timeline |
//! | device | source copy | `QueueState::unreached`: where devices access the memory the command is pending until all before is done |
//! | host task | host task | the executor does one after the other; events of others count as done only then |
//! | host task | device, source copy | `QueueState::host_hazard`: where ranges overlap the command is pending until the task is done |
//! | source copy | any | it is over |
//!
//! Where the device has the host's memory (`HostSide::visible`, or all of it: the CPU device) the device does the work and
//! there is neither a source copy nor a host task. Commands that access memory of the device alone ask nothing of this file
//! but whether there are host tasks, a comparison of two numbers.

use crate::command::access::{HostAccess, Ranges};
use crate::command::Work;
use std::collections::{BTreeMap, VecDeque};

/// A place in a queue: a value of its timeline and a number of its host tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueuePosition {
    /// Value of the timeline.
    pub value: u64,
    /// Number of the host task.
    pub host_seq: u64,
}

/// The last host task that accesses a range.
#[derive(Debug, Clone, Copy)]
struct Access {
    end: usize,
    seq: u64,
}

/// The host tasks of a queue that are not over, and the memory that they access.
#[derive(Default)]
pub struct HostTasks {
    /// Number of the last one.
    pub posted: u64,
    /// Accessed ranges by their first address.
    ranges: BTreeMap<usize, Access>,
    /// Tasks with their ranges, in order: what leaves `ranges` when they are over.
    order: VecDeque<(u64, usize)>,
    /// The size of the longest range there has been since there was none.
    longest: usize,
    /// The last task that accesses memory which devices access.
    last_shared: u64,
    /// The last task that launches kernels, which may access anything.
    last_launch: u64,
}

impl HostTasks {
    /// Adds a task after the others, of which those up to `done` are complete. `shared`: devices
    /// access the ranges, too. Returns its number.
    pub fn add(&mut self, done: u64, ranges: Ranges, shared: bool) -> u64 {
        self.posted += 1;
        self.forget(done);
        let seq = self.posted;
        if shared && !ranges.is_empty() {
            self.last_shared = seq;
        }
        for range in ranges {
            self.longest = self.longest.max(range.end.saturating_sub(range.start));
            let access = self.ranges.entry(range.start).or_insert(Access {
                end: range.end,
                seq,
            });
            // Those that begin at one address are one: the later is done later.
            *access = Access {
                end: access.end.max(range.end),
                seq,
            };
            self.order.push_back((seq, range.start));
        }
        seq
    }

    /// Adds a task that launches kernels: what comes later in an in-order queue, and later barriers, come after it. Returns
    /// its number.
    pub fn add_launches(&mut self, done: u64) -> u64 {
        self.last_launch = self.add(done, Ranges::new(), true);
        self.last_launch
    }

    /// Removes complete tasks.
    fn forget(&mut self, done: u64) {
        while let Some(&(seq, start)) = self.order.front().filter(|(seq, _)| *seq <= done) {
            if self
                .ranges
                .get(&start)
                .is_some_and(|known| known.seq == seq)
            {
                self.ranges.remove(&start);
            }
            self.order.pop_front();
        }
        if self.ranges.is_empty() {
            self.longest = 0;
        }
    }

    /// Returns the last task after `done` that `work` must wait for.
    pub fn hazard(&self, done: u64, in_order: bool, work: &Work) -> Option<u64> {
        if self.posted <= done {
            return None;
        }
        let follows = in_order || matches!(work, Work::Marker | Work::Barrier);
        let launch = if follows { self.last_launch } else { 0 };
        let last = || self.order.back().map_or(0, |(seq, _)| *seq);
        let accessed = match work.host_access() {
            HostAccess::Anything => last(),
            HostAccess::Shared => self.last_shared,
            HostAccess::Ranges(ranges) => ranges
                .iter()
                .flat_map(|range| {
                    // A range that begins earlier than the longest is long does not reach here.
                    let first = range.start.saturating_sub(self.longest);
                    let known = self.ranges.range(first..range.end.max(first));
                    known.filter(|(_, access)| access.end > range.start)
                })
                .map(|(_, access)| access.seq)
                .max()
                .unwrap_or(0),
        };
        Some(accessed.max(launch)).filter(|seq| *seq > done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    /// Checks that every range that overlaps is found, whatever lies between, and that the last
    /// task is the one to wait for.
    #[test]
    fn overlapping_ranges_are_found() {
        let mut tasks = HostTasks::default();
        tasks.add(0, smallvec![0..1000], false);
        tasks.add(0, smallvec![400..410, 500..510], false);
        tasks.add(0, smallvec![2000..2010], true);
        let hazard = |tasks: &HostTasks, range: std::ops::Range<usize>| {
            let first = range.start.saturating_sub(tasks.longest);
            tasks
                .ranges
                .range(first..range.end)
                .filter(|(_, access)| access.end > range.start)
                .map(|(_, access)| access.seq)
                .max()
        };
        assert_eq!(hazard(&tasks, 405..406), Some(2));
        assert_eq!(hazard(&tasks, 999..1001), Some(1));
        assert_eq!(hazard(&tasks, 1000..2000), None);
        assert_eq!(hazard(&tasks, 1000..2001), Some(3));
        tasks.forget(2);
        assert_eq!(hazard(&tasks, 0..1500), None);
        assert_eq!(tasks.longest, 1000);
        tasks.forget(3);
        assert!(tasks.order.is_empty() && tasks.longest == 0);
        assert_eq!(tasks.posted, 3);
    }
}

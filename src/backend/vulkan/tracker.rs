//! Which operations conflict: the ranges of device addresses that were read and written since the last barrier.
//!
//! A tracker outlives batches: a barrier at the head of a batch also orders it after the batches before on the same queue.

use super::barrier::STAGES;
use crate::backend::OrderRule;
use ash::vk;
use smallvec::SmallVec;

/// Ranges remembered before a barrier is placed for the sake of a short list.
const MOST_RANGES: usize = 48;

/// A range of device addresses that an operation reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessedRange {
    /// First byte.
    pub begin: u64,
    /// One past the last byte.
    pub end: u64,
    /// Written, and perhaps read.
    pub write: bool,
}

/// The accesses of one operation.
pub type Accesses = SmallVec<[AccessedRange; 16]>;

/// The accesses since the last barrier.
#[derive(Debug, Default)]
pub struct Tracker {
    reads: SmallVec<[(u64, u64); 16]>,
    writes: SmallVec<[(u64, u64); 16]>,
    /// Something whose accesses are not known.
    unknown: bool,
    /// Stages that were used.
    stages: vk::PipelineStageFlags,
}

fn overlaps(list: &[(u64, u64)], access: &AccessedRange) -> bool {
    list.iter()
        .any(|(begin, end)| *begin < access.end && access.begin < *end)
}

fn insert(list: &mut SmallVec<[(u64, u64); 16]>, begin: u64, end: u64) {
    for known in list.iter_mut() {
        // Touching and overlapping ranges of one kind become one.
        if known.0 <= end && begin <= known.1 {
            *known = (known.0.min(begin), known.1.max(end));
            return;
        }
    }
    list.push((begin, end));
}

impl Tracker {
    /// Returns true if nothing was accessed since the last barrier.
    pub fn is_clear(&self) -> bool {
        self.stages.is_empty()
    }

    /// Returns true if an operation with these accesses must not run before the ones since the last
    /// barrier have ended.
    pub fn conflicts(&self, accesses: &[AccessedRange], anything: bool) -> bool {
        if self.is_clear() {
            return false;
        }
        self.unknown
            || anything
            || self.reads.len() + self.writes.len() > MOST_RANGES
            || accesses.iter().any(|access| {
                overlaps(&self.writes, access) || (access.write && overlaps(&self.reads, access))
            })
    }

    /// Records an operation. Unknown accesses conflict with everything.
    pub fn add(
        &mut self,
        accesses: &[AccessedRange],
        unknown: bool,
        stages: vk::PipelineStageFlags,
    ) {
        self.stages |= stages;
        if unknown || self.unknown {
            self.unknown = true;
            return;
        }
        for access in accesses.iter().filter(|access| access.begin < access.end) {
            let list = if access.write {
                &mut self.writes
            } else {
                &mut self.reads
            };
            insert(list, access.begin, access.end);
        }
    }

    /// Removes all accesses, as a barrier was placed. Returns the stages that it must wait for.
    pub fn clear(&mut self) -> vk::PipelineStageFlags {
        self.reads.clear();
        self.writes.clear();
        self.unknown = false;
        std::mem::take(&mut self.stages)
    }
}

/// The dependencies of the next operation of a stream.
#[derive(Debug, Default)]
pub struct Order {
    /// The accesses since the last barrier.
    pub tracker: Tracker,
    /// Memory written by another stream, whose completion the host has seen, must be made visible.
    pub acquire: bool,
    /// The next operation waits for an earlier one of this stream.
    pub after_own: bool,
}

impl Order {
    /// Returns the stages that a barrier before an operation with these accesses must wait for;
    /// None: it needs no barrier.
    pub fn barrier_for(
        &mut self,
        accesses: &[AccessedRange],
        anything: bool,
        rule: OrderRule,
    ) -> Option<vk::PipelineStageFlags> {
        let acquired = std::mem::take(&mut self.acquire);
        let waits_for_own = std::mem::take(&mut self.after_own);
        let conflict = match rule {
            OrderRule::InOrder => self.tracker.conflicts(accesses, anything),
            OrderRule::Unordered => waits_for_own && !self.tracker.is_clear(),
        };
        if !acquired && !conflict {
            return None;
        }
        let earlier = self.tracker.clear();
        Some(if acquired { STAGES } else { earlier })
    }

    /// Returns true if no barrier is needed for what came before.
    pub fn is_clear(&self) -> bool {
        self.tracker.is_clear() && !self.acquire
    }

    /// Returns the stages that a barrier before all that follows must wait for.
    pub fn barrier_for_all(&mut self) -> vk::PipelineStageFlags {
        let earlier = self.tracker.clear();
        if std::mem::take(&mut self.acquire) {
            STAGES
        } else {
            earlier
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPUTE: vk::PipelineStageFlags = vk::PipelineStageFlags::COMPUTE_SHADER;

    fn read(begin: u64, end: u64) -> AccessedRange {
        AccessedRange {
            begin,
            end,
            write: false,
        }
    }

    fn write(begin: u64, end: u64) -> AccessedRange {
        AccessedRange {
            begin,
            end,
            write: true,
        }
    }

    #[test]
    fn reads_do_not_conflict_and_writes_do() {
        let mut tracker = Tracker::default();
        assert!(
            !tracker.conflicts(&[write(0, 10)], true),
            "nothing came before"
        );
        tracker.add(&[read(0, 100)], false, COMPUTE);
        assert!(!tracker.conflicts(&[read(50, 60)], false));
        assert!(tracker.conflicts(&[write(50, 60)], false));
        assert!(
            !tracker.conflicts(&[write(100, 110)], false),
            "ranges are half open"
        );
        tracker.add(&[write(200, 300)], false, COMPUTE);
        assert!(tracker.conflicts(&[read(299, 301)], false));
        assert!(tracker.conflicts(&[], true));
        assert_eq!(tracker.clear(), COMPUTE);
        assert!(!tracker.conflicts(&[write(0, 300)], true));
    }

    #[test]
    fn the_unknown_conflicts_with_everything() {
        let mut tracker = Tracker::default();
        tracker.add(&[], true, COMPUTE);
        assert!(tracker.conflicts(&[read(1, 2)], false));
    }

    #[test]
    fn long_lists_end_in_a_barrier() {
        let mut tracker = Tracker::default();
        for at in 0..=MOST_RANGES as u64 {
            tracker.add(&[read(at * 10, at * 10 + 5)], false, COMPUTE);
        }
        assert!(tracker.conflicts(&[read(7, 8)], false));
    }

    #[test]
    fn equal_reads_are_remembered_once() {
        let mut tracker = Tracker::default();
        for _ in 0..1000 {
            tracker.add(&[read(0, 64)], false, COMPUTE);
        }
        assert!(!tracker.conflicts(&[read(0, 64)], false));
    }
}

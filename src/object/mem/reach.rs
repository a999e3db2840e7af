//! Memory of the host that devices reach besides allocations of shared virtual memory: what buffers were made over
//! (CL_MEM_USE_HOST_PTR, in place), and what pointers of maps lead to.
//!
//! A command whose host side lies there must not be treated as if nobody but the host touched those bytes: see
//! [`crate::object::context::Context::host_backing`] and `queue/hazards.rs`.

use super::store::Store;
use crate::backend::Slice;
use crate::object::memories::MemoryIndex;
use crate::util::lock::{rank, Mutex};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// The backing of a range of addresses of the host: who has the bytes.
pub enum HostBacking {
    /// Memory that no device reaches by what the context knows (a kernel that follows pointers may all the same).
    Host,
    /// Memory that a device of the context reaches.
    Shared,
    /// The same, and it is this memory of the device in question, at the same offsets.
    Device(Slice),
}

/// The object that makes a range reachable.
pub enum Reach {
    /// A buffer in place: its memory is at the range's first byte.
    Store(Weak<Store>),
    /// A map; with what lies behind its pointer in that memory of the context.
    Map(Option<(MemoryIndex, Slice)>),
}

/// The end of a range of addresses, and what the range reaches.
struct ReachEntry {
    end: usize,
    reach: Reach,
}

#[derive(Default)]
struct Ranges {
    /// By first address, and a number that no other entry has.
    by_start: BTreeMap<(usize, u64), ReachEntry>,
    /// No range is longer.
    longest: usize,
    serial: u64,
}

/// The ranges of a context.
#[derive(Default)]
pub struct Reachable {
    count: AtomicUsize,
    ranges: Mutex<Ranges, { rank::REACHABLE }>,
}

impl Reachable {
    /// Returns true if there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Adds a range. Ranges may overlap and be there more than once.
    pub fn add(&self, range: Range<usize>, reach: Reach) {
        let mut ranges = self.ranges.lock();
        ranges.serial += 1;
        ranges.longest = ranges.longest.max(range.end.saturating_sub(range.start));
        let key = (range.start, ranges.serial);
        let entry = ReachEntry {
            end: range.end,
            reach,
        };
        ranges.by_start.insert(key, entry);
        self.count.store(ranges.by_start.len(), Ordering::Release);
    }

    /// Removes one range that was added like this: of a map or of a buffer.
    pub fn remove(&self, range: &Range<usize>, map: bool) {
        let mut ranges = self.ranges.lock();
        let matches = |entry: &ReachEntry| {
            entry.end == range.end && matches!(entry.reach, Reach::Map(_)) == map
        };
        let found = ranges
            .by_start
            .range((range.start, 0)..=(range.start, u64::MAX))
            .find(|(_, entry)| matches(entry))
            .map(|(key, _)| *key);
        let gone = found.and_then(|key| ranges.by_start.remove(&key));
        if ranges.by_start.is_empty() {
            ranges.longest = 0;
        }
        self.count.store(ranges.by_start.len(), Ordering::Release);
        drop(ranges);
        // What it keeps goes without the lock.
        drop(gone);
    }

    /// Returns the backing of a range among these, for devices with this memory.
    pub fn find(&self, memory: MemoryIndex, range: &Range<usize>) -> HostBacking {
        if self.is_empty() {
            return HostBacking::Host;
        }
        let ranges = self.ranges.lock();
        let mut found = HostBacking::Host;
        for (&(start, _), entry) in ranges.by_start.range(..(range.end, 0)).rev() {
            if start.saturating_add(ranges.longest) <= range.start {
                break;
            }
            if entry.end <= range.start {
                continue;
            }
            if start <= range.start && range.end <= entry.end {
                let (at, size) = (range.start - start, range.end - range.start);
                if let Some(slice) = entry.reach.slice(memory, at as u64, size as u64) {
                    return HostBacking::Device(slice);
                }
            }
            found = HostBacking::Shared;
        }
        found
    }
}

impl Reach {
    fn slice(&self, memory: MemoryIndex, at: u64, size: u64) -> Option<Slice> {
        match self {
            Self::Store(store) => store.upgrade()?.in_place(memory, at, size),
            Self::Map(known) => {
                let (of, slice) = known.as_ref()?;
                (*of == memory && at + size <= slice.size)
                    .then(|| Slice::new(Arc::clone(&slice.memory), slice.offset + at, size))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_while_they_are_there() {
        let all = Reachable::default();
        let shared = |range: Range<usize>| {
            matches!(all.find(MemoryIndex::FIRST, &range), HostBacking::Shared)
        };
        assert!(!shared(0..100));
        all.add(1000..2000, Reach::Map(None));
        all.add(1100..1200, Reach::Map(None));
        all.add(1100..1200, Reach::Map(None));
        assert!(shared(1999..2001) && shared(0..1001) && shared(1500..1501));
        assert!(!shared(0..1000) && !shared(2000..3000));
        all.remove(&(1000..2000), true);
        assert!(!shared(1500..1501) && shared(1150..1151));
        all.remove(&(1100..1200), false);
        all.remove(&(1100..1200), true);
        assert!(shared(1150..1151));
        all.remove(&(1100..1200), true);
        assert!(!shared(0..usize::MAX));
    }
}

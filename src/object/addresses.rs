//! Memory that a context finds by address: allocations that the host shares, by their addresses there, and buffers whose
//! device addresses the application knows.
//!
//! What is found is a memory object, or stands for one, and that knows its context. So the tables stand below both and hold
//! it as something that has an address; those that fill them (`svm`, `mem::address`) say what it is.

use super::mem::reach::HostBacking;
use super::memories::MemoryIndex;
use crate::util::lock::{rank, Mutex};
use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Something with an address of the host.
pub trait HostShared: Any + Send + Sync {
    /// Returns the backing of a range of addresses that overlaps it, for devices with this memory.
    fn host_backing(&self, memory: MemoryIndex, range: &Range<usize>) -> HostBacking;
}

/// The size and the memory of an allocation.
struct AllocationEntry {
    size: usize,
    shared: Arc<dyn HostShared>,
}

/// The allocations of a context.
#[derive(Default)]
pub struct Allocations {
    by_address: Mutex<BTreeMap<usize, AllocationEntry>, { rank::ALLOCATIONS }>,
    /// There was one at some time: else nobody need look.
    any: AtomicBool,
}

impl Allocations {
    /// Returns the allocation that contains an address, and the offset of the address in it.
    pub(super) fn at(&self, address: usize) -> Option<(Arc<dyn HostShared>, usize)> {
        if !self.any() {
            return None;
        }
        let map = self.by_address.lock();
        let (first, found) = map.range(..=address).next_back()?;
        let offset = address - first;
        (offset < found.size).then(|| (found.shared.clone(), offset))
    }

    /// Returns true if there has ever been an allocation.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Returns the backing that allocations are for a range of host addresses, for devices with
    /// this memory.
    pub(super) fn host_backing(&self, memory: MemoryIndex, range: &Range<usize>) -> HostBacking {
        if !self.any() {
            return HostBacking::Host;
        }
        let found = {
            let map = self.by_address.lock();
            match map.range(..range.end).next_back() {
                Some((first, last)) if first + last.size > range.start => last.shared.clone(),
                _ => return HostBacking::Host,
            }
        };
        found.host_backing(memory, range)
    }

    /// Adds an allocation.
    pub(super) fn insert(&self, address: usize, size: usize, shared: Arc<dyn HostShared>) {
        self.any.store(true, Ordering::Release);
        let mut map = self.by_address.lock();
        map.insert(address, AllocationEntry { size, shared });
    }

    /// Removes the allocation that begins at an address.
    pub(super) fn take(&self, address: usize) -> Option<Arc<dyn HostShared>> {
        let entry = self.by_address.lock().remove(&address)?;
        Some(entry.shared)
    }

    /// Removes all allocations and drops them, if `unused` returns true for their number.
    pub(super) fn clear(&self, unused: impl FnOnce(usize) -> bool) {
        let left = {
            let mut map = self.by_address.lock();
            if !unused(map.len()) {
                return;
            }
            std::mem::take(&mut *map)
        };
        // Without the lock.
        drop(left);
    }
}

/// The buffers of a context whose addresses are known, by memory and address.
#[derive(Default)]
pub struct Addressed {
    by_address:
        Mutex<BTreeMap<(MemoryIndex, u64), Weak<dyn Any + Send + Sync>>, { rank::ADDRESSED }>,
}

impl Addressed {
    /// Returns the last buffer that begins at an address of a memory or before it, and the address
    /// as an offset from its first byte. The buffer may be shorter than that.
    pub(super) fn below(
        &self,
        memory: MemoryIndex,
        address: u64,
    ) -> Option<(Arc<dyn Any + Send + Sync>, u64)> {
        let map = self.by_address.lock();
        let ((_, begin), found) = map.range((memory, 0)..=(memory, address)).next_back()?;
        Some((found.upgrade()?, address - begin))
    }

    /// Adds a buffer.
    pub(super) fn insert(
        &self,
        memory: MemoryIndex,
        address: u64,
        mem: Weak<dyn Any + Send + Sync>,
    ) {
        let mut map = self.by_address.lock();
        map.retain(|_, known| known.strong_count() > 0);
        map.insert((memory, address), mem);
    }
}

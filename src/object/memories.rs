//! The memories of a context. Devices that share a memory share every allocation in it.
//!
//! A memory is that of a root device: its sub-devices, and the device itself, have the same bytes at the same addresses. So
//! allocations, images and coherence are by memory, never by device; commands, code and device queues are by device.

use super::device::Device;
use crate::cl;
use crate::error::{err, ClResult};
use crate::handle::Ref;
use std::sync::Arc;

/// A memory of a context, by its place among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryIndex(usize);

impl MemoryIndex {
    /// The first memory; every context has it.
    pub const FIRST: Self = Self(0);

    /// Returns one of a context that a test makes up.
    #[cfg(test)]
    pub fn for_tests(number: usize) -> Self {
        Self(number)
    }

    /// Returns the entry for this memory of a list with one for each memory of the context.
    pub fn of<T>(self, each: &[T]) -> ClResult<&T> {
        match each.get(self.0) {
            Some(one) => Ok(one),
            None => err(cl::CL_INVALID_DEVICE, "no such memory in the context"),
        }
    }
}

/// The memories of a context.
pub struct Memories {
    /// A device of the context for each: it allocates there and moves contents.
    devices: Vec<Ref<Device>>,
    /// The memory of each device of the context.
    of: Vec<MemoryIndex>,
}

impl Memories {
    /// Groups the devices of a context by their roots.
    pub(super) fn new(all: &[Ref<Device>]) -> Self {
        let mut devices: Vec<Ref<Device>> = Vec::new();
        let of = all.iter().map(|device| {
            let root = Device::root(device);
            let same = |known: &Ref<Device>| Arc::ptr_eq(Device::root(known), root);
            let known = devices.iter().position(same);
            MemoryIndex(known.unwrap_or_else(|| {
                devices.push(device.clone());
                devices.len() - 1
            }))
        });
        let of = of.collect();
        Self { devices, of }
    }

    /// Returns the number of memories.
    pub fn count(&self) -> usize {
        self.devices.len()
    }

    /// Returns true if there are several memories, between which contents are copied.
    pub fn are_several(&self) -> bool {
        self.count() > 1
    }

    /// Iterates over the memories, in ascending order.
    pub fn all(&self) -> impl Iterator<Item = MemoryIndex> {
        (0..self.count()).map(MemoryIndex)
    }

    /// Creates a list with one entry for each memory.
    pub fn each<T>(&self, mut make: impl FnMut() -> T) -> Box<[T]> {
        self.devices.iter().map(|_| make()).collect()
    }

    /// Returns the memory of a device, by the device's place in the context.
    pub(super) fn of(&self, device: usize) -> ClResult<MemoryIndex> {
        super::device::of_device(&self.of, device).copied()
    }

    /// Returns the device that allocates in a memory and moves contents there.
    pub fn device(&self, memory: MemoryIndex) -> ClResult<&Ref<Device>> {
        memory.of(&self.devices)
    }
}

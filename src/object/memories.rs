//! The memories of a context. Devices that share a memory share every allocation in it.
//!
//! A memory is that of a root device: its sub-devices, and the device itself, have the same bytes at the same addresses. So
//! allocations, images and coherence are by memory, never by device; commands, code and device queues are by device.

use super::device::Device;
use crate::cl;
use crate::error::{ClResult, OrErr};
use crate::handle::Ref;
use crate::util::lock::{rank, Mutex};
use std::sync::{Arc, OnceLock};

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
        let one = each.get(self.0);
        one.or_err(cl::CL_INVALID_DEVICE, "no such memory in the context")
    }
}

/// One of something for each memory of a context, made at its first use.
pub struct PerMemory<T> {
    each: Box<[OnceLock<T>]>,
    making: Mutex<(), { rank::OBJECT_MEMORY }>,
}

impl<T> Default for PerMemory<T> {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl<T> FromIterator<Option<T>> for PerMemory<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(made: I) -> Self {
        let cell = |one: Option<T>| one.map_or_else(OnceLock::new, OnceLock::from);
        Self {
            each: made.into_iter().map(cell).collect(),
            making: Mutex::default(),
        }
    }
}

impl<T> PerMemory<T> {
    /// Returns a list of what is yet to be made.
    pub fn new(all: &Memories) -> Self {
        all.all().map(|_| None).collect()
    }

    /// Iterates over what there is.
    pub fn made(&self) -> impl Iterator<Item = &T> {
        self.each.iter().filter_map(OnceLock::get)
    }

    /// Returns that of a memory, if there is one.
    pub fn get(&self, memory: MemoryIndex) -> ClResult<Option<&T>> {
        Ok(memory.of(&self.each)?.get())
    }

    /// Returns that of a memory, made if need be.
    pub fn get_or_make(
        &self,
        memory: MemoryIndex,
        make: impl FnOnce() -> ClResult<T>,
    ) -> ClResult<&T> {
        let cell = memory.of(&self.each)?;
        if let Some(made) = cell.get() {
            return Ok(made);
        }
        let _making = self.making.lock();
        if let Some(made) = cell.get() {
            return Ok(made);
        }
        let made = make()?;
        Ok(cell.get_or_init(|| made))
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

    /// Returns the memory of a device, by the device's place in the context.
    pub(super) fn of(&self, device: usize) -> ClResult<MemoryIndex> {
        super::device::of_device(&self.of, device).copied()
    }

    /// Returns the device that allocates in a memory and moves contents there.
    pub fn device(&self, memory: MemoryIndex) -> ClResult<&Ref<Device>> {
        memory.of(&self.devices)
    }
}

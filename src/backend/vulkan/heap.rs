//! Memory types and gpu-allocator.
//!
//! Which memory types serve a [`Placement`] is decided here, once a device; gpu-allocator only sub-allocates.

use super::adapter::Adapter;
use super::logical::LogicalDevice;
use super::queue::Queues;
use crate::backend::{DeviceError, Placement, Result};
use crate::util::lock::{rank, Mutex};
use crate::util::shutdown;
use ash::vk;
use gpu_allocator::vulkan::{
    Allocation, AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc,
};
use gpu_allocator::{AllocationError, AllocationSizes, AllocatorDebugSettings, MemoryLocation};
use smallvec::SmallVec;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// From this size on an allocation gets memory of its own.
const DEDICATED_FROM: u64 = 32 << 20;

const MIB: u64 = 1 << 20;

/// Indices of memory types, best first.
type Types = SmallVec<[u32; 4]>;

/// The device's memory.
pub struct Heaps {
    /// The device.
    pub device: Arc<LogicalDevice>,
    /// Where sparse memory is bound.
    pub queues: Arc<Queues>,
    allocator: Mutex<ManuallyDrop<Allocator>, { rank::HEAPS }>,
    /// By placement.
    device_local: Types,
    device_mapped: Types,
    host_write: Types,
    host_read: Types,
}

/// The owner of an allocation.
#[derive(Clone, Copy)]
pub enum Owner {
    /// A buffer.
    Buffer(vk::Buffer),
    /// An image.
    Image(vk::Image),
}

impl Heaps {
    /// Sorts the memory types and makes the allocator.
    pub fn new(queues: &Arc<Queues>) -> Result<Self> {
        let device = &queues.device;
        let adapter = &device.adapter;
        let mut quiet = AllocatorDebugSettings::default();
        quiet.log_leaks_on_shutdown = false;
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: adapter.instance.raw.clone(),
            device: device.raw.clone(),
            physical_device: adapter.raw,
            debug_settings: quiet,
            buffer_device_address: true,
            allocation_sizes: AllocationSizes::new(32 * MIB, 16 * MIB)
                .with_max_device_memblock_size(256 * MIB)
                .with_max_host_memblock_size(64 * MIB),
        })
        .map_err(|error| DeviceError::Driver {
            call: "gpu-allocator",
            code: error.to_string(),
        })?;
        use vk::MemoryPropertyFlags as F;
        let mapped = F::HOST_VISIBLE | F::HOST_COHERENT;
        let device_local = if adapter.caps.unified_memory {
            sorted(
                adapter,
                F::DEVICE_LOCAL,
                mapped | F::HOST_CACHED,
                F::empty(),
            )
        } else {
            sorted(adapter, F::DEVICE_LOCAL, F::empty(), F::HOST_VISIBLE)
        };
        let unwanted = F::DEVICE_LOCAL | F::HOST_CACHED;
        let host_write = sorted(adapter, mapped, F::empty(), unwanted);
        let both = mapped | F::DEVICE_LOCAL;
        let mut device_mapped = sorted(adapter, both, F::empty(), F::empty());
        device_mapped.extend(host_write.iter().copied());
        Ok(Self {
            allocator: Mutex::new(ManuallyDrop::new(allocator)),
            device_local,
            device_mapped,
            host_write,
            host_read: sorted(adapter, mapped, F::HOST_CACHED, F::DEVICE_LOCAL),
            device: Arc::clone(device),
            queues: Arc::clone(queues),
        })
    }

    /// Returns the memory types for a placement, best first.
    pub fn types(&self, placement: Placement) -> &[u32] {
        match placement {
            Placement::Device => &self.device_local,
            Placement::DeviceMapped => &self.device_mapped,
            Placement::HostWrite => &self.host_write,
            Placement::HostRead => &self.host_read,
        }
    }

    /// Allocates memory for a buffer or an image, and binds it. `size` is the requested size, for
    /// the log.
    pub fn bind(
        &self,
        owner: Owner,
        requirements: vk::MemoryRequirements,
        placement: Placement,
        size: u64,
    ) -> Result<Allocation> {
        let device = &self.device;
        let mut last = DeviceError::OutOfDeviceMemory { size };
        for index in self.types(placement) {
            if requirements.memory_type_bits & (1 << index) == 0 {
                continue;
            }
            let desc = AllocationCreateDesc {
                name: "",
                requirements: vk::MemoryRequirements {
                    memory_type_bits: 1 << index,
                    ..requirements
                },
                // The mask above has made the choice.
                location: MemoryLocation::Unknown,
                linear: matches!(owner, Owner::Buffer(_)),
                allocation_scheme: match owner {
                    _ if size < DEDICATED_FROM => AllocationScheme::GpuAllocatorManaged,
                    Owner::Buffer(buffer) => AllocationScheme::DedicatedBuffer(buffer),
                    Owner::Image(image) => AllocationScheme::DedicatedImage(image),
                },
            };
            // Not in the scrutinee: the lock would be held below.
            let result = self.allocator.lock().allocate(&desc);
            let allocation = match result {
                Ok(allocation) => allocation,
                Err(AllocationError::OutOfMemory) => continue,
                Err(AllocationError::FailedToMap(_)) => {
                    last = DeviceError::OutOfHostMemory;
                    continue;
                }
                Err(error) => {
                    // vkAllocateMemory's other errors come as text (too many objects, out of host memory).
                    crate::log!(Info, "allocating {size} bytes failed: {error}");
                    continue;
                }
            };
            // SAFETY: the allocation is the caller's alone until it is bound, and lives.
            let (memory, offset) = unsafe { (allocation.memory(), allocation.offset()) };
            let (call, bound) = match owner {
                // SAFETY: the allocation fits the buffer's requirements and is used for nothing else.
                Owner::Buffer(buffer) => ("vkBindBufferMemory", unsafe {
                    device.raw.bind_buffer_memory(buffer, memory, offset)
                }),
                // SAFETY: the same for the image.
                Owner::Image(image) => ("vkBindImageMemory", unsafe {
                    device.raw.bind_image_memory(image, memory, offset)
                }),
            };
            if let Err(result) = bound {
                self.release(allocation);
                return Err(device.failed(call, result));
            }
            return Ok(allocation);
        }
        Err(last)
    }

    /// Returns an allocation to its heap.
    pub fn release(&self, allocation: Allocation) {
        if let Err(error) = self.allocator.lock().free(allocation) {
            crate::log!(Error, "freeing device memory failed: {error}");
        }
    }
}

impl Drop for Heaps {
    fn drop(&mut self) {
        if !shutdown::has_begun() {
            // SAFETY: dropped once, here; all memory holds an Arc of this, so none of it is left.
            unsafe { ManuallyDrop::drop(self.allocator.get_mut()) };
        }
    }
}

/// Returns the memory types with all of `need`, those with more of `like` and less of `avoid`
/// first.
fn sorted(
    adapter: &Adapter,
    need: vk::MemoryPropertyFlags,
    like: vk::MemoryPropertyFlags,
    avoid: vk::MemoryPropertyFlags,
) -> Types {
    use vk::MemoryPropertyFlags as F;
    let strange =
        F::PROTECTED | F::LAZILY_ALLOCATED | F::DEVICE_UNCACHED_AMD | F::DEVICE_COHERENT_AMD;
    let types = adapter.memory.memory_types_as_slice();
    let heaps = adapter.memory.memory_heaps_as_slice();
    let mut list: SmallVec<[(u32, &vk::MemoryType); 8]> = (0u32..)
        .zip(types)
        .filter(|(_, t)| t.property_flags.contains(need) && !t.property_flags.intersects(strange))
        .collect();
    list.sort_by_key(|(_, t)| {
        let size = heaps.get(t.heap_index as usize).map_or(0, |heap| heap.size);
        let count = |flags: F| (t.property_flags & flags).as_raw().count_ones();
        let (wanted, unwanted) = (count(like), count(avoid));
        (unwanted, std::cmp::Reverse(wanted), std::cmp::Reverse(size))
    });
    list.into_iter().map(|(index, _)| index).collect()
}

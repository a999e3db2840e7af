//! Memory: a VkBuffer with a device address on memory from gpu-allocator, or on imported host memory.
//!
//! Memory that the host can see is mapped for as long as it lives.

use super::caps::ALIGNMENT;
use super::heap::{Heaps, Owner};
use super::logical::LogicalDevice;
use super::sparse::{self, Sparse};
use crate::backend::{DeviceError, Memory, Placement, Result};
use crate::util::pages;
use ash::vk;
use gpu_allocator::vulkan::Allocation;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

pub use super::handles::BUFFER_USAGE as USAGE;

/// The memory behind a buffer.
enum Backing {
    Managed(ManuallyDrop<Allocation>),
    Imported(vk::DeviceMemory),
    /// A part of other memory, whose buffer it uses.
    Part {
        /// Keeps that memory, and the part of it ours.
        _held: Box<dyn Any + Send + Sync>,
    },
    /// Owns the buffer too.
    Sparse(Sparse),
    /// Bound to the buffer of other memory, which is all addresses ([`super::replay`]).
    Pieces {
        pieces: Vec<vk::DeviceMemory>,
        _addresses: Arc<dyn Memory>,
    },
}

/// A piece of memory.
pub struct VulkanMemory {
    heaps: Arc<Heaps>,
    /// The buffer; the memory is all of it from `offset` on.
    pub buffer: vk::Buffer,
    /// Where the memory begins in the buffer.
    pub offset: u64,
    backing: Backing,
    address: u64,
    size: u64,
    mapped: Option<NonNull<u8>>,
    cached: bool,
    /// The host reads it directly where it is mapped, not only when the device is idle.
    shown: bool,
    /// The last batch that took a reference: one batch keeps one.
    stamp: AtomicU64,
}

// SAFETY: the mapped pointer is a plain number here; who reads and writes through it answers for races, as with any
// device memory. Everything else is Send and Sync.
unsafe impl Send for VulkanMemory {}
// SAFETY: as above.
unsafe impl Sync for VulkanMemory {}

impl VulkanMemory {
    /// Downcasts a memory to one of this back end.
    pub fn of(memory: &dyn Memory) -> Result<&Self> {
        memory
            .as_any()
            .downcast_ref()
            .ok_or_else(|| DeviceError::Unsupported("memory of another back end".to_owned()))
    }

    /// Returns true if `batch` has not taken a reference yet; marks it taken. Two streams that use
    /// the memory in turns may each take several: harmless.
    pub fn first_use(&self, batch: u64) -> bool {
        if self.stamp.load(Ordering::Relaxed) == batch {
            return false;
        }
        self.stamp.store(batch, Ordering::Relaxed);
        true
    }

    /// Returns true if the application, or a host task, may read the memory as soon as a command that writes it is complete:
    /// it is mapped, and not memory of the device that just happens to be.
    pub fn is_shown(&self) -> bool {
        self.shown && self.mapped.is_some()
    }

    /// Returns true if this is a range of addresses without memory.
    pub fn is_addresses(&self) -> bool {
        matches!(&self.backing, Backing::Sparse(sparse) if sparse.pieces.is_empty())
    }

    /// Maps memory of [`allocate_unmapped`]: `map` maps it and returns the pointer, which is valid
    /// until the memory is freed.
    pub fn map_with(
        mut self,
        map: impl FnOnce(vk::DeviceMemory) -> Result<NonNull<u8>>,
    ) -> Result<Self> {
        if let Backing::Imported(memory) = &self.backing {
            self.mapped = Some(map(*memory)?);
        }
        Ok(self)
    }
}

impl Memory for VulkanMemory {
    fn address(&self) -> u64 {
        self.address
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn mapped(&self) -> Option<NonNull<u8>> {
        self.mapped
    }

    fn host_cached(&self) -> bool {
        self.cached
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for VulkanMemory {
    fn drop(&mut self) {
        let raw = &self.heaps.device.raw;
        let owns = matches!(self.backing, Backing::Managed(_) | Backing::Imported(_));
        if owns {
            // SAFETY: streams keep an Arc of the memory until the work that uses it has completed, so the buffer is
            // idle; it is destroyed once.
            unsafe { raw.destroy_buffer(self.buffer, None) };
        }
        match &mut self.backing {
            // SAFETY: the buffer is idle, as above; destroyed once.
            Backing::Sparse(sparse) => unsafe { sparse.destroy(raw) },
            Backing::Managed(allocation) => {
                // SAFETY: taken once, here.
                let allocation = unsafe { ManuallyDrop::take(allocation) };
                self.heaps.release(allocation);
            }
            // SAFETY: the only buffer bound to the memory is gone; freed once.
            Backing::Imported(memory) => unsafe { raw.free_memory(*memory, None) },
            // It gives its range back itself.
            Backing::Part { .. } => {}
            Backing::Pieces { pieces, .. } => {
                for piece in pieces.drain(..) {
                    // SAFETY: the buffer it is bound to is idle, as above; freed once.
                    unsafe { raw.free_memory(piece, None) };
                }
            }
        }
    }
}

/// A buffer that destroys itself unless it is handed on.
pub struct Guard<'a> {
    #[allow(missing_docs)]
    pub device: &'a LogicalDevice,
    #[allow(missing_docs)]
    pub buffer: vk::Buffer,
}

impl Guard<'_> {
    /// Returns the buffer without destroying it.
    pub fn take(self) -> vk::Buffer {
        let buffer = self.buffer;
        std::mem::forget(self);
        buffer
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing was recorded with the buffer yet.
        unsafe { self.device.raw.destroy_buffer(self.buffer, None) };
    }
}

/// Returns the address of a buffer that has memory bound, or is sparse.
pub fn address_of(device: &LogicalDevice, buffer: vk::Buffer) -> u64 {
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
    // SAFETY: the buffer has memory bound or is sparse, and was made with SHADER_DEVICE_ADDRESS.
    unsafe { device.raw.get_buffer_device_address(&info) }
}

/// Allocates memory of `size` bytes in a heap for its placement.
pub fn allocate(heaps: &Arc<Heaps>, size: u64, placement: Placement) -> Result<Arc<VulkanMemory>> {
    let device = &heaps.device;
    let out_of_memory = DeviceError::OutOfDeviceMemory { size };
    if size > device.adapter.max_allocation {
        // Only memory that need not be mapped can be put together from pieces.
        if placement != Placement::Device || size > device.adapter.max_sparse {
            return Err(out_of_memory);
        }
        let sparse = sparse::allocate(&heaps.queues, size, heaps.types(placement), USAGE)?;
        return Ok(Arc::new(VulkanMemory {
            heaps: Arc::clone(heaps),
            buffer: sparse.buffer,
            offset: 0,
            address: address_of(device, sparse.buffer),
            size,
            mapped: None,
            cached: false,
            shown: false,
            backing: Backing::Sparse(sparse),
            stamp: AtomicU64::new(0),
        }));
    }
    let info = vk::BufferCreateInfo::default()
        .size(size.max(1).next_multiple_of(16))
        .usage(USAGE)
        .sharing_mode(vk::SharingMode::EXCLUSIVE);
    // SAFETY: the size is within the device's limit and not 0.
    let buffer = unsafe { device.raw.create_buffer(&info, None) }
        .map_err(|r| device.failed("vkCreateBuffer", r))?;
    let guard = Guard { device, buffer };
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { device.raw.get_buffer_memory_requirements(buffer) };
    let requirements = vk::MemoryRequirements {
        alignment: requirements.alignment.max(ALIGNMENT),
        ..requirements
    };
    let allocation = heaps.bind(Owner::Buffer(buffer), requirements, placement, size)?;
    if let Some(pointer) = allocation.mapped_ptr() {
        if device.adapter.host_addresses {
            ask_for_large_pages(pointer.cast(), size);
        }
    }
    let cached = (allocation.memory_properties()).contains(vk::MemoryPropertyFlags::HOST_CACHED);
    Ok(Arc::new(VulkanMemory {
        heaps: Arc::clone(heaps),
        address: address_of(device, buffer),
        buffer: guard.take(),
        offset: 0,
        size,
        mapped: allocation.mapped_ptr().map(NonNull::cast),
        cached,
        shown: cached || placement != Placement::Device,
        backing: Backing::Managed(ManuallyDrop::new(allocation)),
        stamp: AtomicU64::new(0),
    }))
}

/// Advises the kernel to back memory of a software driver, which is plain memory of this process,
/// by large pages. That makes the first touch and kernels that read much memory faster. Only whole
/// large pages are affected.
fn ask_for_large_pages(pointer: NonNull<u8>, size: u64) {
    const LARGE: usize = 2 << 20;
    let begin = (pointer.as_ptr() as usize).next_multiple_of(LARGE);
    let end = (pointer.as_ptr() as usize).saturating_add(size as usize) / LARGE * LARGE;
    if begin < end {
        if let Some(base) = NonNull::new(begin as *mut u8) {
            // SAFETY: the range is mapped.
            unsafe { pages::ask_for_large(base, end - begin) };
        }
    }
}

/// Returns a buffer of [`super::place`] as memory: with an allocation of its own, or sparse with
/// nothing bound yet.
pub fn placed(
    heaps: &Arc<Heaps>,
    buffer: vk::Buffer,
    memory: Option<vk::DeviceMemory>,
    size: u64,
) -> VulkanMemory {
    VulkanMemory {
        heaps: Arc::clone(heaps),
        buffer,
        offset: 0,
        address: address_of(&heaps.device, buffer),
        size,
        mapped: None,
        cached: false,
        shown: true,
        backing: match memory {
            Some(memory) => Backing::Imported(memory),
            None => Backing::Sparse(Sparse {
                buffer,
                pieces: Vec::new(),
            }),
        },
        stamp: AtomicU64::new(0),
    }
}

/// Creates sparse memory of [`placed`], which is `keep`, with the memory bound to its buffer.
/// `host`: the address of the bytes on the host.
pub fn backed(
    placed: &VulkanMemory,
    keep: Arc<dyn Memory>,
    pieces: Vec<vk::DeviceMemory>,
    host: Option<NonNull<u8>>,
) -> VulkanMemory {
    VulkanMemory {
        heaps: Arc::clone(&placed.heaps),
        buffer: placed.buffer,
        offset: placed.offset,
        address: placed.address,
        size: placed.size,
        mapped: host,
        cached: host.is_some(),
        shown: true,
        backing: Backing::Pieces {
            pieces,
            _addresses: keep,
        },
        stamp: AtomicU64::new(0),
    }
}

/// Returns a part of a memory, as memory of its own, which keeps `held`.
pub fn part(
    whole: &VulkanMemory,
    offset: u64,
    size: u64,
    held: Box<dyn Any + Send + Sync>,
) -> Arc<VulkanMemory> {
    let at = |base: NonNull<u8>| NonNull::new(base.as_ptr().wrapping_add(offset as usize));
    Arc::new(VulkanMemory {
        heaps: Arc::clone(&whole.heaps),
        buffer: whole.buffer,
        offset: whole.offset + offset,
        address: whole.address + offset,
        size,
        mapped: whole.mapped.and_then(at),
        cached: whole.cached,
        shown: whole.shown,
        backing: Backing::Part { _held: held },
        stamp: AtomicU64::new(0),
    })
}

/// Allocates coherent host memory of its own, not mapped yet: see [`VulkanMemory::map_with`].
pub fn allocate_unmapped(heaps: &Arc<Heaps>, size: u64) -> Result<VulkanMemory> {
    let device = &heaps.device;
    let out_of_memory = DeviceError::OutOfDeviceMemory { size };
    if size > device.adapter.max_allocation {
        return Err(out_of_memory);
    }
    let info = vk::BufferCreateInfo::default()
        .size(size)
        .usage(USAGE)
        .sharing_mode(vk::SharingMode::EXCLUSIVE);
    // SAFETY: the size is within the device's limit and not 0.
    let buffer = unsafe { device.raw.create_buffer(&info, None) }
        .map_err(|r| device.failed("vkCreateBuffer", r))?;
    let guard = Guard { device, buffer };
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { device.raw.get_buffer_memory_requirements(buffer) };
    if requirements.size > size {
        return Err(DeviceError::Unsupported(
            "a buffer larger than its contents at an address of the host's".to_owned(),
        ));
    }
    let types = device.adapter.memory.memory_types_as_slice();
    let (index, flags) = heaps
        .types(Placement::HostRead)
        .iter()
        .filter(|index| requirements.memory_type_bits & (1 << **index) != 0)
        .find_map(|index| Some((*index, types.get(*index as usize)?.property_flags)))
        .ok_or(out_of_memory)?;
    let mut address_flag =
        vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
    let info = vk::MemoryAllocateInfo::default()
        .allocation_size(size)
        .memory_type_index(index)
        .push_next(&mut address_flag)
        .push_next(&mut dedicated);
    // SAFETY: the size is within the device's limit and the type is allowed for the buffer.
    let memory = unsafe { device.raw.allocate_memory(&info, None) }
        .map_err(|result| device.failed("vkAllocateMemory", result))?;
    // SAFETY: the memory was made for the buffer.
    if let Err(result) = unsafe { device.raw.bind_buffer_memory(buffer, memory, 0) } {
        // SAFETY: nothing is bound to the memory.
        unsafe { device.raw.free_memory(memory, None) };
        return Err(device.failed("vkBindBufferMemory", result));
    }
    Ok(VulkanMemory {
        heaps: Arc::clone(heaps),
        address: address_of(device, buffer),
        buffer: guard.take(),
        offset: 0,
        backing: Backing::Imported(memory),
        size,
        mapped: None,
        cached: flags.contains(vk::MemoryPropertyFlags::HOST_CACHED),
        shown: true,
        stamp: AtomicU64::new(0),
    })
}

/// Returns a buffer on an allocation of host memory, which begins `offset` bytes into it and is at
/// `pointer` for the host.
pub fn imported(
    heaps: &Arc<Heaps>,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    offset: u64,
    size: u64,
    pointer: NonNull<u8>,
) -> VulkanMemory {
    VulkanMemory {
        heaps: Arc::clone(heaps),
        address: address_of(&heaps.device, buffer) + offset,
        buffer,
        offset,
        backing: Backing::Imported(memory),
        size,
        mapped: Some(pointer),
        cached: true,
        shown: true,
        stamp: AtomicU64::new(0),
    }
}

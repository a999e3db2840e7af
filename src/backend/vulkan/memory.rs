//! Memory: a VkBuffer with a device address on memory from gpu-allocator, or on imported host memory.
//!
//! Which memory types serve a [`Placement`] is decided here, once a device; gpu-allocator only sub-allocates. Memory
//! that the host can see is mapped for as long as it lives.

use super::adapter::Adapter;
use super::conv::During;
use super::device::{failed, Shared};
use super::sparse::{self, Sparse};
use crate::backend::{DeviceError, Memory, Placement, Result};
use ash::vk;
use gpu_allocator::vulkan::{
    Allocation, AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc,
};
use gpu_allocator::{AllocationError, AllocationSizes, MemoryLocation};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Alignment in bytes of every allocation.
pub const ALIGNMENT: u64 = 256;

/// From this size on an allocation gets memory of its own.
const DEDICATED_FROM: u64 = 32 << 20;

const MIB: u64 = 1 << 20;

/// What every buffer may be used for.
pub const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS.as_raw()
        | vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER.as_raw()
        | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER.as_raw()
        | vk::BufferUsageFlags::INDIRECT_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

/// The device's memory.
pub struct Heaps {
    allocator: Mutex<Option<Allocator>>,
    /// Memory types in order of preference, by placement.
    device: SmallVec<[u32; 4]>,
    device_mapped: SmallVec<[u32; 4]>,
    host_write: SmallVec<[u32; 4]>,
    host_read: SmallVec<[u32; 4]>,
}

impl Heaps {
    /// Sorts the memory types; no memory can be had before [`Heaps::open`].
    pub fn new(adapter: &Adapter) -> Self {
        use vk::MemoryPropertyFlags as F;
        let mapped = F::HOST_VISIBLE | F::HOST_COHERENT;
        let strange =
            F::PROTECTED | F::LAZILY_ALLOCATED | F::DEVICE_UNCACHED_AMD | F::DEVICE_COHERENT_AMD;
        let types = adapter.memory.memory_types_as_slice();
        // Types with all of `need`, those with more of `like` and less of `avoid` first.
        let sorted = |need: F, like: F, avoid: F| -> SmallVec<[u32; 4]> {
            let mut list: SmallVec<[u32; 4]> = (0u32..)
                .zip(types)
                .filter(|(_, t)| {
                    t.property_flags.contains(need) && !t.property_flags.intersects(strange)
                })
                .map(|(index, _)| index)
                .collect();
            list.sort_by_key(|index| {
                let flags = types
                    .get(*index as usize)
                    .map_or(F::empty(), |t| t.property_flags);
                let heap = types
                    .get(*index as usize)
                    .map_or(0, |t| t.heap_index as usize);
                let size = adapter
                    .memory
                    .memory_heaps_as_slice()
                    .get(heap)
                    .map_or(0, |heap| heap.size);
                let (wanted, unwanted) = ((flags & like).as_raw(), (flags & avoid).as_raw());
                (
                    unwanted.count_ones(),
                    std::cmp::Reverse(wanted.count_ones()),
                    std::cmp::Reverse(size),
                )
            });
            list
        };
        let device = if adapter.caps.unified_memory {
            sorted(F::DEVICE_LOCAL, mapped | F::HOST_CACHED, F::empty())
        } else {
            sorted(F::DEVICE_LOCAL, F::empty(), F::HOST_VISIBLE)
        };
        let host_write = sorted(mapped, F::empty(), F::DEVICE_LOCAL | F::HOST_CACHED);
        let mut device_mapped = sorted(mapped | F::DEVICE_LOCAL, F::empty(), F::empty());
        device_mapped.extend(host_write.iter().copied());
        Self {
            allocator: Mutex::new(None),
            device,
            device_mapped,
            host_write,
            host_read: sorted(mapped, F::HOST_CACHED, F::DEVICE_LOCAL),
        }
    }

    /// Makes the allocator.
    pub fn open(&mut self, adapter: &Adapter, raw: &ash::Device) -> Result {
        let mut quiet = gpu_allocator::AllocatorDebugSettings::default();
        quiet.log_leaks_on_shutdown = false;
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: adapter.instance.raw.clone(),
            device: raw.clone(),
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
        *self.allocator.lock() = Some(allocator);
        Ok(())
    }

    /// Gives all memory back.
    pub fn close(&mut self) {
        drop(self.allocator.lock().take());
    }

    /// The memory types for a placement, best first.
    pub fn types(&self, placement: Placement) -> &[u32] {
        match placement {
            Placement::Device => &self.device,
            Placement::DeviceMapped => &self.device_mapped,
            Placement::HostWrite => &self.host_write,
            Placement::HostRead => &self.host_read,
        }
    }
}

/// What lies under a buffer.
enum Backing {
    Managed(ManuallyDrop<Allocation>),
    Imported(vk::DeviceMemory),
    /// A part of other memory, whose buffer it uses.
    Part {
        _part: super::svm::Part,
    },
    /// Owns the buffer too.
    Sparse(Sparse),
    /// Bound to the buffer of other memory, which is all addresses ([`super::place`]).
    Pieces {
        pieces: Vec<vk::DeviceMemory>,
        _addresses: Arc<dyn Memory>,
    },
}

/// A piece of memory.
pub struct VulkanMemory {
    shared: Arc<Shared>,
    /// The buffer; the memory is all of it from `offset` on.
    pub buffer: vk::Buffer,
    /// Where the memory begins in the buffer.
    pub offset: u64,
    backing: Backing,
    address: u64,
    size: u64,
    mapped: Option<NonNull<u8>>,
    cached: bool,
    /// The last batch that took a reference: one batch keeps one.
    stamp: AtomicU64,
}

// SAFETY: the mapped pointer is a plain number here; who reads and writes through it answers for races, as with any
// device memory. Everything else is Send and Sync.
unsafe impl Send for VulkanMemory {}
// SAFETY: as above.
unsafe impl Sync for VulkanMemory {}

impl VulkanMemory {
    /// Whether `batch` has not taken a reference yet; marks it taken. Two streams that use the memory in turns may
    /// each take several: harmless.
    pub fn first_use(&self, batch: u64) -> bool {
        if self.stamp.load(Ordering::Relaxed) == batch {
            return false;
        }
        self.stamp.store(batch, Ordering::Relaxed);
        true
    }

    /// It is addresses with nothing behind them.
    pub fn is_addresses(&self) -> bool {
        matches!(&self.backing, Backing::Sparse(sparse) if sparse.pieces.is_empty())
    }

    /// Maps memory of [`allocate_unmapped`]: `map` gets it and gives the pointer, which is valid until it is freed.
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
        let owns = matches!(self.backing, Backing::Managed(_) | Backing::Imported(_));
        if owns {
            // SAFETY: streams keep an Arc of the memory until the work that uses it has completed, so the buffer is
            // idle; it is destroyed once.
            unsafe { self.shared.raw.destroy_buffer(self.buffer, None) };
        }
        match &mut self.backing {
            // SAFETY: the buffer is idle, as above; destroyed once.
            Backing::Sparse(sparse) => unsafe { sparse.destroy(&self.shared.raw) },
            Backing::Managed(allocation) => {
                // SAFETY: taken once, here.
                let allocation = unsafe { ManuallyDrop::take(allocation) };
                release(&self.shared, allocation);
            }
            // SAFETY: the only buffer bound to the memory is gone; freed once.
            Backing::Imported(memory) => unsafe { self.shared.raw.free_memory(*memory, None) },
            // It gives its range back itself.
            Backing::Part { .. } => {}
            Backing::Pieces { pieces, .. } => {
                for piece in pieces.drain(..) {
                    // SAFETY: the buffer it is bound to is idle, as above; freed once.
                    unsafe { self.shared.raw.free_memory(piece, None) };
                }
            }
        }
    }
}

/// Gives an allocation back.
pub fn release(shared: &Shared, allocation: Allocation) {
    if let Some(allocator) = shared.heaps.allocator.lock().as_mut() {
        if let Err(error) = allocator.free(allocation) {
            crate::log!(Error, "freeing device memory failed: {error}");
        }
    }
}

/// A buffer that destroys itself unless it is handed on.
pub struct Guard<'a> {
    #[allow(missing_docs)]
    pub shared: &'a Shared,
    #[allow(missing_docs)]
    pub buffer: vk::Buffer,
}

impl Guard<'_> {
    /// Hands the buffer on.
    pub fn take(self) -> vk::Buffer {
        let buffer = self.buffer;
        std::mem::forget(self);
        buffer
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing was recorded with the buffer yet.
        unsafe { self.shared.raw.destroy_buffer(self.buffer, None) };
    }
}

/// The address of a buffer that has memory bound, or is sparse.
pub fn address_of(shared: &Shared, buffer: vk::Buffer) -> u64 {
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
    // SAFETY: the buffer has memory bound or is sparse, and was made with SHADER_DEVICE_ADDRESS.
    unsafe { shared.raw.get_buffer_device_address(&info) }
}

/// Allocates memory.
pub fn allocate(
    shared: &Arc<Shared>,
    size: u64,
    placement: Placement,
) -> Result<Arc<VulkanMemory>> {
    let out_of_memory = DeviceError::OutOfDeviceMemory { size };
    if size > shared.adapter.max_allocation {
        // Only memory that need not be mapped can be put together from pieces.
        if placement != Placement::Device || size > shared.adapter.max_sparse {
            return Err(out_of_memory);
        }
        let sparse = sparse::allocate(shared, size, shared.heaps.types(placement), USAGE)?;
        return Ok(Arc::new(VulkanMemory {
            shared: Arc::clone(shared),
            buffer: sparse.buffer,
            offset: 0,
            address: address_of(shared, sparse.buffer),
            size,
            mapped: None,
            cached: false,
            backing: Backing::Sparse(sparse),
            stamp: AtomicU64::new(0),
        }));
    }
    let info = vk::BufferCreateInfo::default()
        .size(size.max(1).next_multiple_of(16))
        .usage(USAGE)
        .sharing_mode(vk::SharingMode::EXCLUSIVE);
    // SAFETY: the size is within the device's limit and not 0.
    let buffer = unsafe { shared.raw.create_buffer(&info, None) }
        .map_err(|r| failed(shared, "vkCreateBuffer", r))?;
    let guard = Guard { shared, buffer };
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { shared.raw.get_buffer_memory_requirements(buffer) };
    let mut last = out_of_memory;
    for index in shared.heaps.types(placement) {
        if requirements.memory_type_bits & (1 << index) == 0 {
            continue;
        }
        let requirements = vk::MemoryRequirements {
            memory_type_bits: 1 << index,
            alignment: requirements.alignment.max(ALIGNMENT),
            ..requirements
        };
        let result = match shared.heaps.allocator.lock().as_mut() {
            Some(allocator) => allocator.allocate(&AllocationCreateDesc {
                name: "",
                requirements,
                // The mask above has made the choice.
                location: MemoryLocation::Unknown,
                linear: true,
                allocation_scheme: if size >= DEDICATED_FROM {
                    AllocationScheme::DedicatedBuffer(buffer)
                } else {
                    AllocationScheme::GpuAllocatorManaged
                },
            }),
            None => return Err(DeviceError::Lost),
        };
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
        // SAFETY: the allocation fits the buffer's requirements and is used for nothing else.
        let bound = unsafe {
            shared
                .raw
                .bind_buffer_memory(buffer, allocation.memory(), allocation.offset())
        };
        if let Err(result) = bound {
            release(shared, allocation);
            return Err(failed(shared, "vkBindBufferMemory", result));
        }
        let address = address_of(shared, buffer);
        if let Some(pointer) = allocation.mapped_ptr() {
            if shared.adapter.host_addresses {
                ask_for_large_pages(pointer.cast(), size);
            }
        }
        return Ok(Arc::new(VulkanMemory {
            shared: Arc::clone(shared),
            buffer: guard.take(),
            offset: 0,
            address,
            size,
            mapped: allocation.mapped_ptr().map(NonNull::cast),
            cached: allocation
                .memory_properties()
                .contains(vk::MemoryPropertyFlags::HOST_CACHED),
            backing: Backing::Managed(ManuallyDrop::new(allocation)),
            stamp: AtomicU64::new(0),
        }));
    }
    Err(last)
}

/// Asks the kernel to back memory of a software driver, which is plain memory of this process, by large pages: kernels that
/// go through it, and the first touch of it, are faster. Only whole large pages are asked for.
fn ask_for_large_pages(pointer: NonNull<u8>, size: u64) {
    const LARGE: usize = 2 << 20;
    let begin = (pointer.as_ptr() as usize).next_multiple_of(LARGE);
    let end = (pointer.as_ptr() as usize).saturating_add(size as usize) / LARGE * LARGE;
    if begin < end {
        // SAFETY: the range is mapped, and the advice changes nothing but how it is backed. Refused, it is harmless.
        unsafe { libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_HUGEPAGE) };
    }
}

/// A buffer of [`super::place`] as memory: with an allocation of its own, or sparse with nothing bound yet.
pub fn placed(
    shared: &Arc<Shared>,
    buffer: vk::Buffer,
    memory: Option<vk::DeviceMemory>,
    size: u64,
) -> VulkanMemory {
    VulkanMemory {
        shared: Arc::clone(shared),
        buffer,
        offset: 0,
        address: address_of(shared, buffer),
        size,
        mapped: None,
        cached: false,
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

/// Sparse memory of [`placed`], which is `keep`, with what was bound to its buffer. `host`: where the host has the bytes.
pub fn backed(
    placed: &VulkanMemory,
    keep: Arc<dyn Memory>,
    pieces: Vec<vk::DeviceMemory>,
    host: Option<NonNull<u8>>,
) -> VulkanMemory {
    VulkanMemory {
        shared: Arc::clone(&placed.shared),
        buffer: placed.buffer,
        offset: placed.offset,
        address: placed.address,
        size: placed.size,
        mapped: host,
        cached: host.is_some(),
        backing: Backing::Pieces {
            pieces,
            _addresses: keep,
        },
        stamp: AtomicU64::new(0),
    }
}

/// A part of a piece of memory, as memory of its own.
pub fn part(
    whole: &VulkanMemory,
    offset: u64,
    size: u64,
    part: super::svm::Part,
) -> Arc<VulkanMemory> {
    let at = |base: NonNull<u8>| NonNull::new(base.as_ptr().wrapping_add(offset as usize));
    Arc::new(VulkanMemory {
        shared: Arc::clone(&whole.shared),
        buffer: whole.buffer,
        offset: whole.offset + offset,
        address: whole.address + offset,
        size,
        mapped: whole.mapped.and_then(at),
        cached: whole.cached,
        backing: Backing::Part { _part: part },
        stamp: AtomicU64::new(0),
    })
}

/// Coherent host memory of its own, not mapped yet: see [`VulkanMemory::map_with`].
pub fn allocate_unmapped(shared: &Arc<Shared>, size: u64) -> Result<VulkanMemory> {
    let out_of_memory = DeviceError::OutOfDeviceMemory { size };
    if size > shared.adapter.max_allocation {
        return Err(out_of_memory);
    }
    let info = vk::BufferCreateInfo::default()
        .size(size)
        .usage(USAGE)
        .sharing_mode(vk::SharingMode::EXCLUSIVE);
    // SAFETY: the size is within the device's limit and not 0.
    let buffer = unsafe { shared.raw.create_buffer(&info, None) }
        .map_err(|r| failed(shared, "vkCreateBuffer", r))?;
    let guard = Guard { shared, buffer };
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { shared.raw.get_buffer_memory_requirements(buffer) };
    if requirements.size > size {
        return Err(DeviceError::Unsupported(
            "a buffer larger than its contents at an address of the host's".to_owned(),
        ));
    }
    let types = shared.adapter.memory.memory_types_as_slice();
    let (index, flags) = shared
        .heaps
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
    let memory = unsafe { shared.raw.allocate_memory(&info, None) }
        .map_err(|result| failed(shared, "vkAllocateMemory", result))?;
    // SAFETY: the memory was made for the buffer.
    if let Err(result) = unsafe { shared.raw.bind_buffer_memory(buffer, memory, 0) } {
        // SAFETY: nothing is bound to the memory.
        unsafe { shared.raw.free_memory(memory, None) };
        return Err(failed(shared, "vkBindBufferMemory", result));
    }
    Ok(VulkanMemory {
        shared: Arc::clone(shared),
        address: address_of(shared, buffer),
        buffer: guard.take(),
        offset: 0,
        backing: Backing::Imported(memory),
        size,
        mapped: None,
        cached: flags.contains(vk::MemoryPropertyFlags::HOST_CACHED),
        stamp: AtomicU64::new(0),
    })
}

/// Gives an image device memory. The image is not destroyed where that fails.
pub fn bind_image(shared: &Shared, image: vk::Image) -> Result<Allocation> {
    // SAFETY: the image belongs to the device.
    let requirements = unsafe { shared.raw.get_image_memory_requirements(image) };
    for index in shared.heaps.types(Placement::Device) {
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
            linear: false,
            allocation_scheme: if requirements.size >= DEDICATED_FROM {
                AllocationScheme::DedicatedImage(image)
            } else {
                AllocationScheme::GpuAllocatorManaged
            },
        };
        let result = match shared.heaps.allocator.lock().as_mut() {
            Some(allocator) => allocator.allocate(&desc),
            None => return Err(DeviceError::Lost),
        };
        let allocation = match result {
            Ok(allocation) => allocation,
            Err(error) => {
                crate::log!(Info, "allocating an image failed: {error}");
                continue;
            }
        };
        // SAFETY: the allocation fits the image's requirements and is used for nothing else.
        let bound = unsafe {
            shared
                .raw
                .bind_image_memory(image, allocation.memory(), allocation.offset())
        };
        if let Err(result) = bound {
            release(shared, allocation);
            return Err(failed(shared, "vkBindImageMemory", result));
        }
        return Ok(allocation);
    }
    Err(DeviceError::OutOfDeviceMemory {
        size: requirements.size,
    })
}

/// Makes host memory addressable in place. The import covers whole pages; the memory is the part asked for.
///
/// # Safety
/// `pointer` must be valid for reads and writes of `size` bytes as long as the memory lives.
pub unsafe fn import_host(
    shared: &Arc<Shared>,
    pointer: NonNull<u8>,
    size: u64,
) -> Result<Arc<VulkanMemory>> {
    let unsupported = |why: &str| DeviceError::Unsupported(format!("importing host memory: {why}"));
    if shared.external_memory_host.is_none() {
        return Err(unsupported("no VK_EXT_external_memory_host"));
    }
    let align = shared.adapter.caps.host_import_align.max(1);
    let address = pointer.as_ptr() as u64;
    // Widening to whole pages touches nothing that is not mapped only where the unit is a page at most.
    if align > 4096 && !(address.is_multiple_of(align) && size.is_multiple_of(align)) {
        return Err(unsupported("alignment"));
    }
    // Vector accesses of kernels expect this much.
    if !address.is_multiple_of(16) {
        return Err(unsupported("alignment"));
    }
    let first = address - address % align;
    let end = (address + size.max(1)).next_multiple_of(align);
    let (offset, length) = (address - first, end - first);
    if length > shared.adapter.max_allocation {
        return Err(DeviceError::OutOfDeviceMemory { size });
    }
    let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(kind);
    let info = vk::BufferCreateInfo::default()
        .size(length)
        .usage(USAGE)
        .sharing_mode(vk::SharingMode::EXCLUSIVE)
        .push_next(&mut external);
    // SAFETY: the size is within the device's limit and not 0.
    let buffer = unsafe { shared.raw.create_buffer(&info, None) }
        .map_err(|r| failed(shared, "vkCreateBuffer", r))?;
    let guard = Guard { shared, buffer };
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { shared.raw.get_buffer_memory_requirements(buffer) };
    if requirements.size > length {
        return Err(unsupported("size"));
    }
    // SAFETY: the caller's promise is passed on; pages that the range reaches into are mapped.
    let memory = unsafe { host_memory(shared, first, length, requirements.memory_type_bits) }?;
    // SAFETY: the memory is as large as the buffer needs and of an allowed type.
    if let Err(result) = unsafe { shared.raw.bind_buffer_memory(buffer, memory, 0) } {
        // SAFETY: nothing is bound to the memory.
        unsafe { shared.raw.free_memory(memory, None) };
        return Err(failed(shared, "vkBindBufferMemory", result));
    }
    let base = address_of(shared, buffer);
    Ok(Arc::new(VulkanMemory {
        shared: Arc::clone(shared),
        buffer: guard.take(),
        offset,
        backing: Backing::Imported(memory),
        address: base + offset,
        size,
        mapped: Some(pointer),
        cached: true,
        stamp: AtomicU64::new(0),
    }))
}

/// An allocation that is memory of the host, for buffers that allow one of these memory types.
///
/// # Safety
/// `length` bytes from address `first` on must be valid for reads and writes as long as the allocation lives; both are
/// multiples of the alignment that the device asks for.
pub unsafe fn host_memory(
    shared: &Shared,
    first: u64,
    length: u64,
    type_bits: u32,
) -> Result<vk::DeviceMemory> {
    let unsupported = |why: &str| DeviceError::Unsupported(format!("importing host memory: {why}"));
    let table = shared
        .external_memory_host
        .as_ref()
        .ok_or_else(|| unsupported("no VK_EXT_external_memory_host"))?;
    let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
    let host = first as *mut std::ffi::c_void;
    let mut found = vk::MemoryHostPointerPropertiesEXT::default();
    // SAFETY: the pointer lies in memory that the caller vouches for; the result's place is valid.
    unsafe {
        (table.fp().get_memory_host_pointer_properties_ext)(
            shared.raw.handle(),
            kind,
            host,
            &mut found,
        )
    }
    .result()
    .during("vkGetMemoryHostPointerPropertiesEXT")?;
    let bits = type_bits & found.memory_type_bits;
    let coherent = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    let index = (0u32..)
        .zip(shared.adapter.memory.memory_types_as_slice())
        .find(|(index, t)| bits & (1 << index) != 0 && t.property_flags.contains(coherent))
        .map(|(index, _)| index)
        .ok_or_else(|| unsupported("no coherent memory type"))?;
    let mut import = vk::ImportMemoryHostPointerInfoEXT::default()
        .handle_type(kind)
        .host_pointer(host);
    let mut flags =
        vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
    let info = vk::MemoryAllocateInfo::default()
        .allocation_size(length)
        .memory_type_index(index)
        .push_next(&mut import)
        .push_next(&mut flags);
    // SAFETY: pointer and length are aligned as the device asks and cover mapped pages; the type is allowed.
    unsafe { shared.raw.allocate_memory(&info, None) }
        .map_err(|result| failed(shared, "vkAllocateMemory", result))
}

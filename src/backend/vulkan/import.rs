//! Memory of the application, addressable in place (VK_EXT_external_memory_host).

use super::conv::During;
use super::heap::Heaps;
use super::logical::LogicalDevice;
use super::memory::{self, Guard, VulkanMemory, USAGE};
use crate::backend::{DeviceError, Result};
use ash::vk;
use std::ptr::NonNull;
use std::sync::Arc;

/// Makes host memory addressable in place. The import covers whole pages; the returned memory is
/// the requested part.
///
/// # Safety
/// `pointer` must be valid for reads and writes of `size` bytes as long as the memory lives.
pub unsafe fn import_host(
    heaps: &Arc<Heaps>,
    pointer: NonNull<u8>,
    size: u64,
) -> Result<Arc<VulkanMemory>> {
    let unsupported = |why: &str| DeviceError::Unsupported(format!("importing host memory: {why}"));
    let device = &heaps.device;
    if device.external_memory_host.is_none() {
        return Err(unsupported("no VK_EXT_external_memory_host"));
    }
    let align = device.adapter.caps.host_import_align.max(1);
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
    if length > device.adapter.max_allocation {
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
    let buffer = unsafe { device.raw.create_buffer(&info, None) }
        .map_err(|r| device.failed("vkCreateBuffer", r))?;
    let guard = Guard { device, buffer };
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { device.raw.get_buffer_memory_requirements(buffer) };
    if requirements.size > length {
        return Err(unsupported("size"));
    }
    // SAFETY: the caller's promise is passed on; pages that the range reaches into are mapped.
    let imported = unsafe { host_memory(device, first, length, requirements.memory_type_bits) }?;
    // SAFETY: the memory is as large as the buffer needs and of an allowed type.
    if let Err(result) = unsafe { device.raw.bind_buffer_memory(buffer, imported, 0) } {
        // SAFETY: nothing is bound to the memory.
        unsafe { device.raw.free_memory(imported, None) };
        return Err(device.failed("vkBindBufferMemory", result));
    }
    let buffer = guard.take();
    Ok(Arc::new(memory::imported(
        heaps, buffer, imported, offset, size, pointer,
    )))
}

/// Imports host memory as an allocation, for buffers that allow one of these memory types.
///
/// # Safety
///
/// `length` bytes from address `first` on must be valid for reads and writes as long as the
/// allocation lives; both are multiples of the alignment that the device requires.
pub unsafe fn host_memory(
    device: &LogicalDevice,
    first: u64,
    length: u64,
    type_bits: u32,
) -> Result<vk::DeviceMemory> {
    let unsupported = |why: &str| DeviceError::Unsupported(format!("importing host memory: {why}"));
    let table = device
        .external_memory_host
        .as_ref()
        .ok_or_else(|| unsupported("no VK_EXT_external_memory_host"))?;
    let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
    let host = first as *mut std::ffi::c_void;
    let mut found = vk::MemoryHostPointerPropertiesEXT::default();
    // SAFETY: the pointer lies in memory that the caller vouches for; the result's place is valid.
    unsafe {
        (table.fp().get_memory_host_pointer_properties_ext)(
            device.raw.handle(),
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
        .zip(device.adapter.memory.memory_types_as_slice())
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
    unsafe { device.raw.allocate_memory(&info, None) }
        .map_err(|result| device.failed("vkAllocateMemory", result))
}

//! Memory and images that are shared with other APIs and processes (VK_KHR_external_memory_fd, VK_EXT_external_memory_dma_buf).

use super::handles::memory_flag;
use super::heap::Heaps;
use super::logical::LogicalDevice;
use super::memory::{self, Guard, VulkanMemory, USAGE};
use crate::backend::external::MemoryHandle;
use crate::backend::{DeviceError, Placement, Result};
use ash::vk;
use std::sync::Arc;

/// The user of imported memory.
#[derive(Clone, Copy)]
pub enum User {
    /// A buffer.
    Buffer(vk::Buffer),
    /// An image.
    Image(vk::Image),
}

/// Imports memory for a buffer or an image, with `dedicated` for that alone, and binds it. The file descriptor is the driver's on
/// success.
pub fn import(
    heaps: &Heaps,
    kind: MemoryHandle,
    fd: i32,
    requirements: vk::MemoryRequirements,
    (user, dedicated): (User, bool),
) -> Result<vk::DeviceMemory> {
    let device = &heaps.device;
    let functions = device.external_memory_fd.as_ref().ok_or_else(|| {
        DeviceError::Unsupported("shared memory: no VK_KHR_external_memory_fd".to_owned())
    })?;
    let mut bits = requirements.memory_type_bits;
    if kind == MemoryHandle::DmaBuf {
        let mut found = vk::MemoryFdPropertiesKHR::default();
        // SAFETY: the driver refuses what is no DMA buffer.
        unsafe { functions.get_memory_fd_properties(memory_flag(kind), fd, &mut found) }
            .map_err(|result| device.failed("vkGetMemoryFdPropertiesKHR", result))?;
        bits &= found.memory_type_bits;
    }
    let mut types = heaps.types(Placement::Device).to_vec();
    let others = 0..device.adapter.memory.memory_type_count;
    types.extend(others.filter(|index| !heaps.types(Placement::Device).contains(index)));
    types.retain(|index| bits & (1 << index) != 0);
    let mut last = DeviceError::Unsupported("shared memory of this kind".to_owned());
    // Which type an opaque handle has, only its maker knows.
    for index in types {
        let mut flags = vk::MemoryAllocateFlagsInfo::default();
        let mut only = vk::MemoryDedicatedAllocateInfo::default();
        let mut info = vk::MemoryAllocateInfo::default()
            .allocation_size(requirements.size)
            .memory_type_index(index);
        match user {
            User::Buffer(buffer) => {
                flags = flags.flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
                info = info.push_next(&mut flags);
                only = only.buffer(buffer);
            }
            User::Image(image) => only = only.image(image),
        }
        if dedicated {
            info = info.push_next(&mut only);
        }
        match offer(fd, |copy| allocate(device, (kind, copy), info, user)) {
            Ok(memory) => return Ok(memory),
            // Nothing is allocated: some drivers say so of what is no memory of theirs.
            Err(DeviceError::OutOfDeviceMemory { .. }) => {
                last = refused("not memory of this driver")
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Offers a file descriptor to a driver: some close it where they fail.
fn offer<T>(fd: i32, take: impl FnOnce(i32) -> Result<T>) -> Result<T> {
    #[cfg(not(unix))]
    return take(fd);
    #[cfg(unix)]
    crate::util::fds::offer(fd, take).map_err(|error| DeviceError::Driver {
        call: "copying the handle of memory",
        code: error.to_string(),
    })?
}

/// Allocates memory of a file descriptor and binds it to its user.
fn allocate(
    device: &LogicalDevice,
    (kind, fd): (MemoryHandle, i32),
    info: vk::MemoryAllocateInfo<'_>,
    user: User,
) -> Result<vk::DeviceMemory> {
    let mut import = vk::ImportMemoryFdInfoKHR::default()
        .handle_type(memory_flag(kind))
        .fd(fd);
    let info = info.push_next(&mut import);
    // SAFETY: the type is allowed for the user, which lives; the driver refuses what is no such file descriptor.
    let memory = unsafe { device.raw.allocate_memory(&info, None) }
        .map_err(|result| device.failed("vkAllocateMemory", result))?;
    // SAFETY: the memory is as large as its user needs and of an allowed type; nothing was bound before.
    let bound = unsafe {
        match user {
            User::Buffer(buffer) => device.raw.bind_buffer_memory(buffer, memory, 0),
            User::Image(image) => device.raw.bind_image_memory(image, memory, 0),
        }
    };
    if let Err(result) = bound {
        // SAFETY: nothing is bound to the memory.
        unsafe { device.raw.free_memory(memory, None) };
        return Err(device.failed("binding shared memory", result));
    }
    Ok(memory)
}

/// Creates memory of a handle.
pub fn import_memory(
    heaps: &Arc<Heaps>,
    kind: MemoryHandle,
    fd: i32,
    size: u64,
) -> Result<VulkanMemory> {
    let device = &heaps.device;
    let known = device.adapter.memory_imports.iter();
    let import_info = known
        .copied()
        .find(|import| import.kind == kind)
        .ok_or_else(|| DeviceError::Unsupported("shared memory of this kind".to_owned()))?;
    check(kind, fd, size)?;
    if size > device.adapter.max_allocation {
        return Err(DeviceError::OutOfDeviceMemory { size });
    }
    let mut external =
        vk::ExternalMemoryBufferCreateInfo::default().handle_types(memory_flag(kind));
    let info = vk::BufferCreateInfo::default()
        .size(size)
        .usage(USAGE)
        .sharing_mode(vk::SharingMode::EXCLUSIVE)
        .push_next(&mut external);
    // SAFETY: the size is within the device's limit and not 0.
    let buffer = unsafe { device.raw.create_buffer(&info, None) }
        .map_err(|result| device.failed("vkCreateBuffer", result))?;
    let guard = Guard { device, buffer };
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { device.raw.get_buffer_memory_requirements(buffer) };
    check(kind, fd, requirements.size)?;
    let user = (User::Buffer(buffer), import_info.dedicated);
    let imported = import(heaps, kind, fd, requirements, user)?;
    Ok(memory::placed(heaps, guard.take(), Some(imported), size))
}

/// Returns the error of a handle that names no such memory.
fn refused(why: &str) -> DeviceError {
    DeviceError::Driver {
        call: "the handle of memory",
        code: why.to_owned(),
    }
}

/// Returns the length of what a handle names, if it has one.
#[cfg(unix)]
fn length(fd: i32) -> std::io::Result<Option<u64>> {
    crate::util::fds::length(fd)
}

#[cfg(not(unix))]
fn length(_fd: i32) -> std::io::Result<Option<u64>> {
    Ok(None)
}

/// Fails where a file descriptor is not open, or is that of a file with less than `size` bytes. What it is otherwise the driver
/// knows.
pub fn check(kind: MemoryHandle, fd: i32, size: u64) -> Result {
    let known = length(fd).map_err(|error| refused(&error.to_string()))?;
    // An opaque one of a driver in the kernel has no length.
    let known = known.filter(|length| *length > 0 || kind == MemoryHandle::DmaBuf);
    if known.is_some_and(|length| length < size) {
        return Err(refused("smaller than the object"));
    }
    Ok(())
}

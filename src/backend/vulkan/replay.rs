//! Memory at addresses that other devices have too ([`ReplayKind`]): Vulkan's capture and replay of buffer device addresses.
//!
//! The driver is asked for memory, or for a sparse buffer, whose address can be had again, tells two numbers, and gives
//! the same address to who shows them on another device, if it is free there. Strictly the numbers are for a later run
//! on the same device; so the caller compares the addresses, and treats a refusal as the normal case that it may be.

use super::conv::During;
use super::heap::Heaps;
use super::import::host_memory;
use super::logical::LogicalDevice;
use super::memory::{self, Guard, VulkanMemory, USAGE};
use super::sparse::Sparse;
use crate::backend::{DeviceError, Memory, Placement, Replay, ReplayKind, Result};
use ash::vk;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of host memory in one allocation, at most.
const PIECE: u64 = 1 << 30;

const HOST: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

fn unsupported<T>(what: &str) -> Result<T> {
    Err(DeviceError::Unsupported(what.to_owned()))
}

fn buffer_flags(kind: ReplayKind) -> vk::BufferCreateFlags {
    let replay = vk::BufferCreateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY;
    match kind {
        ReplayKind::Whole => replay,
        ReplayKind::Pieces | ReplayKind::Host => replay | vk::BufferCreateFlags::SPARSE_BINDING,
    }
}

/// Returns an error if the device cannot replay memory of `size` bytes.
fn check(device: &LogicalDevice, size: u64, kind: ReplayKind) -> Result {
    let adapter = &device.adapter;
    if !adapter.replays_addresses {
        return unsupported("addresses that are given again");
    }
    if kind == ReplayKind::Whole {
        return if size <= adapter.max_allocation {
            Ok(())
        } else {
            Err(DeviceError::OutOfDeviceMemory { size })
        };
    }
    if size > adapter.max_sparse {
        return unsupported("sparse memory of that size");
    }
    if kind == ReplayKind::Host {
        if device.external_memory_host.is_none() {
            return unsupported("VK_EXT_external_memory_host");
        }
        let info = vk::PhysicalDeviceExternalBufferInfo::default()
            .flags(buffer_flags(kind))
            .usage(USAGE)
            .handle_type(HOST);
        let mut found = vk::ExternalBufferProperties::default();
        // SAFETY: the device belongs to the instance; the result's place is valid.
        unsafe {
            adapter
                .instance
                .raw
                .get_physical_device_external_buffer_properties(adapter.raw, &info, &mut found)
        };
        let features = found.external_memory_properties.external_memory_features;
        if !features.contains(vk::ExternalMemoryFeatureFlags::IMPORTABLE) {
            return unsupported("sparse buffers of host memory");
        }
    }
    Ok(())
}

/// Implements [`crate::backend::Device::place`].
pub fn place(
    heaps: &Arc<Heaps>,
    size: u64,
    kind: ReplayKind,
    like: Option<&Replay>,
) -> Result<(VulkanMemory, Replay)> {
    let device = &heaps.device;
    check(device, size, kind)?;
    let mut address = vk::BufferOpaqueCaptureAddressCreateInfo::default()
        .opaque_capture_address(like.map_or(0, |like| like.buffer));
    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(HOST);
    let mut info = vk::BufferCreateInfo::default()
        .flags(buffer_flags(kind))
        .size(size)
        .usage(USAGE)
        .sharing_mode(vk::SharingMode::EXCLUSIVE)
        .push_next(&mut address);
    if kind == ReplayKind::Host {
        info = info.push_next(&mut external);
    }
    // SAFETY: the size is within the device's limit and not 0; what the flags ask for is enabled.
    let buffer =
        unsafe { device.raw.create_buffer(&info, None) }.during("vkCreateBuffer (replay)")?;
    let guard = Guard { device, buffer };
    let memory = match kind {
        ReplayKind::Whole => Some(allocate(heaps, buffer, size, like)?),
        ReplayKind::Pieces | ReplayKind::Host => None,
    };
    let mut replay = Replay {
        kind,
        size,
        buffer: 0,
        memory: 0,
    };
    let made = memory::placed(heaps, guard.take(), memory, size);
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
    // SAFETY: the buffer has the flag for it and, unless it is sparse, memory.
    replay.buffer = unsafe { device.raw.get_buffer_opaque_capture_address(&info) };
    if let Some(memory) = memory {
        let info = vk::DeviceMemoryOpaqueCaptureAddressInfo::default().memory(memory);
        // SAFETY: the memory was allocated with the flag for it.
        replay.memory = unsafe { device.raw.get_device_memory_opaque_capture_address(&info) };
    }
    Ok((made, replay))
}

/// Returns an allocation for a buffer, bound to it.
fn allocate(
    heaps: &Heaps,
    buffer: vk::Buffer,
    size: u64,
    like: Option<&Replay>,
) -> Result<vk::DeviceMemory> {
    let device = &heaps.device;
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { device.raw.get_buffer_memory_requirements(buffer) };
    let mut last = DeviceError::OutOfDeviceMemory { size };
    for index in heaps.types(Placement::Device) {
        if requirements.memory_type_bits & (1 << index) == 0 {
            continue;
        }
        let mut address = vk::MemoryOpaqueCaptureAddressAllocateInfo::default()
            .opaque_capture_address(like.map_or(0, |like| like.memory));
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(
            vk::MemoryAllocateFlags::DEVICE_ADDRESS
                | vk::MemoryAllocateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY,
        );
        let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(requirements.size)
            .memory_type_index(*index)
            .push_next(&mut address)
            .push_next(&mut flags)
            .push_next(&mut dedicated);
        // SAFETY: the size is within the device's limit and the type is allowed for the buffer.
        let memory = match unsafe { device.raw.allocate_memory(&info, None) } {
            Ok(memory) => memory,
            Err(error) => {
                last = device.failed("vkAllocateMemory (replay)", error);
                continue;
            }
        };
        // SAFETY: the memory was made for the buffer.
        if let Err(result) = unsafe { device.raw.bind_buffer_memory(buffer, memory, 0) } {
            // SAFETY: nothing is bound to the memory.
            unsafe { device.raw.free_memory(memory, None) };
            return Err(device.failed("vkBindBufferMemory (replay)", result));
        }
        return Ok(memory);
    }
    Err(last)
}

/// Implements [`crate::backend::Device::back`].
///
/// # Safety
/// As there.
pub unsafe fn back(
    heaps: &Arc<Heaps>,
    placed: &Arc<dyn Memory>,
    host: Option<NonNull<u8>>,
) -> Result<Arc<dyn Memory>> {
    let ours = VulkanMemory::of(&**placed)?;
    if !ours.is_addresses() {
        return Ok(placed.clone());
    }
    let device = &heaps.device;
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { device.raw.get_buffer_memory_requirements(ours.buffer) };
    let mut sparse = Sparse {
        buffer: ours.buffer,
        pieces: Vec::new(),
    };
    let result = match host {
        // SAFETY: the caller's promise is passed on.
        Some(host) => unsafe { bind_host(heaps, &mut sparse, requirements, host) },
        None => bind_own(heaps, &mut sparse, requirements),
    };
    match result {
        Ok(()) => Ok(Arc::new(memory::backed(
            ours,
            placed.clone(),
            sparse.pieces,
            host,
        ))),
        Err(error) => {
            if sparse.buffer == vk::Buffer::null() {
                // Still in use, for all that is known: it must not be destroyed.
                std::mem::forget(placed.clone());
            }
            for piece in sparse.pieces {
                // SAFETY: it was not bound: binding failed, or was not reached.
                unsafe { device.raw.free_memory(piece, None) };
            }
            Err(error)
        }
    }
}

/// Binds memory of the device to a sparse buffer.
fn bind_own(heaps: &Heaps, sparse: &mut Sparse, requirements: vk::MemoryRequirements) -> Result {
    let mut last = DeviceError::OutOfDeviceMemory {
        size: requirements.size,
    };
    for index in heaps.types(Placement::Device) {
        if requirements.memory_type_bits & (1 << index) == 0 {
            continue;
        }
        match sparse.fill(&heaps.queues, requirements, *index) {
            Err(error @ DeviceError::OutOfDeviceMemory { .. }) => {
                for piece in sparse.pieces.drain(..) {
                    // SAFETY: nothing was bound yet: binding comes after all pieces are there.
                    unsafe { heaps.device.raw.free_memory(piece, None) };
                }
                last = error;
            }
            other => return other,
        }
    }
    Err(last)
}

/// Binds memory of the host to a sparse buffer.
///
/// # Safety
/// The bytes from `host` on must be valid as long as the pieces live.
unsafe fn bind_host(
    heaps: &Heaps,
    sparse: &mut Sparse,
    requirements: vk::MemoryRequirements,
    host: NonNull<u8>,
) -> Result {
    let device = &heaps.device;
    let unit = requirements
        .alignment
        .max(device.adapter.caps.host_import_align)
        .max(1);
    let (first, size) = (host.as_ptr() as u64, requirements.size);
    let most = PIECE.min(device.adapter.max_allocation) / unit * unit;
    if most == 0 || !first.is_multiple_of(unit) || !size.is_multiple_of(unit) {
        return unsupported("sparse host memory of that alignment");
    }
    let mut binds = Vec::new();
    let mut done = 0;
    while done < size {
        let length = (size - done).min(most);
        // SAFETY: the caller vouches for the range, which is aligned.
        let piece =
            unsafe { host_memory(device, first + done, length, requirements.memory_type_bits) }?;
        sparse.pieces.push(piece);
        binds.push(vk::SparseMemoryBind {
            resource_offset: done,
            size: length,
            memory: piece,
            memory_offset: 0,
            flags: vk::SparseMemoryBindFlags::empty(),
        });
        done += length;
    }
    sparse.bind(&heaps.queues, &binds)
}

/// Implements [`crate::backend::Device::part`].
pub fn part(whole: &Arc<dyn Memory>, offset: u64, size: u64) -> Result<Arc<dyn Memory>> {
    let ours = VulkanMemory::of(&**whole)?;
    let held = Box::new(whole.clone());
    Ok(memory::part(ours, offset, size, held))
}

//! Memory at addresses that the host has too: what shared virtual memory is made of.
//!
//! - A software driver's device addresses are host pointers: any mapped memory will do.
//! - Elsewhere a *block* is allocated and asked for its device address, and the host's range of the same addresses is
//!   reserved. [`SharedKind::Fine`] blocks are then mapped there (VK_EXT_map_memory_placed); those of
//!   [`SharedKind::Coarse`] keep the reserved pages as the host's own copy. If the range is taken, another block is
//!   allocated while the first is held, so that the driver chooses another address.
//!
//! Blocks are dealt out in ranges, since a small buffer does not fill a page and drivers limit the number of their
//! allocations. A block lives as long as one of its ranges does.

use super::caps::ALIGNMENT;
use super::heap::Heaps;
use super::logical::LogicalDevice;
use super::memory::{self, VulkanMemory};
use crate::backend::{DeviceError, Memory, Placement, Result, SharedKind};
use crate::util::address::{Reservation, PAGE};
use crate::util::lock::{rank, Mutex};
use crate::util::ranges::Ranges;
use ash::vk;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Size of a block in bytes, at least. Coarse ones are large enough to get memory of their own from the allocator.
const FINE_BLOCK: u64 = 4 << 20;
const COARSE_BLOCK: u64 = 32 << 20;

/// Blocks are whole large pages of the host or the device.
const UNIT: u64 = 64 << 10;

/// How many addresses are tried.
const TRIES: usize = 16;

/// A block.
struct Block {
    memory: Arc<VulkanMemory>,
    kind: SharedKind,
    free: Mutex<Ranges, { rank::BLOCK_RANGES }>,
    /// The host's pages of a coarse block.
    _pages: Option<Reservation>,
}

/// Memory of a device that the host shares, dealt out in ranges of blocks.
pub struct SharedHeap {
    heaps: Arc<Heaps>,
    blocks: Mutex<Vec<Weak<Block>>, { rank::SHARED_BLOCKS }>,
}

/// A range of a block, which goes back when it is dropped.
struct Range {
    block: Arc<Block>,
    begin: u64,
    size: u64,
}

impl Drop for Range {
    fn drop(&mut self) {
        self.block.free.lock().give(self.begin, self.size);
    }
}

impl SharedHeap {
    /// Creates the allocator without blocks.
    pub fn new(heaps: &Arc<Heaps>) -> Self {
        Self {
            heaps: Arc::clone(heaps),
            blocks: Mutex::default(),
        }
    }

    /// Implements [`crate::backend::Device::allocate_shared`].
    pub fn allocate(&self, size: u64, align: u64, kind: SharedKind) -> Result<Arc<VulkanMemory>> {
        let heaps = &self.heaps;
        let device = &heaps.device;
        let align = align.max(ALIGNMENT);
        if device.adapter.host_addresses {
            return by_pointer(heaps, size, align);
        }
        if kind == SharedKind::Fine && device.map_memory2.is_none() {
            return Err(DeviceError::Unsupported(
                "memory mapped at its device address".to_owned(),
            ));
        }
        let size = size
            .checked_next_multiple_of(ALIGNMENT)
            .ok_or(DeviceError::OutOfHostMemory)?;
        let mut blocks = self.blocks.lock();
        blocks.retain(|block| block.strong_count() > 0);
        let known = blocks.iter().filter_map(Weak::upgrade);
        for block in known.filter(|block| block.kind == kind) {
            if let Some(part) = take(&block, size, align) {
                return Ok(part);
            }
        }
        // Blocks begin at pages; what asks for more gets room to move.
        let least = match kind {
            SharedKind::Fine => FINE_BLOCK,
            SharedKind::Coarse => COARSE_BLOCK,
        };
        let wanted = size
            .checked_add(align.saturating_sub(PAGE))
            .and_then(|size| size.max(least).checked_next_multiple_of(UNIT))
            .ok_or(DeviceError::OutOfHostMemory)?;
        let block = match new_block(heaps, wanted, kind) {
            // Where there is not enough for a block there may be for this one.
            Err(DeviceError::OutOfDeviceMemory { .. }) if wanted == least => {
                let bare = size.max(align).next_multiple_of(UNIT);
                new_block(heaps, bare, kind)?
            }
            other => other?,
        };
        let block = Arc::new(block);
        blocks.push(Arc::downgrade(&block));
        take(&block, size, align).ok_or(DeviceError::OutOfDeviceMemory { size })
    }
}

fn take(block: &Arc<Block>, size: u64, align: u64) -> Option<Arc<VulkanMemory>> {
    let at = block
        .free
        .lock()
        .take(block.memory.address(), size, align)?;
    let range = Range {
        block: block.clone(),
        begin: at,
        size,
    };
    Some(memory::part(&block.memory, at, size, Box::new(range)))
}

/// Returns where device addresses are host pointers.
fn by_pointer(heaps: &Arc<Heaps>, size: u64, align: u64) -> Result<Arc<VulkanMemory>> {
    let mut whole = memory::allocate(heaps, size, Placement::DeviceMapped)?;
    if !whole.address().is_multiple_of(align) {
        drop(whole);
        whole = memory::allocate(
            heaps,
            size.saturating_add(align - 1),
            Placement::DeviceMapped,
        )?;
    }
    let address = whole.address();
    if whole.mapped().map(|pointer| pointer.as_ptr() as u64) != Some(address) {
        return Err(DeviceError::Unsupported(
            "device addresses that are host pointers".to_owned(),
        ));
    }
    let at = address.next_multiple_of(align) - address;
    Ok(memory::part(&whole, at, size, Box::new(whole.clone())))
}

fn new_block(heaps: &Arc<Heaps>, size: u64, kind: SharedKind) -> Result<Block> {
    // Held until one fits: an address is not given out twice.
    let mut rejected: Vec<VulkanMemory> = Vec::new();
    let mut rejected_shared: Vec<Arc<VulkanMemory>> = Vec::new();
    for _ in 0..TRIES {
        let (memory, pages) = match kind {
            SharedKind::Fine => {
                let align = heaps.device.adapter.placed_map_align.max(PAGE);
                let memory = memory::allocate_unmapped(heaps, size.next_multiple_of(align))?;
                let pages = Reservation::at(memory.address(), memory.size());
                let Some(pages) = pages.filter(|_| memory.address().is_multiple_of(align)) else {
                    rejected.push(memory);
                    continue;
                };
                let mapped = memory.map_with(|raw| map_at(&heaps.device, raw, pages))?;
                (Arc::new(mapped), None)
            }
            SharedKind::Coarse => {
                let memory = memory::allocate(heaps, size, Placement::Device)?;
                let Some(pages) = Reservation::at(memory.address(), size) else {
                    rejected_shared.push(memory);
                    continue;
                };
                (memory, Some(pages))
            }
        };
        let size = memory.size();
        return Ok(Block {
            memory,
            kind,
            free: Mutex::new(Ranges::whole(size)),
            _pages: pages,
        });
    }
    Err(DeviceError::Unsupported(
        "device addresses that are free on the host".to_owned(),
    ))
}

/// Maps memory over reserved pages, which the driver unmaps with the memory.
fn map_at(
    device: &LogicalDevice,
    memory: vk::DeviceMemory,
    pages: Reservation,
) -> Result<NonNull<u8>> {
    let unsupported = || DeviceError::Unsupported("VK_KHR_map_memory2".to_owned());
    let table = device.map_memory2.as_ref().ok_or_else(unsupported)?;
    let pointer = pages.pointer().ok_or_else(unsupported)?;
    let mut placed = vk::MemoryMapPlacedInfoEXT::default().placed_address(pointer.as_ptr().cast());
    let info = vk::MemoryMapInfoKHR::default()
        .flags(vk::MemoryMapFlags::PLACED_EXT)
        .memory(memory)
        .offset(0)
        .size(vk::WHOLE_SIZE)
        .push_next(&mut placed);
    let mut mapped = std::ptr::null_mut();
    // SAFETY: the memory is host-visible, whole and not mapped; its size and the address are multiples of what the
    // device asks for; the range is reserved, so nothing else is replaced.
    unsafe { (table.fp().map_memory2_khr)(device.raw.handle(), &info, &mut mapped) }
        .result()
        .map_err(|result| device.failed("vkMapMemory2KHR", result))?;
    pages.hand_over();
    NonNull::new(mapped.cast())
        .filter(|mapped| *mapped == pointer)
        .ok_or(DeviceError::Driver {
            call: "vkMapMemory2KHR",
            code: "mapped elsewhere".to_owned(),
        })
}

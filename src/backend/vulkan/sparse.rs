//! Memory above the limit of one vkAllocateMemory: several pieces behind one sparse buffer, and so one address.
//!
//! Used for device memory alone: pieces cannot be mapped side by side.

use super::device::{failed, Shared};
use crate::backend::{DeviceError, Result};
use ash::vk;

/// Bytes of a piece, where the device allows that much.
const PIECE: u64 = 1 << 30;

/// How long binding may take.
const PATIENCE_NS: u64 = 30_000_000_000;

/// A sparse buffer and its memory.
pub struct Sparse {
    /// The buffer.
    pub buffer: vk::Buffer,
    /// The memory bound to it.
    pub pieces: Vec<vk::DeviceMemory>,
}

impl Sparse {
    /// Frees all. Also for buffers that were not bound completely.
    ///
    /// # Safety
    /// No pending work may use the buffer; only to be called once.
    pub unsafe fn destroy(&mut self, raw: &ash::Device) {
        // SAFETY: as promised by the caller; the buffer goes before the memory bound to it.
        unsafe {
            raw.destroy_buffer(self.buffer, None);
            for piece in self.pieces.drain(..) {
                raw.free_memory(piece, None);
            }
        }
    }
}

/// Allocates `size` bytes from the first of the memory types that has them.
pub fn allocate(
    shared: &Shared,
    size: u64,
    types: &[u32],
    usage: vk::BufferUsageFlags,
) -> Result<Sparse> {
    let info = vk::BufferCreateInfo::default()
        .flags(vk::BufferCreateFlags::SPARSE_BINDING)
        .size(size.next_multiple_of(16))
        .usage(usage)
        .sharing_mode(vk::SharingMode::EXCLUSIVE);
    // SAFETY: sparseBinding is enabled; the size is within the device's limit for buffers.
    let buffer = unsafe { shared.raw.create_buffer(&info, None) }
        .map_err(|result| failed(shared, "vkCreateBuffer", result))?;
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { shared.raw.get_buffer_memory_requirements(buffer) };
    let mut made = Sparse {
        buffer,
        pieces: Vec::new(),
    };
    for index in types {
        if requirements.memory_type_bits & (1 << index) == 0 {
            continue;
        }
        match made.fill(shared, requirements, *index) {
            Ok(()) => return Ok(made),
            Err(DeviceError::OutOfDeviceMemory { .. }) => {
                for piece in made.pieces.drain(..) {
                    // SAFETY: nothing was bound yet: binding comes after all pieces are there.
                    unsafe { shared.raw.free_memory(piece, None) };
                }
            }
            Err(error) => {
                // SAFETY: no work was submitted that uses the buffer, and binding has failed.
                unsafe { made.destroy(&shared.raw) };
                return Err(error);
            }
        }
    }
    // SAFETY: nothing is bound to the buffer and no work uses it.
    unsafe { made.destroy(&shared.raw) };
    Err(DeviceError::OutOfDeviceMemory { size })
}

impl Sparse {
    /// Allocates the pieces and binds them.
    pub(super) fn fill(
        &mut self,
        shared: &Shared,
        requirements: vk::MemoryRequirements,
        index: u32,
    ) -> Result {
        let unit = requirements.alignment.max(1);
        let most = PIECE.min(shared.adapter.max_allocation) / unit * unit;
        if most == 0 {
            return Err(DeviceError::Unsupported(
                "sparse memory of that alignment".to_owned(),
            ));
        }
        let mut binds = Vec::new();
        let mut done = 0;
        while done < requirements.size {
            let size = (requirements.size - done).min(most);
            let mut flags = vk::MemoryAllocateFlagsInfo::default()
                .flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(size)
                .memory_type_index(index)
                .push_next(&mut flags);
            // SAFETY: the size is within the device's limit and the type is allowed for the buffer.
            let piece = unsafe { shared.raw.allocate_memory(&info, None) }
                .map_err(|result| failed(shared, "vkAllocateMemory", result))?;
            self.pieces.push(piece);
            binds.push(vk::SparseMemoryBind {
                resource_offset: done,
                size,
                memory: piece,
                memory_offset: 0,
                flags: vk::SparseMemoryBindFlags::empty(),
            });
            done += size;
        }
        self.bind(shared, &binds)
    }

    /// Binds pieces that `self` has, or that the caller keeps as long as the buffer is used.
    pub(super) fn bind(&mut self, shared: &Shared, binds: &[vk::SparseMemoryBind]) -> Result {
        // SAFETY: the device lives.
        let fence = unsafe {
            shared
                .raw
                .create_fence(&vk::FenceCreateInfo::default(), None)
        }
        .map_err(|result| failed(shared, "vkCreateFence", result))?;
        let buffers = [vk::SparseBufferMemoryBindInfo::default()
            .buffer(self.buffer)
            .binds(binds)];
        let info = [vk::BindSparseInfo::default().buffer_binds(&buffers)];
        let queue = shared
            .queues
            .get(shared.pick_queue(0))
            .ok_or(DeviceError::Lost)?;
        let submitted = {
            let queue = queue.raw.lock();
            // SAFETY: the lock keeps other threads off the queue, whose family can bind; all handles live.
            unsafe { shared.raw.queue_bind_sparse(*queue, &info, fence) }
        };
        // SAFETY: the fence was submitted above.
        let result = submitted
            .and_then(|()| unsafe { shared.raw.wait_for_fences(&[fence], true, PATIENCE_NS) });
        if result == Err(vk::Result::TIMEOUT) {
            // Fence, buffer and memory are still in use: losing them is all that is safe.
            self.pieces.clear();
            self.buffer = vk::Buffer::null();
            return Err(DeviceError::Driver {
                call: "vkQueueBindSparse",
                code: "no end".to_owned(),
            });
        }
        // SAFETY: the fence is not pending: it was signalled, or its submission failed.
        unsafe { shared.raw.destroy_fence(fence, None) };
        result.map_err(|result| failed(shared, "vkQueueBindSparse", result))
    }
}

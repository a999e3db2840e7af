//! Memory above the limit of one vkAllocateMemory: several pieces behind one sparse buffer, and so one address.
//!
//! Used for device memory alone: pieces cannot be mapped side by side.

use super::queue::Queues;
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
    queues: &Queues,
    size: u64,
    types: &[u32],
    usage: vk::BufferUsageFlags,
) -> Result<Sparse> {
    let device = &queues.device;
    let info = vk::BufferCreateInfo::default()
        .flags(vk::BufferCreateFlags::SPARSE_BINDING)
        .size(size.next_multiple_of(16))
        .usage(usage)
        .sharing_mode(vk::SharingMode::EXCLUSIVE);
    // SAFETY: sparseBinding is enabled; the size is within the device's limit for buffers.
    let buffer = unsafe { device.raw.create_buffer(&info, None) }
        .map_err(|result| device.failed("vkCreateBuffer", result))?;
    // SAFETY: the buffer belongs to the device.
    let requirements = unsafe { device.raw.get_buffer_memory_requirements(buffer) };
    let mut made = Sparse {
        buffer,
        pieces: Vec::new(),
    };
    for index in types {
        if requirements.memory_type_bits & (1 << index) == 0 {
            continue;
        }
        match made.fill(queues, requirements, *index) {
            Ok(()) => return Ok(made),
            Err(DeviceError::OutOfDeviceMemory { .. }) => {
                for piece in made.pieces.drain(..) {
                    // SAFETY: nothing was bound yet: binding comes after all pieces are there.
                    unsafe { device.raw.free_memory(piece, None) };
                }
            }
            Err(error) => {
                // SAFETY: no work was submitted that uses the buffer, and binding has failed.
                unsafe { made.destroy(&device.raw) };
                return Err(error);
            }
        }
    }
    // SAFETY: nothing is bound to the buffer and no work uses it.
    unsafe { made.destroy(&device.raw) };
    Err(DeviceError::OutOfDeviceMemory { size })
}

impl Sparse {
    /// Allocates the pieces and binds them.
    pub fn fill(
        &mut self,
        queues: &Queues,
        requirements: vk::MemoryRequirements,
        index: u32,
    ) -> Result {
        let device = &queues.device;
        let unit = requirements.alignment.max(1);
        let most = PIECE.min(device.adapter.max_allocation) / unit * unit;
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
            let piece = unsafe { device.raw.allocate_memory(&info, None) }
                .map_err(|result| device.failed("vkAllocateMemory", result))?;
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
        self.bind(queues, &binds)
    }

    /// Binds pieces that `self` has, or that the caller keeps as long as the buffer is used.
    pub fn bind(&mut self, queues: &Queues, binds: &[vk::SparseMemoryBind]) -> Result {
        let device = &queues.device;
        // SAFETY: the device lives.
        let fence = unsafe {
            device
                .raw
                .create_fence(&vk::FenceCreateInfo::default(), None)
        }
        .map_err(|result| device.failed("vkCreateFence", result))?;
        let buffers = [vk::SparseBufferMemoryBindInfo::default()
            .buffer(self.buffer)
            .binds(binds)];
        let info = [vk::BindSparseInfo::default().buffer_binds(&buffers)];
        // SAFETY: the fence is new; buffer and memory are kept until it is signalled, or lost below.
        let submitted = unsafe { queues.bind_sparse(&info, fence) };
        // SAFETY: the fence was submitted above.
        let result = submitted
            .and_then(|()| unsafe { device.raw.wait_for_fences(&[fence], true, PATIENCE_NS) });
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
        unsafe { device.raw.destroy_fence(fence, None) };
        result.map_err(|result| device.failed("vkQueueBindSparse", result))
    }
}

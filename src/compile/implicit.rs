//! The implicit arguments of one dispatch, in its push constants.

use spirv_lowering::interface::{Implicit, KernelInterface};

/// The values of a dispatch.
#[derive(Default)]
pub struct ImplicitValues {
    /// The device address of the arguments, where they lie in a buffer. This and the other
    /// addresses are 0 if there is none.
    pub arguments: u64,
    /// Device address of the program-scope variables.
    pub globals: u64,
    /// Device address of the printf buffer.
    pub printf: u64,
    /// The device address of the state for kernels that enqueue.
    pub enqueue: u64,
    /// The value of get_work_dim.
    pub dims: u32,
    /// The value of get_global_offset.
    pub offset: [u64; 3],
    /// The value of get_global_size.
    pub global: [u64; 3],
    /// The value of get_enqueued_local_size.
    pub local: [u32; 3],
    /// The lower halves of get_num_groups.
    pub groups: [u32; 3],
    /// The first work-group of this dispatch, in groups of the whole launch.
    pub first_group: [u64; 3],
}

impl ImplicitValues {
    /// Writes the values that the kernel reads to its push constants.
    pub fn write(&self, interface: &KernelInterface, push: &mut [u8]) {
        for (implicit, offset) in &interface.implicit {
            let at = *offset as usize;
            match implicit {
                Implicit::ArgBuffer => put(push, at, &self.arguments.to_le_bytes()),
                Implicit::ProgramGlobals => put(push, at, &self.globals.to_le_bytes()),
                Implicit::PrintfBuffer => put(push, at, &self.printf.to_le_bytes()),
                Implicit::EnqueueState => put(push, at, &self.enqueue.to_le_bytes()),
                Implicit::GlobalOffset => put3(push, at, low(self.offset)),
                Implicit::GlobalSize => put3(push, at, low(self.global)),
                Implicit::NumGroups => put3(push, at, self.groups),
                Implicit::EnqueuedLocalSize => put3(push, at, self.local),
                Implicit::GroupOffset => put3(push, at, low(self.first_group)),
                Implicit::GlobalOffsetHigh => put3(push, at, high(self.offset)),
                Implicit::GlobalSizeHigh => put3(push, at, high(self.global)),
                Implicit::GroupOffsetHigh => put3(push, at, high(self.first_group)),
                Implicit::GlobalBase => {
                    let mut first = low(self.offset);
                    let groups = low(self.first_group).into_iter().zip(self.local);
                    for (item, (group, local)) in first.iter_mut().zip(groups) {
                        *item = item.wrapping_add(group.wrapping_mul(local));
                    }
                    put3(push, at, first);
                }
                Implicit::GlobalEnd => {
                    let mut end = low(self.offset);
                    for (end, size) in end.iter_mut().zip(low(self.global)) {
                        // Both together are at most u32::MAX in launches of kernels that ask for it.
                        *end = end.wrapping_add(size);
                    }
                    put3(push, at, end);
                }
                Implicit::WorkDim => put(push, at, &self.dims.to_le_bytes()),
            }
        }
    }
}

fn low(values: [u64; 3]) -> [u32; 3] {
    values.map(|value| value as u32)
}

fn high(values: [u64; 3]) -> [u32; 3] {
    values.map(|value| (value >> 32) as u32)
}

fn put(block: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = block.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn put3(block: &mut [u8], at: usize, values: [u32; 3]) {
    for (axis, value) in values.iter().enumerate() {
        put(block, at + 4 * axis, &value.to_le_bytes());
    }
}

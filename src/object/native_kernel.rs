//! A native kernel that was enqueued: the function, a copy of its arguments, and the buffers whose addresses go into them.

use super::callback::{Callback, NativeFn};
use super::mem::Mem;
use super::memories::MemoryIndex;
use crate::backend::{Call, Slice, Use};
use crate::error::ClResult;
use crate::handle::Ref;
use parking_lot::Mutex;

/// See the module.
pub struct NativeKernel {
    function: Callback<NativeFn>,
    /// In words, so that they are aligned for whatever they are.
    args: Mutex<Vec<u128>>,
    /// The buffers whose addresses are in the arguments.
    pub buffers: Vec<Ref<Mem>>,
    /// The memory that they use.
    pub uses: Vec<Use>,
}

impl NativeKernel {
    /// Writes the addresses of buffers in a memory of their context into the arguments; each offset
    /// and a pointer's size fit.
    pub fn new(
        function: Callback<NativeFn>,
        mut args: Vec<u8>,
        buffers: Vec<(Ref<Mem>, usize)>,
        memory: MemoryIndex,
    ) -> ClResult<Self> {
        let mut uses = Vec::with_capacity(buffers.len());
        for (mem, offset) in &buffers {
            let slice: Slice = mem.slice(memory, 0, mem.size as u64)?;
            let address = slice.memory.address().wrapping_add(slice.offset);
            let bytes = (address as usize).to_ne_bytes();
            if let Some(place) = args.get_mut(*offset..*offset + bytes.len()) {
                place.copy_from_slice(&bytes);
            }
            uses.push(Use { slice, write: true });
        }
        let words = args.chunks(16).map(|bytes| {
            let mut word = [0; 16];
            word[..bytes.len()].copy_from_slice(bytes);
            u128::from_ne_bytes(word)
        });
        Ok(Self {
            function,
            args: Mutex::new(words.collect()),
            buffers: buffers.into_iter().map(|(mem, _)| mem).collect(),
            uses,
        })
    }
}

impl Call for NativeKernel {
    fn call(&self) {
        let mut args = std::mem::take(&mut *self.args.lock());
        self.function.call(&mut args);
    }
}

//! Memory of the host that a device copies to or from, outside any queue, and what is done with it.

use super::spare_stream::SpareStream;
use super::{
    BufferCopy, Device, DeviceError, Memory, Op, OrderRule, Placement, Result, Slice, Stream,
};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes that are copied at a time.
pub const CHUNK: u64 = 32 << 20;

/// Memory of the host that a device copies to or from, with a stream for that.
pub struct Staging<'a> {
    /// The memory, as the device sees it.
    pub memory: Arc<dyn Memory>,
    /// Where the host has it.
    pub pointer: NonNull<u8>,
    /// A stream that nobody else uses.
    pub stream: SpareStream<'a>,
}

impl<'a> Staging<'a> {
    /// Creates staging memory of `size` bytes.
    pub fn new(device: &'a dyn Device, size: u64, placement: Placement) -> Result<Self> {
        let memory = device.allocate(size, placement)?;
        let Some(pointer) = memory.mapped() else {
            let what = "staging memory that is not mapped";
            return Err(DeviceError::Unsupported(what.to_owned()));
        };
        let stream = SpareStream::new(device)?;
        Ok(Self {
            memory,
            pointer,
            stream,
        })
    }

    /// Returns the first bytes of the buffer.
    pub fn slice(&self, size: u64) -> Slice {
        Slice::new(self.memory.clone(), 0, size)
    }
}

/// Copies between memories of a device and waits.
pub fn copy(stream: &mut dyn Stream, src: &Slice, dst: &Slice, size: u64) -> Result<()> {
    stream.record(
        Op::Copy {
            src,
            dst,
            region: BufferCopy::linear(0, 0, size),
        },
        OrderRule::InOrder,
        false,
    )?;
    let value = stream.submit(false)?;
    stream.timeline().clone().wait(value, None)?;
    stream.reclaim();
    Ok(())
}

/// Returns the first bytes of a device's memory, at most [`CHUNK`], which no command may use
/// meanwhile.
pub fn download(device: &dyn Device, memory: &Arc<dyn Memory>, size: u64) -> Result<Vec<u8>> {
    // SAFETY: the memory has that size (the caller checked) and nothing writes to it now.
    let bytes = |pointer: NonNull<u8>| unsafe {
        std::slice::from_raw_parts(pointer.as_ptr(), size as usize).to_vec()
    };
    if let Some(pointer) = memory.mapped() {
        return Ok(bytes(pointer));
    }
    let mut staging = Staging::new(device, size, Placement::HostRead)?;
    let src = Slice::new(memory.clone(), 0, size);
    let dst = staging.slice(size);
    copy(&mut *staging.stream, &src, &dst, size)?;
    let read = bytes(staging.pointer);
    staging.stream.give_back();
    Ok(read)
}

/// Copies bytes into memory of a device that no command uses meanwhile, and that has the range.
pub fn upload(
    device: &dyn Device,
    memory: &Arc<dyn Memory>,
    offset: u64,
    bytes: &[u8],
) -> Result<()> {
    let size = bytes.len() as u64;
    if let Some(pointer) = memory.mapped() {
        // SAFETY: the range lies within the memory (the caller checked sizes); nothing else uses it now.
        unsafe {
            std::ptr::copy(
                bytes.as_ptr(),
                pointer.as_ptr().add(offset as usize),
                bytes.len(),
            )
        };
        return Ok(());
    }
    let mut staging = Staging::new(device, CHUNK.min(size), Placement::HostWrite)?;
    let mut at = 0;
    for part in bytes.chunks(CHUNK as usize) {
        // SAFETY: staging has room for a part; the copy out of it before has completed.
        unsafe {
            std::ptr::copy_nonoverlapping(part.as_ptr(), staging.pointer.as_ptr(), part.len())
        };
        let size = part.len() as u64;
        let dst = Slice::new(memory.clone(), offset + at, size);
        let src = staging.slice(size);
        copy(&mut *staging.stream, &src, &dst, size)?;
        at += size;
    }
    staging.stream.give_back();
    Ok(())
}

//! Buffers that launches print to: memory that the host reads where the kernel wrote it, so that a launch costs what it prints
//! and not what it might.
//!
//! A launch has a buffer of its own until the host executor has printed its records; then the next one takes it. While many are
//! in use, the next launch that prints is pending.

use crate::backend::{self, Memory, Placement, Slice};
use crate::cl;
use crate::compile::printf::{self, Output};
use crate::error::{ClResult, OrErr};
use parking_lot::Mutex;
use spirv_lowering::ir::module::PrintfSite;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// Buffers in use at most.
const MANY: usize = 32;
/// Bytes of the buffers in use, from which on there are no more of them.
const MOST_BYTES: usize = 64 << 20;
/// Free ones that are kept.
const KEEP: usize = 4;
/// The buffers of a queue.
pub struct PrintBuffers {
    /// The destination of what they hold.
    output: Arc<Output>,
    free: Mutex<Vec<Arc<dyn Memory>>>,
    out: AtomicUsize,
}

/// The buffer of a launch. Goes back when dropped, unless the launch may still be writing to it.
pub struct PrintBuffer {
    memory: Arc<dyn Memory>,
    /// The messages that the launch may print.
    sites: Arc<Vec<PrintfSite>>,
    over: AtomicBool,
    pool: Arc<PrintBuffers>,
}

impl PrintBuffers {
    /// Creates an empty list of buffers for an output.
    pub fn new(output: &Arc<Output>) -> Arc<Self> {
        Arc::new(Self {
            output: output.clone(),
            free: Mutex::default(),
            out: AtomicUsize::new(0),
        })
    }

    /// Returns true if as many are in use as may be.
    pub fn many(&self) -> bool {
        let out = self.out.load(Ordering::Relaxed);
        out >= MANY || out * self.output.buffer_size() as usize >= MOST_BYTES
    }

    /// Returns a buffer with an empty list of records.
    pub fn take(
        self: &Arc<Self>,
        device: &dyn backend::Device,
        sites: &Arc<Vec<PrintfSite>>,
    ) -> ClResult<PrintBuffer> {
        let free = self.free.lock().pop();
        let memory = match free {
            Some(memory) => memory,
            None => device.allocate(self.output.buffer_size().into(), Placement::HostRead)?,
        };
        self.out.fetch_add(1, Ordering::Relaxed);
        let buffer = PrintBuffer {
            memory,
            sites: sites.clone(),
            over: AtomicBool::new(false),
            pool: self.clone(),
        };
        let pointer = (buffer.memory.mapped())
            .or_err(cl::CL_OUT_OF_RESOURCES, "printf's memory is not mapped")?;
        let header = printf::header(self.output.buffer_size());
        // SAFETY: the buffer is larger, and no launch uses it.
        unsafe { std::ptr::copy_nonoverlapping(header.as_ptr(), pointer.as_ptr().cast(), 8) };
        Ok(buffer)
    }
}

impl PrintBuffer {
    /// Returns the memory as a slice for operations.
    pub fn slice(&self) -> Slice {
        Slice::new(self.memory.clone(), 0, self.memory.size())
    }

    /// Returns the device address.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Prints what the launch has left. The launch must have completed.
    pub fn print(&self) {
        self.over.store(true, Ordering::Relaxed);
        let Some(pointer) = self.memory.mapped() else {
            return;
        };
        let size = self.pool.output.buffer_size() as usize;
        // SAFETY: mapped memory of that size, to which no kernel writes any more.
        let bytes = unsafe { std::slice::from_raw_parts(pointer.as_ptr() as *const u8, size) };
        self.pool.output.print(&self.sites, bytes);
    }
}

impl Drop for PrintBuffer {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock();
        if self.over.load(Ordering::Relaxed) && free.len() < KEEP {
            free.push(self.memory.clone());
        }
        drop(free);
        self.pool.out.fetch_sub(1, Ordering::Relaxed);
    }
}

//! The CPU back end: kernels run on the processors of the host, in the host's memory. It needs no driver at all.
//!
//! ```text
//! device -> code     objects of a kernel (compiled when first launched), loaded by `loader`
//!        |- memory   the host's own; image, format, texel, raw: images in software
//!        '- stream   -> track: batches in order -> launch -> pool: threads
//! ```
//! `check` interprets kernels instead, where `PUMICE_CHECK` asks for it.
//! `abi` is what generated code and runtime pass to one another; `symbols` all that such code may call.

mod abi;
mod check;
mod code;
mod copy;
mod device;
#[cfg(target_os = "linux")]
mod dma_buf;
mod format;
mod half;
mod image;
mod launch;
mod loader;
mod machine;
mod memory;
#[cfg(all(test, feature = "loom"))]
mod models;
mod pool;
mod raw;
mod scratch;
mod step;
mod stream;
mod symbols;
mod texel;
mod texel_copy;
mod timeline;
mod track;

use std::sync::Arc;

/// Returns the processor.
pub fn device() -> Arc<dyn super::Device> {
    Arc::new(device::CpuDevice::new(&machine::Machine::here()))
}

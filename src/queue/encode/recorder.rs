//! Where launches are recorded: in the open batch of a queue, or on the stream of a launch tree.

use crate::backend::Op;
use crate::error::ClResult;
use crate::queue::host::print_buffers::PrintBuffer;
use crate::queue::transfer::staging::Piece;
use spirv_lowering::ir::module::PrintfSite;
use std::sync::Arc;

/// Where launches are recorded.
pub(in crate::queue) trait Recorder {
    /// Allocates mapped memory for this launch alone.
    fn room(&mut self, size: u64) -> ClResult<Piece>;
    /// Returns a buffer for the kernel's printf output.
    fn print_buffer(&mut self, sites: &Arc<Vec<PrintfSite>>) -> ClResult<PrintBuffer>;
    /// Places a barrier between earlier commands and later ones, if only the launch itself requires
    /// it.
    fn barrier(&mut self) -> ClResult;
    /// Records an operation. Where it is `timed`, its times count among those of the launch.
    fn record(&mut self, op: Op<'_>, timed: bool) -> ClResult;
}

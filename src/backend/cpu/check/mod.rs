//! `PUMICE_CHECK`: kernels are interpreted (`spirv_lowering::interp`), and what they do wrong is said on standard error.
//!
//! ```text
//! kernel         a launch, interpreted as it would be dispatched
//! |- source      pieces of real memory, brought when they are accessed, and put back afterwards
//! |  '- allocations   what memory there is, and what of it a launch was given
//! |- images      texels, read and written where they are
//! '- report      a finding in words
//! ```
//! Every allocation gets pages of its own with room to both sides that nothing may access, so that what lies beyond it is
//! nobody's. Without `PUMICE_CHECK` none of this happens.

pub mod allocations;
mod images;
mod kernel;
mod report;
mod source;

pub use kernel::{CheckedKernel, LaunchArgs};

/// Bytes to both sides of memory that nothing may access.
pub const ROOM: usize = 16 << 20;

/// Returns true if kernels are checked in this process.
pub fn on() -> bool {
    crate::util::config::get().check.any()
}

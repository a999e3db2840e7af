//! The runtime of Pumice: OpenCL objects on devices. It has no C entry points; the crate `icd` has them.
//!
//! ```text
//! icd entry -> object (resolve, check) -> command (snapshot) -> queue (order) -> backend (record, submit) -> device
//! ```
//!
//! Each module may import those after it:
//!
//! ```text
//! command_buffer -> queue -> command -> object -> features -> {compile, handle} -> error -> backend -> quirks -> {cl, util}
//! ```
//!
//! `ci/layering` checks that, and docs/architecture.md follows a launch and a source through the files.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod backend;
pub mod cl;
pub mod command;
pub mod command_buffer;
pub mod compile;
pub mod error;
pub mod features;
pub mod handle;
#[cfg(test)]
#[path = "../tests/src/left_out.rs"]
mod left_out;
pub mod object;
pub mod queue;
pub mod quirks;
pub mod util;

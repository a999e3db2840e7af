//! The runtime of Pumice: OpenCL objects on top of a device back end. No C entry points here (see the `icd` crate).
//!
//! ```text
//! icd entry -> object (resolve, check) -> command (snapshot) -> queue (order) -> backend (record, submit) -> VkQueue
//! ```
//!
//! Imports go one way: `queue -> command -> object -> {compile, handle} -> error -> backend -> {cl, util}`.
//! `ci/layering` checks it.

pub mod backend;
pub mod cl;
pub mod command;
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

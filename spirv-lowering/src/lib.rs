//! OpenCL SPIR-V to Vulkan SPIR-V.
//!
//! ```text
//! words -> read -> KIR (ir) -> passes (pipeline) -> structured KIR -> emit::vulkan -> words + KernelInterface
//! ```
//!
//! The crate knows nothing of Vulkan handles, OpenCL objects or the environment: it takes SPIR-V words and a
//! [`target::Target`] (what the device can do) and returns words and an [`interface::KernelInterface`] (what the
//! runtime must supply at dispatch). It never panics on malformed input: see [`error::LowerError`].
//!
//! `ir` depends on nothing else in the crate; `analysis` on `ir`; `edit`, the tools of passes, on both; `read`, `passes` and
//! `emit` on those, never on each other; `pipeline` joins them. `interp` runs KIR, to prove passes.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod device_queue;
pub mod edit;
pub mod emit;
pub mod encode;
pub mod error;
pub mod fused;
pub mod insts;
pub mod interface;
pub mod interp;
pub mod ir;
pub mod library;
pub mod link;
pub mod native;
pub mod options;
pub mod passes;
pub mod pipe;
pub mod pipeline;
pub mod printf;
pub mod program;
pub mod read;
pub mod target;
pub mod testing;

pub use library::BuiltinLibrary;
pub use options::Options;
pub use pipeline::Lowered;
pub use program::{KernelInfo, LinkOptions, Program, ReadOptions, SpecConstant};

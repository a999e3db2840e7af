//! Bodies of the entry points, one file per chapter of the specification: the checks on pointers, and a call.

pub mod buffer;
pub mod command_buffer;
pub mod context;
pub mod device;
pub mod enqueue;
pub mod event;
pub mod ext;
pub mod gl;
pub mod image;
pub mod kernel;
pub mod platform;
pub mod program;
pub mod queue;
pub mod sampler;
pub mod semaphore;
pub mod svm;
pub mod unified_svm;
pub mod usm;

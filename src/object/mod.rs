//! The OpenCL objects: passive state, one object a file. Constructors and operations make the specification's checks on
//! values; the checks on pointers are the C edge's.

mod addresses;
pub mod callback;
pub mod context;
mod context_properties;
pub mod device;
pub mod device_queue;
pub mod device_side;
pub mod event;
mod external_handles;
pub mod gl;
pub mod grid;
pub mod info;
pub mod kernel;
pub mod late_release;
pub mod launch;
pub mod mem;
pub mod memories;
pub mod native_kernel;
mod partition;
pub mod platform;
pub mod program;
pub mod progress;
pub mod properties;
pub mod queries;
pub mod sampler;
pub mod semaphore;
mod sharing;
pub mod svm;
pub mod svm_types;
pub mod unified_svm;
pub mod usm;

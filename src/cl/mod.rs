//! The C vocabulary: types and constants of the OpenCL headers. Nothing here has behaviour.

pub use opencl_sys::cl_icd::cl_icd_dispatch;
pub use opencl_sys::*;

//! The C vocabulary: types and constants of the OpenCL headers. Nothing here has behaviour.

pub use opencl_sys::cl_egl::*;
pub use opencl_sys::cl_icd::cl_icd_dispatch;
pub use opencl_sys::*;

/// Not as in `opencl_sys`, which has 0x1287.
pub const CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR: cl_command_buffer_properties_khr = 0x12B7;

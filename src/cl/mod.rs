//! The C vocabulary: types and constants of the OpenCL headers. Nothing here has behaviour.

pub use opencl_sys::cl_egl::*;
pub use opencl_sys::cl_icd::cl_icd_dispatch;
pub use opencl_sys::*;

/// CL_DEPTH_STENCIL of cl_khr_gl_depth_images.
pub const CL_DEPTH_STENCIL: cl_channel_order = 0x10BE;

/// CL_UNORM_INT24 of cl_khr_gl_depth_images.
pub const CL_UNORM_INT24: cl_channel_type = 0x10DF;

/// Not as in `opencl_sys`, which has 0x1287.
pub const CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR: cl_command_buffer_properties_khr = 0x12B7;

/// A query of cl_ext_float_atomics.
pub const CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT: cl_device_info = 0x4231;
/// A query of cl_ext_float_atomics.
pub const CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT: cl_device_info = 0x4232;
/// A query of cl_ext_float_atomics.
pub const CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT: cl_device_info = 0x4233;

/// A capability of cl_khr_terminate_context.
pub const CL_DEVICE_TERMINATE_CAPABILITY_CONTEXT_KHR: cl_bitfield = 1;

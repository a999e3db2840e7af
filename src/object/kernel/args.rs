//! The setting of a kernel's arguments (OpenCL API specification, "Setting Kernel Arguments").
//!
//! Memory arguments are held weakly: setting an argument does not retain the memory object.

use super::{Kernel, OnDevice};
use crate::cl::{self, cl_uint};
use crate::error::{err, ClError, ClResult};
use crate::handle::{self, Object};
use crate::object::device_queue::DeviceQueue;
use crate::object::mem::Mem;
use crate::object::sampler::Sampler;
use smallvec::SmallVec;
use spirv_lowering::interface::{AccessQualifier, ArgKind, ImageArg, LOCAL_ARG_ALIGN};
use std::ffi::c_void;
use std::sync::{Arc, Weak};

/// Bytes a handle argument (`cl_mem`, `cl_sampler`) takes in clSetKernelArg.
const HANDLE_SIZE: usize = size_of::<*mut c_void>();

/// The value of an argument.
#[derive(Clone)]
pub(super) enum Value {
    /// Scalars, vectors, structures.
    Bytes(SmallVec<[u8; 32]>),
    /// A buffer or a pipe; None: a null pointer.
    Buffer(Option<Weak<Object<Mem>>>),
    /// An address, and the memory object that it lies in, if any.
    Pointer {
        address: u64,
        mem: Option<Weak<Object<Mem>>>,
    },
    /// Bytes of local memory.
    Local(u32),
    /// An image.
    Image(Weak<Object<Mem>>),
    /// The property word of a sampler.
    Sampler(u32),
    /// A device queue.
    Queue(Weak<Object<DeviceQueue>>),
}

impl Kernel {
    /// Implements clSetKernelArg. `value` is what `arg_value` points to, None for a null pointer;
    /// its length is `size` except for local arguments.
    pub fn set_arg(&self, index: cl_uint, size: usize, value: Option<&[u8]>) -> ClResult {
        let args = &self.first()?.args;
        let Some(arg) = args.get(index as usize) else {
            let what = format!(
                "kernel {} has {} arguments, not {index}",
                self.name,
                args.len()
            );
            return err(cl::CL_INVALID_ARG_INDEX, what);
        };
        let value = match arg.kind {
            ArgKind::Value { size: wanted, .. } => {
                let Some(bytes) = value else {
                    return err(cl::CL_INVALID_ARG_VALUE, "arg_value is null");
                };
                if size != wanted as usize || bytes.len() != size {
                    let what = format!(
                        "argument {index} of {} has {wanted} bytes, not {size}",
                        self.name
                    );
                    return err(cl::CL_INVALID_ARG_SIZE, what);
                }
                Value::Bytes(SmallVec::from_slice(bytes))
            }
            ArgKind::Local { .. } => {
                if value.is_some() {
                    return err(
                        cl::CL_INVALID_ARG_VALUE,
                        "arg_value of a local argument is not null",
                    );
                }
                match u32::try_from(size) {
                    // Until OpenCL 3.1; from then on it is an error of the enqueue.
                    Ok(0) if self.devices.iter().any(before_3_1) => {
                        return err(cl::CL_INVALID_ARG_SIZE, "the size of a local argument is 0")
                    }
                    Ok(size) if size <= u32::MAX - LOCAL_ARG_ALIGN => Value::Local(size),
                    _ => return err(cl::CL_INVALID_ARG_SIZE, "local argument is too large"),
                }
            }
            ArgKind::Buffer { constant, .. } => {
                if size != HANDLE_SIZE {
                    return err(
                        cl::CL_INVALID_ARG_SIZE,
                        format!("argument {index} of {} is a cl_mem", self.name),
                    );
                }
                Value::Buffer(self.memory(value, constant || arg.is_const)?)
            }
            ArgKind::Pipe { .. } => {
                if size != HANDLE_SIZE {
                    return err(
                        cl::CL_INVALID_ARG_SIZE,
                        format!("argument {index} of {} is a cl_mem", self.name),
                    );
                }
                Value::Buffer(Some(self.pipe(value)?))
            }
            ArgKind::Queue { .. } => {
                if size != HANDLE_SIZE {
                    return err(
                        cl::CL_INVALID_ARG_SIZE,
                        format!("argument {index} of {} is a queue_t", self.name),
                    );
                }
                Value::Queue(self.device_queue(value)?)
            }
            ArgKind::Image(image) => {
                if size != HANDLE_SIZE {
                    return err(
                        cl::CL_INVALID_ARG_SIZE,
                        format!("argument {index} of {} is a cl_mem", self.name),
                    );
                }
                Value::Image(self.image(value, &image, arg.access)?)
            }
            ArgKind::Captured { .. } => {
                return err(cl::CL_INVALID_ARG_INDEX, "blocks have no such arguments")
            }
            ArgKind::Sampler { .. } => {
                if size != HANDLE_SIZE {
                    return err(
                        cl::CL_INVALID_ARG_SIZE,
                        format!("argument {index} of {} is a cl_sampler", self.name),
                    );
                }
                let sampler = handle::lookup::<Sampler>(handle_of(value) as *const c_void)?;
                if !Arc::ptr_eq(sampler.context(), self.program.context()) {
                    return err(
                        cl::CL_INVALID_CONTEXT,
                        "the sampler belongs to another context",
                    );
                }
                Value::Sampler(sampler.word())
            }
        };
        if let Some(slot) = self.args.lock().get_mut(index as usize) {
            *slot = Some(value);
        }
        Ok(())
    }

    /// Returns the memory object that `arg_value` points to; None for a null handle or pointer.
    /// `constant`: the kernel does not write there.
    fn memory(&self, value: Option<&[u8]>, constant: bool) -> ClResult<Option<Weak<Object<Mem>>>> {
        let Some(bytes) = value else { return Ok(None) };
        let Ok(bytes) = <[u8; HANDLE_SIZE]>::try_from(bytes) else {
            return err(cl::CL_INVALID_ARG_SIZE, "the argument is a cl_mem");
        };
        let address = usize::from_ne_bytes(bytes);
        if address == 0 {
            return Ok(None);
        }
        let mem = handle::lookup::<Mem>(address as *const c_void)?;
        if !Arc::ptr_eq(mem.context(), self.program.context()) {
            return err(
                cl::CL_INVALID_CONTEXT,
                "the memory object belongs to another context",
            );
        }
        if !mem.is_buffer() {
            return err(
                cl::CL_INVALID_MEM_OBJECT,
                "an image or a pipe where a buffer is expected",
            );
        }
        if !constant && mem.is_immutable() {
            return err(
                cl::CL_INVALID_ARG_VALUE,
                "an immutable buffer for a pointer that is not const",
            );
        }
        Ok(Some(Arc::downgrade(&mem)))
    }

    /// Returns the device queue that `arg_value` points to.
    fn device_queue(&self, value: Option<&[u8]>) -> ClResult<Weak<Object<DeviceQueue>>> {
        let found = handle::lookup::<DeviceQueue>(handle_of(value) as *const c_void);
        let queue = found.map_err(|error| ClError {
            code: cl::CL_INVALID_DEVICE_QUEUE,
            ..error
        })?;
        if !Arc::ptr_eq(queue.context(), self.program.context()) {
            return err(
                cl::CL_INVALID_CONTEXT,
                "the device queue belongs to another context",
            );
        }
        Ok(Arc::downgrade(&queue))
    }

    /// Returns the pipe that `arg_value` points to.
    fn pipe(&self, value: Option<&[u8]>) -> ClResult<Weak<Object<Mem>>> {
        let mem = handle::lookup::<Mem>(handle_of(value) as *const c_void)?;
        if !Arc::ptr_eq(mem.context(), self.program.context()) {
            return err(
                cl::CL_INVALID_CONTEXT,
                "the memory object belongs to another context",
            );
        }
        if !mem.is_pipe() {
            return err(cl::CL_INVALID_MEM_OBJECT, "a pipe is expected");
        }
        Ok(Arc::downgrade(&mem))
    }

    /// Returns the image that `arg_value` points to.
    fn image(
        &self,
        value: Option<&[u8]>,
        wanted: &ImageArg,
        access: AccessQualifier,
    ) -> ClResult<Weak<Object<Mem>>> {
        let mem = handle::lookup::<Mem>(handle_of(value) as *const c_void)?;
        if !Arc::ptr_eq(mem.context(), self.program.context()) {
            return err(
                cl::CL_INVALID_CONTEXT,
                "the memory object belongs to another context",
            );
        }
        check_image_type(&mem, wanted, access)?;
        Ok(Arc::downgrade(&mem))
    }
}

/// Checks that an image has the type of a parameter of a kernel or block, and may be accessed so.
pub(super) fn check_image_type(mem: &Mem, wanted: &ImageArg, access: AccessQualifier) -> ClResult {
    let desc = mem.image()?.desc();
    // A line of pixels over a buffer is what a kernel takes for image1d_buffer_t alone, and the other way round.
    let depth = desc.format.order == cl::CL_DEPTH;
    if desc.dim != wanted.dim || depth != wanted.depth {
        return err(
            cl::CL_INVALID_ARG_VALUE,
            "the image is of another type than the argument",
        );
    }
    let denied = match access {
        AccessQualifier::ReadOnly | AccessQualifier::None => cl::CL_MEM_WRITE_ONLY,
        AccessQualifier::WriteOnly => cl::CL_MEM_READ_ONLY | cl::CL_MEM_IMMUTABLE_EXT,
        AccessQualifier::ReadWrite => {
            cl::CL_MEM_READ_ONLY | cl::CL_MEM_WRITE_ONLY | cl::CL_MEM_IMMUTABLE_EXT
        }
    };
    if mem.flags() & denied != 0 {
        return err(
            cl::CL_INVALID_ARG_VALUE,
            "the image's flags do not allow the access of the argument",
        );
    }
    Ok(())
}

fn before_3_1(on: &OnDevice) -> bool {
    on.device.features().version() < (3, 1)
}

/// Returns the handle that `arg_value` points to, 0 where there is none.
fn handle_of(value: Option<&[u8]>) -> usize {
    value
        .and_then(|bytes| <[u8; HANDLE_SIZE]>::try_from(bytes).ok())
        .map_or(0, usize::from_ne_bytes)
}

//! The setting of a kernel's arguments (OpenCL API specification, "Setting Kernel Arguments").
//!
//! Memory arguments are held weakly: setting an argument does not retain the memory object.

use super::{Kernel, OnDevice};
use crate::cl::{self, cl_uint};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::{self, Body, Object, Ref};
use crate::object::context::Context;
use crate::object::device_queue::DeviceQueue;
use crate::object::mem::Mem;
use crate::object::sampler::Sampler;
use smallvec::SmallVec;
use spirv_lowering::interface::{AccessQualifier, Arg, ArgKind, ImageArg, LOCAL_ARG_ALIGN};
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
        let arg = self.arg(index)?;
        let handle = match arg.kind {
            ArgKind::Buffer { .. } | ArgKind::Pipe { .. } | ArgKind::Image(_) => Some("cl_mem"),
            ArgKind::Queue { .. } => Some("queue_t"),
            ArgKind::Sampler { .. } => Some("cl_sampler"),
            _ => None,
        };
        if let Some(handle) = handle {
            ensure!(
                size == HANDLE_SIZE,
                cl::CL_INVALID_ARG_SIZE,
                "argument {index} of {} is a {handle}",
                self.name
            );
        }
        let value = match arg.kind {
            ArgKind::Value { size: wanted, .. } => {
                let bytes = value.or_err(cl::CL_INVALID_ARG_VALUE, "arg_value is null")?;
                ensure!(
                    size == wanted as usize && bytes.len() == size,
                    cl::CL_INVALID_ARG_SIZE,
                    "argument {index} of {} has {wanted} bytes, not {size}",
                    self.name
                );
                Value::Bytes(SmallVec::from_slice(bytes))
            }
            ArgKind::Local { .. } => {
                ensure!(
                    value.is_none(),
                    cl::CL_INVALID_ARG_VALUE,
                    "arg_value of a local argument is not null"
                );
                match u32::try_from(size) {
                    // Until OpenCL 3.1; from then on it is an error of the enqueue.
                    Ok(0) if self.devices.iter().any(before_3_1) => {
                        return err(cl::CL_INVALID_ARG_SIZE, "the size of a local argument is 0")
                    }
                    Ok(size) if size <= u32::MAX - LOCAL_ARG_ALIGN => {
                        check_max_size(arg, size as usize)?;
                        Value::Local(size)
                    }
                    _ => return err(cl::CL_INVALID_ARG_SIZE, "local argument is too large"),
                }
            }
            ArgKind::Buffer { constant, .. } => {
                let mem = self.buffer(value, constant || arg.is_const)?;
                if let Some(mem) = &mem {
                    check_max_size(arg, mem.size)?;
                }
                Value::Buffer(mem.as_ref().map(Arc::downgrade))
            }
            ArgKind::Pipe { .. } => {
                let mem = self.object(value, |mem: &Mem| &mem.context)?;
                ensure!(
                    mem.is_pipe(),
                    cl::CL_INVALID_MEM_OBJECT,
                    "a pipe is expected"
                );
                Value::Buffer(Some(Arc::downgrade(&mem)))
            }
            ArgKind::Queue { .. } => {
                let queue = self.object(value, |queue: &DeviceQueue| &queue.context);
                Value::Queue(Arc::downgrade(&queue.map_err(
                    |error| match error.code {
                        cl::CL_INVALID_COMMAND_QUEUE => ClError {
                            code: cl::CL_INVALID_DEVICE_QUEUE,
                            ..error
                        },
                        _ => error,
                    },
                )?))
            }
            ArgKind::Image(image) => {
                let mem = self.object(value, |mem: &Mem| &mem.context)?;
                check_image_type(&mem, &image, arg.access)?;
                Value::Image(Arc::downgrade(&mem))
            }
            ArgKind::Captured { .. } => {
                return err(cl::CL_INVALID_ARG_INDEX, "blocks have no such arguments")
            }
            ArgKind::Sampler { .. } => {
                Value::Sampler(self.object(value, |one: &Sampler| &one.context)?.word())
            }
        };
        self.set(index, value);
        Ok(())
    }

    /// Sets an argument that there is.
    pub(super) fn set(&self, index: cl_uint, value: Value) {
        if let Some(slot) = self.args.lock().get_mut(index as usize) {
            *slot = Some(value);
        }
    }

    /// Returns the object of the kernel's context that `arg_value` points to.
    fn object<T: Body>(
        &self,
        value: Option<&[u8]>,
        context: impl Fn(&T) -> &Ref<Context>,
    ) -> ClResult<Ref<T>> {
        let object = handle::lookup::<T>(handle_of(value) as *const c_void)?;
        ensure!(
            Arc::ptr_eq(context(&object), &self.program.context),
            cl::CL_INVALID_CONTEXT,
            "the object belongs to another context"
        );
        Ok(object)
    }

    /// Returns the buffer that `arg_value` points to; None for a null handle or pointer.
    /// `constant`: the kernel does not write there.
    fn buffer(&self, value: Option<&[u8]>, constant: bool) -> ClResult<Option<Ref<Mem>>> {
        if handle_of(value) == 0 {
            return Ok(None);
        }
        let mem = self.object(value, |mem: &Mem| &mem.context)?;
        ensure!(
            mem.is_buffer(),
            cl::CL_INVALID_MEM_OBJECT,
            "an image or a pipe where a buffer is expected"
        );
        ensure!(
            constant || !mem.is_immutable(),
            cl::CL_INVALID_ARG_VALUE,
            "an immutable buffer for a pointer that is not const"
        );
        Ok(Some(mem))
    }
}

/// Checks that the memory for a pointer is no larger than the kernel allows.
fn check_max_size(arg: &Arg, size: usize) -> ClResult {
    match arg.max_size {
        Some(most) if size > most as usize => err(
            cl::CL_MAX_SIZE_RESTRICTION_EXCEEDED,
            format!("{size} bytes where the kernel takes {most} at most"),
        ),
        _ => Ok(()),
    }
}

/// Checks that an image has the type of a parameter of a kernel or block, and may be accessed so.
pub(super) fn check_image_type(mem: &Mem, wanted: &ImageArg, access: AccessQualifier) -> ClResult {
    let desc = &mem.image()?.desc;
    // A line of pixels over a buffer is what a kernel takes for image1d_buffer_t alone, and the other way round.
    let depth = desc.format.order == cl::CL_DEPTH;
    ensure!(
        desc.dim == wanted.dim && depth == wanted.depth,
        cl::CL_INVALID_ARG_VALUE,
        "the image is of another type than the argument"
    );
    let denied = match access {
        AccessQualifier::ReadOnly | AccessQualifier::None => cl::CL_MEM_WRITE_ONLY,
        AccessQualifier::WriteOnly => cl::CL_MEM_READ_ONLY | cl::CL_MEM_IMMUTABLE_EXT,
        AccessQualifier::ReadWrite => {
            cl::CL_MEM_READ_ONLY | cl::CL_MEM_WRITE_ONLY | cl::CL_MEM_IMMUTABLE_EXT
        }
    };
    ensure!(
        mem.flags & denied == 0,
        cl::CL_INVALID_ARG_VALUE,
        "the image's flags do not allow the access of the argument"
    );
    Ok(())
}

fn before_3_1(on: &OnDevice) -> bool {
    on.device.features.version() < (3, 1)
}

/// Returns the handle that `arg_value` points to, 0 where there is none.
fn handle_of(value: Option<&[u8]>) -> usize {
    value
        .and_then(|bytes| <[u8; HANDLE_SIZE]>::try_from(bytes).ok())
        .map_or(0, usize::from_ne_bytes)
}

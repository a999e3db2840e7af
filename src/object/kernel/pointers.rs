//! Arguments that are addresses (clSetKernelArgSVMPointer), and what a kernel is told of memory that it reaches through
//! pointers in memory (clSetKernelExecInfo).

use super::{Kernel, Value};
use crate::cl::{self, cl_kernel_exec_info, cl_uint};
use crate::error::{err, ClResult};
use crate::handle::Object;
use crate::object::launch::KernelLaunch;
use crate::object::mem::Mem;
use crate::object::svm;
use spirv_lowering::interface::ArgKind;
use std::sync::{Arc, Weak};

/// What clSetKernelExecInfo has told.
#[derive(Clone, Default)]
pub(super) struct ExecInfo {
    /// Memory objects that pointers in memory may lead to.
    reached: Vec<Weak<Object<Mem>>>,
    /// Pointers in memory lead to no other memory of the host.
    no_system: bool,
}

impl ExecInfo {
    /// Adds what they mean for a launch.
    pub(super) fn apply(&self, launch: &mut KernelLaunch) {
        let known = self.reached.iter().filter_map(Weak::upgrade);
        launch.buffers.extend(known.map(|mem| (mem, 3)));
        launch.touches_anything |= !self.reached.is_empty();
        launch.host_memory &= !self.no_system;
    }
}

impl Kernel {
    /// The argument is a pointer to global or constant memory: any value may be set; one that is in no allocation is
    /// memory of the host, or not to be followed.
    fn set_pointer(&self, index: cl_uint, address: usize) -> ClResult {
        let found = self.program.context().allocations().find(address);
        let value = Value::Pointer {
            address: address as u64,
            mem: found.map(|(allocation, _)| Arc::downgrade(allocation.mem())),
        };
        if let Some(slot) = self.args.lock().get_mut(index as usize) {
            *slot = Some(value);
        }
        Ok(())
    }

    /// What an argument is. CL_INVALID_ARG_INDEX: there is no such argument.
    fn arg_kind(&self, index: cl_uint) -> ClResult<ArgKind> {
        let args = &self.first()?.args;
        match args.get(index as usize) {
            Some(arg) => Ok(arg.kind),
            None => err(
                cl::CL_INVALID_ARG_INDEX,
                format!(
                    "kernel {} has {} arguments, not {index}",
                    self.name,
                    args.len()
                ),
            ),
        }
    }

    /// clSetKernelArgSVMPointer.
    pub fn set_arg_svm(&self, index: cl_uint, address: usize) -> ClResult {
        svm::check_supported(self.program.context())?;
        if !matches!(self.arg_kind(index)?, ArgKind::Buffer { .. }) {
            return err(
                cl::CL_INVALID_ARG_VALUE,
                format!(
                    "argument {index} of {} is no pointer to global or constant memory",
                    self.name
                ),
            );
        }
        self.set_pointer(index, address)
    }

    /// clSetKernelExecInfo. `value` is what `param_value` points to; `None` for a null pointer.
    pub fn set_exec_info(
        &self,
        param: cl_kernel_exec_info,
        size: usize,
        value: Option<&[u8]>,
    ) -> ClResult {
        let context = self.program.context();
        match param {
            cl::CL_KERNEL_EXEC_INFO_SVM_PTRS => {
                svm::check_supported(context)?;
                let pointers = addresses(size, value)?;
                let mut reached: Vec<Weak<Object<Mem>>> = Vec::new();
                for (allocation, _) in pointers
                    .into_iter()
                    .filter_map(|address| context.allocations().find(address))
                {
                    reached.push(Arc::downgrade(allocation.mem()));
                }
                self.exec.lock().reached = reached;
            }
            cl::CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM => {
                let Some(system) = boolean(size, value) else {
                    return err(cl::CL_INVALID_VALUE, "the value is no cl_bool");
                };
                let has = |bits: u64| bits & cl::CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0;
                if system && !context.devices().iter().any(|d| has(d.svm_capabilities())) {
                    return err(
                        cl::CL_INVALID_OPERATION,
                        "no device of the context reads memory of the host by its address",
                    );
                }
                self.exec.lock().no_system = !system;
            }
            _ => {
                return err(
                    cl::CL_INVALID_VALUE,
                    format!("unknown parameter name {param:#x}"),
                )
            }
        }
        Ok(())
    }
}

/// A list of addresses, which may be empty.
fn addresses(size: usize, value: Option<&[u8]>) -> ClResult<Vec<usize>> {
    const EACH: usize = size_of::<usize>();
    let bytes = match value {
        Some(bytes) => bytes,
        None if size == 0 => &[],
        None => return err(cl::CL_INVALID_VALUE, "param_value is null"),
    };
    if bytes.len() != size || !size.is_multiple_of(EACH) {
        return err(cl::CL_INVALID_VALUE, "the size is no list of pointers");
    }
    let (list, _) = bytes.as_chunks::<EACH>();
    Ok(list.iter().map(|one| usize::from_ne_bytes(*one)).collect())
}

/// A cl_bool.
fn boolean(size: usize, value: Option<&[u8]>) -> Option<bool> {
    let bytes = value.filter(|bytes| bytes.len() == size)?;
    Some(cl::cl_bool::from_ne_bytes(bytes.try_into().ok()?) != 0)
}

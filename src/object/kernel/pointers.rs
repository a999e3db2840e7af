//! Arguments that are addresses (clSetKernelArgSVMPointer), and the memory that a kernel is said to reach through
//! pointers in memory (clSetKernelExecInfo).

use super::args::Value;
use super::Kernel;
use crate::cl::{self, cl_int, cl_kernel_exec_info, cl_uint};
use crate::error::{ensure, err, ClResult, OrErr};
use crate::handle::{Object, Ref};
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::info::unknown;
use crate::object::launch::KernelLaunch;
use crate::object::mem::Mem;
use crate::object::memories::MemoryIndex;
use crate::object::{svm, unified_svm};
use spirv_lowering::interface::{Access, ArgKind};
use std::sync::{Arc, Weak};

/// The settings of clSetKernelExecInfo.
#[derive(Clone, Default)]
pub(super) struct ExecInfo {
    /// Memory objects that pointers in memory may lead to.
    reached: Vec<Weak<Object<Mem>>>,
    /// Device addresses in buffers that pointers in memory may lead to.
    device_addresses: Vec<u64>,
    /// Bit per kind of allocation of cl_intel_unified_shared_memory that pointers in memory may lead to.
    indirect: u32,
    /// Pointers in memory may lead to any allocation that need not be named.
    any_svm: bool,
    /// Pointers in memory lead to no other memory of the host.
    no_system: bool,
}

impl ExecInfo {
    /// Adds the declared pointers to a launch.
    #[inline]
    pub(super) fn apply(&self, context: &Context, memory: MemoryIndex, launch: &mut KernelLaunch) {
        launch.host_memory &= !self.no_system;
        let indirect = self.indirect != 0 || self.any_svm;
        if self.reached.is_empty() && self.device_addresses.is_empty() && !indirect {
            return;
        }
        let known = self.reached.iter().filter_map(Weak::upgrade);
        let find = |address: &u64| context.addressed.find(memory, *address);
        let addressed = self.device_addresses.iter().filter_map(find);
        launch
            .buffers
            .extend(known.chain(addressed).map(|mem| (mem, Access::ANY)));
        launch.touches_anything = true;
    }
}

impl Kernel {
    /// Sets an argument that is a pointer to global or constant memory; `other` is the error for an argument that is not. Any value
    /// may be set; one that is in no allocation is memory of the host, or must not be followed.
    fn set_pointer(&self, index: cl_uint, address: u64, other: cl_int) -> ClResult {
        let arg = self.arg(index)?;
        ensure!(
            matches!(arg.kind, ArgKind::Buffer { .. }),
            other,
            "argument {index} of {} is no pointer to global or constant memory",
            self.name
        );
        let found = self.program.context.allocations.find(address as usize);
        let value = Value::Pointer {
            address,
            mem: found.map(|(allocation, _)| Arc::downgrade(&allocation.mem)),
        };
        self.set(index, value);
        Ok(())
    }

    /// Implements clSetKernelArgSVMPointer.
    pub fn set_arg_svm(&self, index: cl_uint, address: usize) -> ClResult {
        svm::check_supported(&self.program.context)?;
        self.set_pointer(index, address as u64, cl::CL_INVALID_ARG_VALUE)
    }

    /// Implements clSetKernelArgDevicePointerEXT.
    pub fn set_arg_device_pointer(&self, index: cl_uint, address: u64) -> ClResult {
        self.set_pointer(index, address, cl::CL_INVALID_ARG_INDEX)
    }

    /// Returns the memory objects of the allocations that contain the addresses; other addresses
    /// are ignored.
    fn reached(&self, addresses: Vec<usize>) -> Vec<Weak<Object<Mem>>> {
        let allocations = &self.program.context.allocations;
        addresses
            .into_iter()
            .filter_map(|address| allocations.find(address))
            .map(|(allocation, _)| Arc::downgrade(&allocation.mem))
            .collect()
    }

    /// Implements clSetKernelExecInfo. `value` is what `param_value` points to; `None` for a null
    /// pointer.
    pub fn set_exec_info(
        &self,
        param: cl_kernel_exec_info,
        size: usize,
        value: Option<&[u8]>,
    ) -> ClResult {
        let context = &self.program.context;
        match param {
            cl::CL_KERNEL_EXEC_INFO_SVM_PTRS | cl::CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL => {
                svm::check_supported(context)?;
                let reached = self.reached(addresses(size, value)?);
                self.exec.lock().reached = reached;
            }
            cl::CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT => {
                let list = addresses(size, value)?;
                self.exec.lock().device_addresses =
                    list.into_iter().map(|address| address as u64).collect();
            }
            cl::CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL
            | cl::CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL
            | cl::CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL => {
                let on = boolean(size, value)?;
                let number = param - cl::CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL;
                let asked = [
                    cl::CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL,
                    cl::CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
                    cl::CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
                ][number as usize];
                let able = |device: &Ref<Device>| device.usm_capabilities(asked) != 0;
                ensure!(
                    context.devices.iter().any(able),
                    cl::CL_INVALID_OPERATION,
                    "no device of the context supports such allocations"
                );
                let mut exec = self.exec.lock();
                exec.indirect = exec.indirect & !(1 << number) | u32::from(on) << number;
            }
            cl::CL_KERNEL_EXEC_INFO_SVM_INDIRECT_ACCESS_KHR => {
                let on = boolean(size, value)?;
                unified_svm::check_indirect(context)?;
                self.exec.lock().any_svm = on;
            }
            cl::CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM => {
                let system = boolean(size, value)?;
                let has = |bits: u64| bits & cl::CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0;
                ensure!(
                    !system || context.devices.iter().any(|d| has(d.svm_capabilities())),
                    cl::CL_INVALID_OPERATION,
                    "no device of the context reads memory of the host by its address"
                );
                self.exec.lock().no_system = !system;
            }
            _ => return unknown(param),
        }
        Ok(())
    }
}

/// Returns a list of addresses, which may be empty.
fn addresses(size: usize, value: Option<&[u8]>) -> ClResult<Vec<usize>> {
    const EACH: usize = size_of::<usize>();
    let bytes = match value {
        Some(bytes) => bytes,
        None if size == 0 => &[],
        None => return err(cl::CL_INVALID_VALUE, "param_value is null"),
    };
    ensure!(
        bytes.len() == size && size.is_multiple_of(EACH),
        cl::CL_INVALID_VALUE,
        "the size is no list of pointers"
    );
    let (list, _) = bytes.as_chunks::<EACH>();
    Ok(list.iter().map(|one| usize::from_ne_bytes(*one)).collect())
}

/// Reads a cl_bool.
fn boolean(size: usize, value: Option<&[u8]>) -> ClResult<bool> {
    let bytes = value.filter(|bytes| bytes.len() == size);
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    let bytes = bytes.or_err(cl::CL_INVALID_VALUE, "the value is no cl_bool")?;
    Ok(cl::cl_bool::from_ne_bytes(bytes) != 0)
}

//! cl_intel_unified_shared_memory: host, device and shared allocations, on the machinery of [`super::svm`].
//!
//! Host and shared allocations are memory of the host that the device sees at its address (fine-grained), so neither
//! migrates; device allocations lie on the device, and the host does nothing with their addresses.

use super::context::Context;
use super::device::Device;
use super::info::{unknown, InfoOut, Written};
use super::properties::{pairs, unsupported};
use super::svm::{make, Allocation, Request, Usm, DEFAULT_ALIGN};
use crate::backend::SharedKind;
use crate::cl::{
    self, cl_mem_alloc_flags_intel, cl_mem_info_intel, cl_mem_properties_intel, cl_uint,
};
use crate::error::{ensure, ClResult};
use crate::handle::Ref;
use std::sync::Arc;

/// Returns the flags among the properties (with their closing zero).
fn flags(
    properties: &[cl_mem_properties_intel],
    shared: bool,
) -> ClResult<cl_mem_alloc_flags_intel> {
    const PLACEMENT: u64 = cl::CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL
        | cl::CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL;
    let mut flags = 0;
    for (name, value) in pairs(properties, cl::CL_INVALID_PROPERTY)? {
        match name {
            cl::CL_MEM_ALLOC_FLAGS_INTEL => flags = value,
            _ => return unsupported("memory", name, cl::CL_INVALID_PROPERTY),
        }
    }
    let placements = (flags & PLACEMENT).count_ones();
    ensure!(
        flags & !(PLACEMENT | cl::CL_MEM_ALLOC_WRITE_COMBINED_INTEL) == 0
            && placements <= u32::from(shared),
        cl::CL_INVALID_PROPERTY,
        "the allocation flags are not valid"
    );
    Ok(flags)
}

/// Which of the three kinds, and for which device.
#[derive(Clone)]
pub enum UsmKind {
    /// clHostMemAllocINTEL
    Host,
    /// clDeviceMemAllocINTEL
    Device(Ref<Device>),
    /// clSharedMemAllocINTEL
    Shared(Option<Ref<Device>>),
}

/// Implements clHostMemAllocINTEL, clDeviceMemAllocINTEL, clSharedMemAllocINTEL.
pub fn alloc(
    context: &Ref<Context>,
    place: UsmKind,
    properties: &[cl_mem_properties_intel],
    size: usize,
    align: cl_uint,
) -> ClResult<Arc<Allocation>> {
    let (kind, device) = match &place {
        UsmKind::Host => (cl::CL_MEM_TYPE_HOST_INTEL, None),
        UsmKind::Device(device) => (cl::CL_MEM_TYPE_DEVICE_INTEL, Some(device)),
        UsmKind::Shared(device) => (cl::CL_MEM_TYPE_SHARED_INTEL, device.as_ref()),
    };
    let param = match kind {
        cl::CL_MEM_TYPE_HOST_INTEL => cl::CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL,
        cl::CL_MEM_TYPE_DEVICE_INTEL => cl::CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
        _ if device.is_none() && context.memories.are_several() => {
            cl::CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL
        }
        // With one memory there is nothing to cross.
        _ => cl::CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
    };
    let able = |device: &Ref<Device>| device.usm_capabilities(param) != 0;
    let sharing = match device {
        Some(device) => {
            let memory = context.memory_of(device)?;
            Vec::from_iter(able(device).then_some(memory))
        }
        None => context.memories_of(able),
    };
    ensure!(
        !sharing.is_empty(),
        cl::CL_INVALID_OPERATION,
        "no device supports such allocations"
    );
    let align = u64::from(align);
    ensure!(
        (align == 0 || align.is_power_of_two()) && align <= DEFAULT_ALIGN,
        cl::CL_INVALID_VALUE,
        "the alignment is no power of two, or larger than the largest type"
    );
    let flags = flags(properties, kind == cl::CL_MEM_TYPE_SHARED_INTEL)?;
    let usm = Usm {
        kind,
        device: device.cloned(),
        flags,
    };
    let request = Request {
        access: cl::CL_MEM_READ_WRITE,
        size,
        align: align.max(DEFAULT_ALIGN),
        kind: if kind == cl::CL_MEM_TYPE_DEVICE_INTEL {
            SharedKind::Coarse
        } else {
            SharedKind::Fine
        },
        usm: Some(usm),
    };
    make(context, request, &sharing)
}

/// Checks that an address is null or that of an allocation of this extension. Fails with
/// CL_INVALID_VALUE for all others.
pub fn check_free(context: &Context, address: usize) -> ClResult {
    let ours =
        |(allocation, offset): (Arc<Allocation>, usize)| offset == 0 && allocation.usm().is_some();
    ensure!(
        address == 0 || context.allocations.find(address).is_some_and(ours),
        cl::CL_INVALID_VALUE,
        "the pointer is not one of clHost-, clDevice- or clSharedMemAllocINTEL"
    );
    Ok(())
}

/// Implements clGetMemAllocInfoINTEL. A pointer outside of all allocations is no error.
pub fn info(
    context: &Context,
    address: usize,
    param: cl_mem_info_intel,
    out: InfoOut<'_>,
) -> ClResult<Written> {
    let found = context.allocations.find(address);
    let found = found.and_then(|(allocation, _)| {
        let usm = allocation.usm()?.clone();
        Some((allocation, usm))
    });
    let (allocation, usm) = found.unzip();
    match param {
        cl::CL_MEM_ALLOC_TYPE_INTEL => {
            out.write(usm.map_or(cl::CL_MEM_TYPE_UNKNOWN_INTEL, |usm| usm.kind))
        }
        cl::CL_MEM_ALLOC_BASE_PTR_INTEL => out.write(allocation.map_or(0, |a| a.address)),
        cl::CL_MEM_ALLOC_SIZE_INTEL => out.write(allocation.map_or(0, |a| a.size)),
        cl::CL_MEM_ALLOC_DEVICE_INTEL => out.write(usm.and_then(|usm| usm.device)),
        param if u64::from(param) == cl::CL_MEM_ALLOC_FLAGS_INTEL => {
            out.write(usm.map_or(0, |usm| usm.flags))
        }
        _ => unknown(param),
    }
}

//! cl_intel_unified_shared_memory: host, device and shared allocations, on the machinery of [`super::svm`].
//!
//! Host and shared allocations are memory of the host that the device sees at its address (fine-grained), so neither
//! migrates; device allocations lie on the device, and the host does nothing with their addresses.

use super::context::Context;
use super::device::Device;
use super::info::{unknown, InfoOut, Written};
use super::properties::{pairs, unsupported};
use super::svm::{make, Allocation, Origin, Request, DEFAULT_ALIGN};
use super::svm_types::SvmType;
use crate::backend::SharedKind;
use crate::cl::{
    self, cl_mem_alloc_flags_intel, cl_mem_info_intel, cl_mem_properties_intel, cl_uint,
    cl_unified_shared_memory_type_intel,
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

/// Implements clHostMemAllocINTEL, clDeviceMemAllocINTEL, clSharedMemAllocINTEL, by the type. Memory
/// of a device has one; that of the host has none.
pub fn alloc(
    context: &Ref<Context>,
    (kind, device): (SvmType, Option<Ref<Device>>),
    properties: &[cl_mem_properties_intel],
    size: usize,
    align: cl_uint,
) -> ClResult<Arc<Allocation>> {
    let param = match kind {
        SvmType::Host => cl::CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL,
        SvmType::Device => cl::CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
        _ if device.is_none() && context.memories.are_several() => {
            cl::CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL
        }
        // With one memory there is nothing to cross.
        _ => cl::CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
    };
    let able = |device: &Ref<Device>| device.usm_capabilities(param) != 0;
    let sharing = match &device {
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
    let flags = flags(properties, kind == SvmType::Shared)?;
    let request = Request {
        access: cl::CL_MEM_READ_WRITE,
        size,
        align: align.max(DEFAULT_ALIGN),
        kind: match kind {
            SvmType::Device => SharedKind::Coarse,
            _ => SharedKind::Fine,
        },
        origin: Origin {
            device,
            flags,
            ..Origin::new(kind)
        },
    };
    make(context, request, &sharing)
}

/// Returns CL_MEM_ALLOC_TYPE_INTEL; `None` for types of which this extension knows nothing.
fn type_of(kind: SvmType) -> Option<cl_unified_shared_memory_type_intel> {
    match kind {
        SvmType::Host => Some(cl::CL_MEM_TYPE_HOST_INTEL),
        SvmType::Device => Some(cl::CL_MEM_TYPE_DEVICE_INTEL),
        SvmType::Shared => Some(cl::CL_MEM_TYPE_SHARED_INTEL),
        SvmType::Coarse | SvmType::Fine | SvmType::System => None,
    }
}

/// Checks that an address is null or that of an allocation of this extension. Fails with
/// CL_INVALID_VALUE for all others.
pub fn check_free(context: &Context, address: usize) -> ClResult {
    let ours = |(found, offset): (Arc<Allocation>, usize)| {
        offset == 0 && type_of(found.origin.kind).is_some()
    };
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
    let found = found.and_then(|(found, _)| Some((type_of(found.origin.kind)?, found)));
    let (kind, found) = found.unzip();
    let origin = found.as_ref().map(|allocation| &allocation.origin);
    match param {
        cl::CL_MEM_ALLOC_TYPE_INTEL => out.write(kind.unwrap_or(cl::CL_MEM_TYPE_UNKNOWN_INTEL)),
        cl::CL_MEM_ALLOC_BASE_PTR_INTEL => out.write(found.map_or(0, |found| found.address)),
        cl::CL_MEM_ALLOC_SIZE_INTEL => out.write(found.map_or(0, |found| found.size)),
        cl::CL_MEM_ALLOC_DEVICE_INTEL => out.write(origin.and_then(|origin| origin.device.clone())),
        param if u64::from(param) == cl::CL_MEM_ALLOC_FLAGS_INTEL => {
            out.write(origin.map_or(0, |origin| origin.flags))
        }
        _ => unknown(param),
    }
}

//! cl_khr_unified_svm 0.9: every type of shared virtual memory by its number, on the machinery of [`super::svm`].
//!
//! The types of the platform are those that any of its devices has. Memory of the type that the system allocates
//! (`malloc`) may be allocated here too: it is memory of the host then.

use super::context::Context;
use super::device::Device;
use super::info::{unknown, InfoOut, Written};
use super::properties::{pairs, unsupported};
use super::svm::{alignment, free, make, Allocation, Origin, Request};
use super::svm_types::{SvmType, TypeCapabilities};
use crate::backend::SharedKind;
use crate::cl::{
    self, cl_svm_alloc_access_flags_khr, cl_svm_alloc_properties_khr, cl_svm_capabilities_khr,
    cl_svm_free_flags_khr, cl_svm_pointer_info_khr, cl_uint,
};
use crate::error::{ensure, err, ClResult, OrErr};
use crate::handle::{self, Ref};
use std::ffi::c_void;
use std::sync::Arc;

/// Returns the types of the platform of a context, by their numbers.
fn types_of(context: &Context) -> Vec<SvmType> {
    let first = context.devices.first();
    first.map_or_else(Vec::new, |device| {
        device.platform_svm_types().types().collect()
    })
}

/// Returns what all devices of a context that have memory of a type can do with it.
fn of_context(context: &Context) -> TypeCapabilities {
    TypeCapabilities::common(context.devices.iter().map(|device| device.svm_types()))
}

/// The properties of an allocation.
#[derive(Default)]
struct Properties {
    device: Option<Ref<Device>>,
    access: cl_svm_alloc_access_flags_khr,
    align: u64,
}

impl Properties {
    /// Reads a list (with its closing zero). Errors: CL_INVALID_PROPERTY, CL_INVALID_DEVICE.
    fn read(context: &Context, list: &[cl_svm_alloc_properties_khr]) -> ClResult<Self> {
        const ACCESS: cl_svm_alloc_access_flags_khr = cl::CL_SVM_ALLOC_ACCESS_HOST_NOREAD_KHR
            | cl::CL_SVM_ALLOC_ACCESS_HOST_NOWRITE_KHR
            | cl::CL_SVM_ALLOC_ACCESS_DEVICE_NOREAD_KHR
            | cl::CL_SVM_ALLOC_ACCESS_DEVICE_NOWRITE_KHR;
        let mut read = Self::default();
        for (name, value) in pairs(list, cl::CL_INVALID_PROPERTY)? {
            match name {
                cl::CL_SVM_ALLOC_ASSOCIATED_DEVICE_HANDLE_KHR if value != 0 => {
                    let device = handle::lookup::<Device>(value as usize as *const c_void)?;
                    context.device_index(&device)?;
                    read.device = Some(device);
                }
                cl::CL_SVM_ALLOC_ASSOCIATED_DEVICE_HANDLE_KHR => (),
                cl::CL_SVM_ALLOC_ACCESS_FLAGS_KHR if value & !ACCESS == 0 => read.access = value,
                cl::CL_SVM_ALLOC_ALIGNMENT_KHR if alignment(value).is_ok() => read.align = value,
                _ => return unsupported("memory", name, cl::CL_INVALID_PROPERTY),
            }
        }
        Ok(read)
    }

    /// Returns what the associated device, or else those of the context, can do with memory of each type.
    fn capabilities(&self, context: &Context) -> TypeCapabilities {
        match &self.device {
            Some(device) => device.svm_types(),
            None => of_context(context),
        }
    }
}

/// Implements clSVMAllocWithPropertiesKHR. Returns `None` for 0 bytes.
pub fn alloc(
    context: &Ref<Context>,
    list: &[cl_svm_alloc_properties_khr],
    index: cl_uint,
    size: usize,
) -> ClResult<Option<Arc<Allocation>>> {
    let kind = types_of(context).get(index as usize).copied();
    let kind = kind.or_err(cl::CL_INVALID_VALUE, "there is no type with this number")?;
    let properties = Properties::read(context, list)?;
    let capabilities = properties.capabilities(context).of(kind);
    ensure!(
        capabilities != 0,
        cl::CL_INVALID_VALUE,
        "no device of the allocation has memory of this type"
    );
    let associated = capabilities & cl::CL_SVM_CAPABILITY_DEVICE_UNASSOCIATED_KHR == 0;
    let sharing = match &properties.device {
        Some(device) if associated => vec![context.memory_of(device)?],
        None if associated => {
            return err(
                cl::CL_INVALID_DEVICE,
                "memory of this type is associated with a device",
            )
        }
        _ => context.memories_of(|device| device.svm_types().of(kind) != 0),
    };
    if size == 0 {
        return Ok(None);
    }
    let request = Request {
        access: cl::CL_MEM_READ_WRITE,
        size,
        align: alignment(properties.align)?,
        kind: match kind {
            SvmType::Device | SvmType::Coarse => SharedKind::Coarse,
            _ => SharedKind::Fine,
        },
        origin: Origin {
            kind,
            device: properties.device,
            flags: 0,
            access: properties.access,
            properties: list.to_vec(),
        },
    };
    make(context, request, &sharing).map(Some)
}

/// Implements clSVMFreeWithPropertiesKHR. There are no properties nor flags yet.
pub fn free_with(
    context: &Context,
    list: &[cl_svm_alloc_properties_khr],
    flags: cl_svm_free_flags_khr,
    address: usize,
) -> ClResult {
    if let Some((name, _)) = pairs(list, cl::CL_INVALID_PROPERTY)?.first() {
        return unsupported("memory", name, cl::CL_INVALID_PROPERTY);
    }
    ensure!(flags == 0, cl::CL_INVALID_VALUE, "the flags are not valid");
    let begins = |(_, offset)| offset == 0;
    ensure!(
        address == 0 || context.allocations.find(address).is_some_and(begins),
        cl::CL_INVALID_VALUE,
        "the pointer is not that of an allocation"
    );
    free(context, address);
    Ok(())
}

/// Implements clGetSVMPointerInfoKHR. A pointer outside of all allocations is no error.
pub fn info(
    context: &Context,
    device: Option<&Ref<Device>>,
    address: usize,
    param: cl_svm_pointer_info_khr,
    out: InfoOut<'_>,
) -> ClResult<Written> {
    if let Some(device) = device {
        context.device_index(device)?;
    }
    let found = context.allocations.find(address).map(|(found, _)| found);
    let origin = found.as_ref().map(|allocation| &allocation.origin);
    match param {
        cl::CL_SVM_INFO_TYPE_INDEX_KHR => {
            let is = |origin: &Origin| {
                let mut types = types_of(context).into_iter();
                types.position(|kind| kind == origin.kind)
            };
            out.write(origin.and_then(is).map_or(cl_uint::MAX, |at| at as cl_uint))
        }
        cl::CL_SVM_INFO_CAPABILITIES_KHR => out.write(origin.map_or(0, |origin| match device {
            Some(device) => device.svm_types().of(origin.kind),
            None => of_context(context).of(origin.kind),
        })),
        cl::CL_SVM_INFO_PROPERTIES_KHR => {
            out.write(origin.map_or(&[][..], |origin| &origin.properties))
        }
        cl::CL_SVM_INFO_ACCESS_FLAGS_KHR => out.write(origin.map_or(0, |origin| origin.access)),
        cl::CL_SVM_INFO_BASE_PTR_KHR => out.write(found.map_or(0, |found| found.address)),
        cl::CL_SVM_INFO_SIZE_KHR => out.write(found.map_or(0, |found| found.size)),
        cl::CL_SVM_INFO_ASSOCIATED_DEVICE_HANDLE_KHR => {
            out.write(origin.and_then(|origin| origin.device.clone()))
        }
        _ => unknown(param),
    }
}

/// Implements clGetSVMSuggestedTypeIndexKHR: the type with all of the required capabilities that has most of the desired ones,
/// or CL_UINT_MAX. A type that the system allocates is suggested only if that is required.
pub fn suggested_type(
    context: &Context,
    required: cl_svm_capabilities_khr,
    desired: cl_svm_capabilities_khr,
    list: &[cl_svm_alloc_properties_khr],
    size: usize,
) -> ClResult<cl_uint> {
    const SYSTEM: cl_svm_capabilities_khr = cl::CL_SVM_CAPABILITY_SYSTEM_ALLOCATED_KHR;
    let properties = Properties::read(context, list)?;
    let devices = match &properties.device {
        Some(device) => std::slice::from_ref(device),
        None => &context.devices[..],
    };
    let fits = |kind: SvmType| {
        let mut able = (devices.iter()).filter(|device| device.svm_types().of(kind) != 0);
        able.all(|device| size as u64 <= device.caps().max_alloc_size)
    };
    let all = properties.capabilities(context);
    let mut best = None;
    for (index, kind) in types_of(context).into_iter().enumerate() {
        let capabilities = all.of(kind);
        if capabilities & required != required
            || capabilities & !required & SYSTEM != 0
            || capabilities == 0
            || !fits(kind)
        {
            continue;
        }
        let score = (capabilities & desired).count_ones();
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, index));
        }
    }
    Ok(best.map_or(cl_uint::MAX, |(_, index)| index as cl_uint))
}

/// Fails with CL_INVALID_OPERATION where no memory of the context is reached without being named
/// (CL_KERNEL_EXEC_INFO_SVM_INDIRECT_ACCESS_KHR).
pub fn check_indirect(context: &Context) -> ClResult {
    let all = of_context(context);
    let indirect = cl::CL_SVM_CAPABILITY_INDIRECT_ACCESS_KHR;
    ensure!(
        all.types().any(|kind| all.of(kind) & indirect != 0),
        cl::CL_INVALID_OPERATION,
        "no device of the context reaches memory that is not named"
    );
    Ok(())
}

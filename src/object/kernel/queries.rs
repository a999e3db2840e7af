//! The queries about a kernel (OpenCL API specification, "Kernel Object Queries").

use super::args::Value;
use super::{Kernel, OnDevice};
use crate::cl::{
    self, cl_kernel_arg_info, cl_kernel_sub_group_info, cl_kernel_work_group_info, cl_uint,
    cl_ulong,
};
use crate::error::{ensure, err, ClResult, OrErr};
use crate::handle::{Object, Ref};
use crate::object::device::Device;
use crate::object::info::{answer, InfoOut, Written};
use spirv_lowering::interface::{AccessQualifier, AddressQualifier, Arg, ArgKind, KernelInterface};
use std::sync::Arc;

// Methods that need the reference to themselves.
impl Object<Kernel> {
    /// Implements clGetKernelInfo.
    pub fn info(self: &Arc<Self>, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        answer! { param, out;
            CL_KERNEL_FUNCTION_NAME => self.name.as_str(),
            CL_KERNEL_NUM_ARGS => self.first()?.args.len() as cl_uint,
            CL_KERNEL_REFERENCE_COUNT => self.api_refs(),
            CL_KERNEL_CONTEXT => &self.program.context,
            CL_KERNEL_PROGRAM => &self.program,
            CL_KERNEL_ATTRIBUTES => self.attributes()?,
        }
    }
}

impl Kernel {
    fn attributes(&self) -> ClResult<String> {
        let attributes = &self.first()?.attributes;
        let size = |name: &str, [x, y, z]: [u32; 3]| format!("{name}({x},{y},{z})");
        let hint = attributes.vec_type_hint.as_ref();
        let lanes = attributes.required_sub_group_size;
        let parts = [
            (attributes.required_work_group_size).map(|s| size("reqd_work_group_size", s)),
            (attributes.work_group_size_hint).map(|s| size("work_group_size_hint", s)),
            hint.map(|name| format!("vec_type_hint({name})")),
            lanes.map(|lanes| format!("intel_reqd_sub_group_size({lanes})")),
        ];
        Ok(parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    /// Implements clGetKernelArgInfo.
    pub fn arg_info(
        &self,
        index: cl_uint,
        param: cl_kernel_arg_info,
        out: InfoOut<'_>,
    ) -> ClResult<Written> {
        let arg = self.arg(index)?;
        ensure!(
            self.program.has_arg_info(),
            cl::CL_KERNEL_ARG_INFO_NOT_AVAILABLE,
            "build the program with -cl-kernel-arg-info"
        );
        answer! { param, out;
            CL_KERNEL_ARG_ADDRESS_QUALIFIER => match arg.address {
                AddressQualifier::Global => cl::CL_KERNEL_ARG_ADDRESS_GLOBAL,
                AddressQualifier::Local => cl::CL_KERNEL_ARG_ADDRESS_LOCAL,
                AddressQualifier::Constant => cl::CL_KERNEL_ARG_ADDRESS_CONSTANT,
                AddressQualifier::Private => cl::CL_KERNEL_ARG_ADDRESS_PRIVATE,
            },
            CL_KERNEL_ARG_ACCESS_QUALIFIER => match arg.access {
                AccessQualifier::None => cl::CL_KERNEL_ARG_ACCESS_NONE,
                AccessQualifier::ReadOnly => cl::CL_KERNEL_ARG_ACCESS_READ_ONLY,
                AccessQualifier::WriteOnly => cl::CL_KERNEL_ARG_ACCESS_WRITE_ONLY,
                AccessQualifier::ReadWrite => cl::CL_KERNEL_ARG_ACCESS_READ_WRITE,
            },
            CL_KERNEL_ARG_TYPE_NAME => available(&arg.type_name)?,
            CL_KERNEL_ARG_TYPE_QUALIFIER => type_qualifier(arg),
            CL_KERNEL_ARG_NAME => available(&arg.name)?,
        }
    }

    /// Returns the device that a query is about: the named one, or else the only one of the kernel.
    fn queried_device(
        &self,
        device: Option<&Ref<Device>>,
    ) -> ClResult<(&OnDevice, &KernelInterface)> {
        let on = match (device, self.devices.as_slice()) {
            (Some(device), _) => self.on(device).ok(),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        on.and_then(|on| Some((on, on.interface()?))).or_err(
            cl::CL_INVALID_DEVICE,
            "the kernel was not built for the device",
        )
    }

    /// Implements clGetKernelWorkGroupInfo. Without a device: that of a kernel with one device
    /// only.
    pub fn work_group_info(
        &self,
        device: Option<&Ref<Device>>,
        param: cl_kernel_work_group_info,
        out: InfoOut<'_>,
    ) -> ClResult<Written> {
        let (on, interface) = self.queried_device(device)?;
        let caps = on.device.backend.caps();
        let attributes = &interface.attributes;
        answer! { param, out;
            CL_KERNEL_WORK_GROUP_SIZE => {
                let size = on.executable.code(on.index)?.max_work_group_size();
                size.min(caps.max_work_group_size) as usize
            },
            CL_KERNEL_COMPILE_WORK_GROUP_SIZE => {
                let size = attributes.required_work_group_size.unwrap_or_default();
                size.map(|s| s as usize)
            },
            CL_KERNEL_LOCAL_MEM_SIZE => {
                let size = |arg: &Option<Value>| match arg {
                    Some(Value::Local(size)) => cl_ulong::from(*size),
                    _ => 0,
                };
                let set: cl_ulong = self.args.lock().iter().map(size).sum();
                cl_ulong::from(interface.local_size) + set
            },
            CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE
                => caps.hardware_subgroup(attributes.sub_group_size(caps.subgroup_size)) as usize,
            CL_KERNEL_PRIVATE_MEM_SIZE => cl_ulong::from(interface.private_size),
            // Drivers say nothing of it: what cannot be in registers.
            CL_KERNEL_SPILL_MEM_SIZE_INTEL if on.device.features.subgroups
                => cl_ulong::from(interface.private_size),
            CL_KERNEL_GLOBAL_WORK_SIZE => err::<usize>(
                cl::CL_INVALID_VALUE,
                "neither a custom device nor a built-in kernel",
            )?,
        }
    }
}

/// Sub-groups (OpenCL API specification, "Kernel Object Queries", CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE and others).
impl Kernel {
    /// Implements clGetKernelSubGroupInfo. `input`: the list of sizes, as many as fit
    /// `input_value`. `room`: the number of sizes that fit the application's value, if it requests
    /// one.
    pub fn sub_group_info(
        &self,
        device: Option<&Ref<Device>>,
        param: cl_kernel_sub_group_info,
        input: &[usize],
        room: Option<usize>,
        out: InfoOut<'_>,
    ) -> ClResult<Written> {
        let (on, interface) = self.queried_device(device)?;
        ensure!(
            on.device.features.subgroups,
            cl::CL_INVALID_OPERATION,
            "the device does not support sub-groups"
        );
        let (caps, attributes) = (on.device.caps(), &interface.attributes);
        let lanes = attributes.sub_group_size(caps.subgroup_size) as usize;
        let code = on.executable.code(on.index)?;
        let most = code.max_work_group_size().min(caps.max_work_group_size) as usize;
        let needs = |least: usize, most: usize| {
            ensure!(
                (least..=most).contains(&input.len()),
                cl::CL_INVALID_VALUE,
                "the query needs {least} to {most} sizes as input"
            );
            Ok(())
        };
        answer! { param, out;
            CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE => {
                needs(1, 3)?;
                lanes
            },
            CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE => {
                needs(1, 3)?;
                let items = input.iter().fold(1usize, |items, &size| items.saturating_mul(size));
                items.div_ceil(lanes)
            },
            CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT => {
                needs(1, 1)?;
                let dims = room.unwrap_or(3);
                ensure!(
                    (1..=3).contains(&dims),
                    cl::CL_INVALID_VALUE,
                    "the answer is a list of one to three sizes"
                );
                let wanted = input.first().copied().unwrap_or(0).saturating_mul(lanes);
                let fits = match attributes.required_work_group_size {
                    Some([x, y, z]) => y == 1 && z == 1 && x as usize == wanted,
                    None => true,
                };
                // Zeros: no work-group has so many.
                let first = if fits && wanted <= most { wanted } else { 0 };
                let rest = first.min(1);
                [first, rest, rest][..dims].to_vec()
            },
            CL_KERNEL_MAX_NUM_SUB_GROUPS => most.div_ceil(lanes),
            CL_KERNEL_COMPILE_NUM_SUB_GROUPS
                => attributes.required_sub_groups.unwrap_or(0) as usize,
            CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL
                => attributes.required_sub_group_size.unwrap_or(0) as usize,
        }
    }
}

/// Returns a name of the source, if the program has it.
fn available(name: &str) -> ClResult<&str> {
    ensure!(
        !name.is_empty(),
        cl::CL_KERNEL_ARG_INFO_NOT_AVAILABLE,
        "the program does not tell"
    );
    Ok(name)
}

/// Returns the type qualifiers as a cl_bitfield, which the bindings do not use for them.
fn type_qualifier(arg: &Arg) -> cl::cl_bitfield {
    let flags = [
        (arg.is_const, cl::CL_KERNEL_ARG_TYPE_CONST),
        (arg.is_restrict, cl::CL_KERNEL_ARG_TYPE_RESTRICT),
        (arg.is_volatile, cl::CL_KERNEL_ARG_TYPE_VOLATILE),
        (
            matches!(arg.kind, ArgKind::Pipe { .. }),
            cl::CL_KERNEL_ARG_TYPE_PIPE,
        ),
    ];
    flags
        .iter()
        .filter(|(on, _)| *on)
        .fold(0, |all, (_, flag)| all | cl::cl_bitfield::from(*flag))
}

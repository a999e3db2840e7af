//! The queries about a kernel (OpenCL API specification, "Kernel Object Queries").

use super::args::Value;
use super::{Kernel, OnDevice};
use crate::cl::{
    self, cl_kernel_arg_info, cl_kernel_sub_group_info, cl_kernel_work_group_info, cl_uint,
    cl_ulong,
};
use crate::error::{ensure, err, ClResult};
use crate::handle::{Object, Ref};
use crate::object::device::Device;
use crate::object::info::{answer, unknown, InfoOut, Written};
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
        let parts = [
            attributes
                .required_work_group_size
                .map(|s| size("reqd_work_group_size", s)),
            attributes
                .work_group_size_hint
                .map(|s| size("work_group_size_hint", s)),
            attributes
                .vec_type_hint
                .as_ref()
                .map(|t| format!("vec_type_hint({t})")),
            attributes
                .required_sub_group_size
                .map(|s| format!("intel_reqd_sub_group_size({s})")),
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
        match param {
            cl::CL_KERNEL_ARG_ADDRESS_QUALIFIER => out.write(match arg.address {
                AddressQualifier::Global => cl::CL_KERNEL_ARG_ADDRESS_GLOBAL,
                AddressQualifier::Local => cl::CL_KERNEL_ARG_ADDRESS_LOCAL,
                AddressQualifier::Constant => cl::CL_KERNEL_ARG_ADDRESS_CONSTANT,
                AddressQualifier::Private => cl::CL_KERNEL_ARG_ADDRESS_PRIVATE,
            }),
            cl::CL_KERNEL_ARG_ACCESS_QUALIFIER => out.write(match arg.access {
                AccessQualifier::None => cl::CL_KERNEL_ARG_ACCESS_NONE,
                AccessQualifier::ReadOnly => cl::CL_KERNEL_ARG_ACCESS_READ_ONLY,
                AccessQualifier::WriteOnly => cl::CL_KERNEL_ARG_ACCESS_WRITE_ONLY,
                AccessQualifier::ReadWrite => cl::CL_KERNEL_ARG_ACCESS_READ_WRITE,
            }),
            cl::CL_KERNEL_ARG_TYPE_NAME if arg.type_name.is_empty() => not_available(),
            cl::CL_KERNEL_ARG_TYPE_NAME => out.write(arg.type_name.as_str()),
            cl::CL_KERNEL_ARG_TYPE_QUALIFIER => out.write(type_qualifier(arg)),
            cl::CL_KERNEL_ARG_NAME if arg.name.is_empty() => not_available(),
            cl::CL_KERNEL_ARG_NAME => out.write(arg.name.as_str()),
            _ => unknown(param),
        }
    }

    /// Returns the device that a query is about: the named one, or else the only one of the kernel.
    fn queried_device(
        &self,
        device: Option<&Ref<Device>>,
    ) -> ClResult<(&OnDevice, &KernelInterface)> {
        let on = match (device, self.devices.as_slice()) {
            (Some(device), _) => self.on(device),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        match on.and_then(|on| Some((on, on.interface()?))) {
            Some(found) => Ok(found),
            None => err(
                cl::CL_INVALID_DEVICE,
                "the kernel was not built for the device",
            ),
        }
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
        match param {
            cl::CL_KERNEL_WORK_GROUP_SIZE => {
                let size = on.executable.code(on.index)?.max_work_group_size();
                out.write(size.min(caps.max_work_group_size) as usize)
            }
            cl::CL_KERNEL_COMPILE_WORK_GROUP_SIZE => {
                let size = interface
                    .attributes
                    .required_work_group_size
                    .unwrap_or_default();
                out.write(size.map(|s| s as usize).as_slice())
            }
            cl::CL_KERNEL_LOCAL_MEM_SIZE => {
                let set: cl_ulong = self
                    .args
                    .lock()
                    .iter()
                    .map(|arg| match arg {
                        Some(Value::Local(size)) => cl_ulong::from(*size),
                        _ => 0,
                    })
                    .sum();
                out.write(cl_ulong::from(interface.local_size) + set)
            }
            cl::CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE => {
                out.write(interface.attributes.sub_group_size(caps.subgroup_size) as usize)
            }
            cl::CL_KERNEL_PRIVATE_MEM_SIZE => out.write(cl_ulong::from(interface.private_size)),
            // CL_KERNEL_SPILL_MEM_SIZE_INTEL, of which drivers say nothing: what cannot be in registers.
            0x4109 if on.device.features.subgroups => {
                out.write(cl_ulong::from(interface.private_size))
            }
            cl::CL_KERNEL_GLOBAL_WORK_SIZE => err(
                cl::CL_INVALID_VALUE,
                "neither a custom device nor a built-in kernel",
            ),
            _ => unknown(param),
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
        if !on.device.features.subgroups {
            return err(
                cl::CL_INVALID_OPERATION,
                "the device does not support sub-groups",
            );
        }
        let usual = on.device.caps().subgroup_size;
        let lanes = interface.attributes.sub_group_size(usual) as usize;
        let code = on.executable.code(on.index)?;
        let most = code
            .max_work_group_size()
            .min(on.device.caps().max_work_group_size) as usize;
        let needs = |least: usize, most: usize| {
            if (least..=most).contains(&input.len()) {
                return Ok(());
            }
            err(
                cl::CL_INVALID_VALUE,
                format!("the query needs {least} to {most} sizes as input"),
            )
        };
        match param {
            cl::CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE => {
                needs(1, 3)?;
                out.write(lanes)
            }
            cl::CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE => {
                needs(1, 3)?;
                let items = input
                    .iter()
                    .fold(1usize, |items, &size| items.saturating_mul(size));
                out.write(items.div_ceil(lanes))
            }
            cl::CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT => {
                needs(1, 1)?;
                let dims = room.unwrap_or(3);
                if !(1..=3).contains(&dims) {
                    return err(
                        cl::CL_INVALID_VALUE,
                        "the answer is a list of one to three sizes",
                    );
                }
                let wanted = input.first().copied().unwrap_or(0).saturating_mul(lanes);
                let fits = match interface.attributes.required_work_group_size {
                    Some([x, y, z]) => y == 1 && z == 1 && x as usize == wanted,
                    None => true,
                };
                // Zeros: no work-group has so many.
                let mut sizes = [0usize; 3];
                if fits && wanted > 0 && wanted <= most {
                    sizes = [wanted, 1, 1];
                }
                out.write(sizes.get(..dims).unwrap_or_default())
            }
            cl::CL_KERNEL_MAX_NUM_SUB_GROUPS => out.write(most.div_ceil(lanes)),
            cl::CL_KERNEL_COMPILE_NUM_SUB_GROUPS => {
                out.write(interface.attributes.required_sub_groups.unwrap_or(0) as usize)
            }
            // CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL
            0x410a => out.write(interface.attributes.required_sub_group_size.unwrap_or(0) as usize),
            _ => unknown(param),
        }
    }
}

fn not_available<T>() -> ClResult<T> {
    err(
        cl::CL_KERNEL_ARG_INFO_NOT_AVAILABLE,
        "the program does not tell",
    )
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

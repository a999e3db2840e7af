//! Kernels: a function of a built program with the arguments set so far (OpenCL API specification, section 5.9).
//!
//! Memory arguments are held weakly: setting an argument does not retain the memory object. [`Kernel::snapshot`] turns
//! kernel and arguments into a [`KernelLaunch`], which later calls of clSetKernelArg do not touch.

mod pointers;

use super::device::Device;
use super::info::{unknown, InfoOut, Written};
use super::launch::KernelLaunch;
use super::mem::shadow::Identity;
use super::mem::Mem;
use super::program::Program;
use super::sampler::Sampler;
use super::svm;
use crate::backend::image::Resource;
use crate::backend::Binding;
use crate::cl::{
    self, cl_kernel_arg_info, cl_kernel_sub_group_info, cl_kernel_work_group_info, cl_uint,
    cl_ulong,
};
use crate::compile::Executable;
use crate::error::{err, ClError, ClResult};
use crate::handle::{self, Body, Kind, Object, Ref};
use parking_lot::Mutex;
use pointers::ExecInfo;
use smallvec::SmallVec;
use spirv_lowering::interface::{
    AccessQualifier, AddressQualifier, Arg, ArgKind, ImageArg, ImageInfo, KernelInterface,
    SamplerSource, LOCAL_ARG_ALIGN,
};
use spirv_lowering::ir::module::PrintfSite;
use std::ffi::c_void;
use std::sync::{Arc, Weak};

/// Bytes a handle argument (`cl_mem`, `cl_sampler`) takes in clSetKernelArg.
const HANDLE_SIZE: usize = size_of::<*mut c_void>();

/// The value of an argument.
#[derive(Clone)]
enum Value {
    /// Scalars, vectors, structures.
    Bytes(SmallVec<[u8; 32]>),
    /// A memory object; None: a null pointer.
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
}

/// The kernel of an executable on one device.
#[derive(Clone)]
struct OnDevice {
    device: Ref<Device>,
    executable: Arc<Executable>,
    index: usize,
    printfs: Option<Arc<Vec<PrintfSite>>>,
    uniform: bool,
}

impl OnDevice {
    fn interface(&self) -> Option<&KernelInterface> {
        self.executable
            .kernels()
            .get(self.index)
            .map(|k| &k.lowered.interface)
    }
}

/// A kernel.
pub struct Kernel {
    program: Ref<Program>,
    name: String,
    devices: Vec<OnDevice>,
    /// One an argument; None: not set yet.
    args: Mutex<Vec<Option<Value>>>,
    exec: Mutex<ExecInfo>,
}

impl Body for Kernel {
    const KIND: Kind = Kind::Kernel;
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.program.detach_kernel();
    }
}

impl Kernel {
    pub(super) fn create(
        program: &Ref<Program>,
        executables: &[(Ref<Device>, Arc<Executable>, bool)],
        name: &str,
    ) -> ClResult<Ref<Self>> {
        let mut devices: Vec<OnDevice> = Vec::with_capacity(executables.len());
        for (device, executable, uniform) in executables {
            let Some(index) = executable.find(name) else {
                continue;
            };
            let sites = executable.kernels().get(index).map(|k| &k.lowered.printfs);
            let printfs = sites
                .filter(|sites| !sites.is_empty())
                .map(|sites| Arc::new(sites.clone()));
            devices.push(OnDevice {
                device: device.clone(),
                executable: executable.clone(),
                index,
                printfs,
                uniform: *uniform,
            });
        }
        let Some(first) = devices.first().and_then(OnDevice::interface) else {
            return err(
                cl::CL_INVALID_KERNEL_NAME,
                format!("the program has no kernel {name}"),
            );
        };
        let same = |other: &KernelInterface| {
            other.args.len() == first.args.len()
                && other.args.iter().zip(&first.args).all(|(a, b)| {
                    std::mem::discriminant(&a.kind) == std::mem::discriminant(&b.kind)
                        && a.type_name == b.type_name
                })
        };
        if !devices.iter().filter_map(OnDevice::interface).all(same) {
            return err(
                cl::CL_INVALID_KERNEL_DEFINITION,
                "the kernel's arguments differ between devices",
            );
        }
        let count = first.args.len();
        program.attach_kernel();
        Ok(Object::new(Self {
            program: program.clone(),
            name: name.to_owned(),
            devices,
            args: Mutex::new(vec![None; count]),
            exec: Mutex::default(),
        }))
    }

    /// clCloneKernel.
    pub fn clone_kernel(&self) -> Ref<Self> {
        self.program.attach_kernel();
        Object::new(Self {
            program: self.program.clone(),
            name: self.name.clone(),
            devices: self.devices.clone(),
            args: Mutex::new(self.args.lock().clone()),
            exec: Mutex::new(self.exec.lock().clone()),
        })
    }

    /// Its program.
    pub fn program(&self) -> &Ref<Program> {
        &self.program
    }

    /// CL_KERNEL_FUNCTION_NAME
    pub fn name(&self) -> &str {
        &self.name
    }

    fn first(&self) -> ClResult<&KernelInterface> {
        let first = self.devices.first().and_then(OnDevice::interface);
        first.ok_or_else(|| ClError::new(cl::CL_INVALID_KERNEL, "the kernel has no code"))
    }

    fn on(&self, device: &Ref<Device>) -> Option<&OnDevice> {
        self.devices
            .iter()
            .find(|on| Arc::ptr_eq(&on.device, device))
    }

    /// What the kernel asks of dispatch on a device. CL_INVALID_PROGRAM_EXECUTABLE: it was not built for that.
    pub fn interface(&self, device: &Ref<Device>) -> ClResult<&KernelInterface> {
        let found = self.on(device).and_then(OnDevice::interface);
        found.ok_or_else(|| {
            ClError::new(
                cl::CL_INVALID_PROGRAM_EXECUTABLE,
                "the program was not built for the queue's device",
            )
        })
    }

    /// clSetKernelArg. `value` is what `arg_value` points to, None for a null pointer; its length is `size` except for
    /// local arguments.
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
            ArgKind::Image(image) => {
                if size != HANDLE_SIZE {
                    return err(
                        cl::CL_INVALID_ARG_SIZE,
                        format!("argument {index} of {} is a cl_mem", self.name),
                    );
                }
                Value::Image(self.image(value, &image, arg.access)?)
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
                        cl::CL_INVALID_SAMPLER,
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

    /// The memory object that `arg_value` points to; None for a null handle or pointer. `constant`: the kernel does not
    /// write there.
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
                cl::CL_INVALID_MEM_OBJECT,
                "the memory object belongs to another context",
            );
        }
        if mem.image().is_ok() {
            return err(
                cl::CL_INVALID_MEM_OBJECT,
                "an image where a buffer is expected",
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

    /// The image that `arg_value` points to.
    fn image(
        &self,
        value: Option<&[u8]>,
        wanted: &ImageArg,
        access: AccessQualifier,
    ) -> ClResult<Weak<Object<Mem>>> {
        let mem = handle::lookup::<Mem>(handle_of(value) as *const c_void)?;
        if !Arc::ptr_eq(mem.context(), self.program.context()) {
            return err(
                cl::CL_INVALID_MEM_OBJECT,
                "the memory object belongs to another context",
            );
        }
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
        Ok(Arc::downgrade(&mem))
    }

    /// Everything a launch on `device`, by that queue, needs, or CL_INVALID_KERNEL_ARGS when an argument is not set.
    pub fn snapshot(&self, device: &Ref<Device>, queue: &Identity) -> ClResult<KernelLaunch> {
        let Some(on) = self.on(device) else {
            return err(
                cl::CL_INVALID_PROGRAM_EXECUTABLE,
                "the program was not built for the queue's device",
            );
        };
        let interface = self.interface(device)?;
        let size = if interface.args_in_buffer {
            interface.arg_buffer_size
        } else {
            interface.push_size
        };
        let system = device.caps().svm.system;
        let mut launch = KernelLaunch {
            code: on.executable.code(on.index)?.clone(),
            args: vec![0; size as usize],
            local_args: SmallVec::new(),
            buffers: SmallVec::new(),
            images: SmallVec::new(),
            bindings: Vec::new(),
            globals: on.executable.globals_memory()?,
            printf: on.printfs.clone(),
            touches_anything: interface.uses_indirect_pointers,
            host_memory: interface.uses_indirect_pointers && system,
            uniform: on.uniform,
        };
        let context = self.program.context();
        let place = context.device_index(device)?;
        self.exec.lock().apply(context, place, &mut launch);
        let args = self.args.lock();
        for (index, (arg, value)) in interface.args.iter().zip(args.iter()).enumerate() {
            let Some(value) = value else {
                let what = format!("argument {index} of kernel {} is not set", self.name);
                return err(cl::CL_INVALID_KERNEL_ARGS, what);
            };
            match (arg.kind, value) {
                (ArgKind::Value { offset, .. }, Value::Bytes(bytes)) => {
                    put(&mut launch.args, offset, bytes)
                }
                (ArgKind::Local { spec_id }, Value::Local(size)) => {
                    launch.local_args.push((
                        spec_id,
                        size.next_multiple_of(LOCAL_ARG_ALIGN).max(LOCAL_ARG_ALIGN),
                    ));
                }
                (ArgKind::Buffer { offset, .. }, Value::Buffer(Some(mem))) => {
                    let Some(mem) = mem.upgrade() else {
                        let what = format!("argument {index} of kernel {} was released", self.name);
                        return err(cl::CL_INVALID_KERNEL_ARGS, what);
                    };
                    let address = mem.device_address(device)?;
                    put(&mut launch.args, offset, &address.to_ne_bytes());
                    let access = interface.arg_access.get(index).copied().unwrap_or(3);
                    launch.buffers.push((mem, access));
                }
                (ArgKind::Buffer { .. }, Value::Buffer(None)) => {}
                (ArgKind::Buffer { offset, .. }, Value::Pointer { address, mem }) => {
                    put(&mut launch.args, offset, &address.to_ne_bytes());
                    match mem {
                        Some(_) if !svm::supported(device) => {
                            return err(
                                cl::CL_INVALID_OPERATION,
                                "an argument is shared virtual memory, which the device does not support",
                            )
                        }
                        Some(mem) => {
                            let Some(mem) = mem.upgrade() else {
                                let what =
                                    format!("argument {index} of kernel {} was freed", self.name);
                                return err(cl::CL_INVALID_KERNEL_ARGS, what);
                            };
                            let access = interface.arg_access.get(index).copied().unwrap_or(3);
                            launch.buffers.push((mem, access));
                        }
                        None if *address == 0 => {}
                        None => {
                            // A device address: the buffer may be known by it.
                            if let Some(mem) = context.addressed().find(place, *address) {
                                let access = interface.arg_access.get(index).copied().unwrap_or(3);
                                launch.buffers.push((mem, access));
                                continue;
                            }
                            launch.touches_anything = true;
                            launch.host_memory |= system;
                        }
                    }
                }
                (ArgKind::Image(arg), Value::Image(mem)) => {
                    let Some(mem) = mem.upgrade() else {
                        let what = format!("argument {index} of kernel {} was released", self.name);
                        return err(cl::CL_INVALID_KERNEL_ARGS, what);
                    };
                    let access = interface.arg_access.get(index).copied().unwrap_or(3);
                    launch.add_image(device, queue, &arg, mem, access)?;
                }
                (ArgKind::Sampler { offset }, Value::Sampler(word)) => {
                    if let Some(offset) = offset {
                        put(&mut launch.args, offset, &word.to_ne_bytes());
                    }
                }
                _ => {
                    let what = format!(
                        "argument {index} of kernel {} has the wrong type",
                        self.name
                    );
                    return err(cl::CL_INVALID_KERNEL_ARGS, what);
                }
            }
        }
        for sampler in &interface.samplers {
            let word = match sampler.source {
                SamplerSource::Literal(word) => word,
                SamplerSource::Arg(index) => match args.get(index as usize) {
                    Some(Some(Value::Sampler(word))) => *word,
                    _ => {
                        let what = format!("argument {index} of {} is no sampler", self.name);
                        return err(cl::CL_INVALID_KERNEL_ARGS, what);
                    }
                },
            };
            launch.bindings.push(Binding {
                binding: sampler.binding,
                resource: Resource::Sampler(word),
                write: false,
            });
        }
        Ok(launch)
    }

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

    /// clGetKernelArgInfo.
    pub fn arg_info(
        &self,
        index: cl_uint,
        param: cl_kernel_arg_info,
        out: InfoOut<'_>,
    ) -> ClResult<Written> {
        let args = &self.first()?.args;
        let Some(arg) = args.get(index as usize) else {
            return err(
                cl::CL_INVALID_ARG_INDEX,
                format!("kernel {} has {} arguments", self.name, args.len()),
            );
        };
        if !self.program.has_arg_info() {
            return err(
                cl::CL_KERNEL_ARG_INFO_NOT_AVAILABLE,
                "build the program with -cl-kernel-arg-info",
            );
        }
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

    /// clGetKernelWorkGroupInfo. Without a device: that of a kernel with one device only.
    pub fn work_group_info(
        &self,
        device: Option<&Ref<Device>>,
        param: cl_kernel_work_group_info,
        out: InfoOut<'_>,
    ) -> ClResult<Written> {
        let on = match (device, self.devices.as_slice()) {
            (Some(device), _) => self.on(device),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        let Some((on, interface)) = on.and_then(|on| Some((on, on.interface()?))) else {
            return err(
                cl::CL_INVALID_DEVICE,
                "the kernel was not built for the device",
            );
        };
        let caps = on.device.backend().caps();
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
                out.write(caps.subgroup_size.max(1) as usize)
            }
            cl::CL_KERNEL_PRIVATE_MEM_SIZE => out.write(cl_ulong::from(interface.private_size)),
            // CL_KERNEL_SPILL_MEM_SIZE_INTEL, of which drivers say nothing: what cannot be in registers.
            0x4109 if on.device.features().subgroups => {
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
    /// clGetKernelSubGroupInfo. `input`: the list of sizes, as many as fit `input_value`. `room`: the number of sizes that
    /// the application has room for, if it asks for a value.
    pub fn sub_group_info(
        &self,
        device: Option<&Ref<Device>>,
        param: cl_kernel_sub_group_info,
        input: &[usize],
        room: Option<usize>,
        out: InfoOut<'_>,
    ) -> ClResult<Written> {
        let on = match (device, self.devices.as_slice()) {
            (Some(device), _) => self.on(device),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        let Some((on, interface)) = on.and_then(|on| Some((on, on.interface()?))) else {
            return err(
                cl::CL_INVALID_DEVICE,
                "the kernel was not built for the device",
            );
        };
        if !on.device.features().subgroups {
            return err(
                cl::CL_INVALID_OPERATION,
                "the device does not support sub-groups",
            );
        }
        let lanes = (on.device.caps().subgroup_size as usize).max(1);
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

// Methods that need the reference to themselves.
impl Object<Kernel> {
    /// clGetKernelInfo.
    pub fn info(self: &Arc<Self>, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match param {
            cl::CL_KERNEL_FUNCTION_NAME => out.write(self.name.as_str()),
            cl::CL_KERNEL_NUM_ARGS => out.write(self.first()?.args.len() as cl_uint),
            cl::CL_KERNEL_REFERENCE_COUNT => out.write(self.api_refs()),
            cl::CL_KERNEL_CONTEXT => out.write(self.program.context().handle()),
            cl::CL_KERNEL_PROGRAM => out.write(self.program.handle()),
            cl::CL_KERNEL_ATTRIBUTES => out.write(self.attributes()?.as_str()),
            _ => unknown(param),
        }
    }
}

fn before_3_1(on: &OnDevice) -> bool {
    on.device.features().version() < (3, 1)
}

fn not_available<T>() -> ClResult<T> {
    err(
        cl::CL_KERNEL_ARG_INFO_NOT_AVAILABLE,
        "the program does not tell",
    )
}

/// A cl_bitfield, whatever the bindings say.
fn type_qualifier(arg: &Arg) -> cl::cl_bitfield {
    let flags = [
        (arg.is_const, cl::CL_KERNEL_ARG_TYPE_CONST),
        (arg.is_restrict, cl::CL_KERNEL_ARG_TYPE_RESTRICT),
        (arg.is_volatile, cl::CL_KERNEL_ARG_TYPE_VOLATILE),
    ];
    flags
        .iter()
        .filter(|(on, _)| *on)
        .fold(0, |all, (_, flag)| all | cl::cl_bitfield::from(*flag))
}

/// The handle that `arg_value` points to, 0 where there is none.
fn handle_of(value: Option<&[u8]>) -> usize {
    value
        .and_then(|bytes| <[u8; HANDLE_SIZE]>::try_from(bytes).ok())
        .map_or(0, usize::from_ne_bytes)
}

impl KernelLaunch {
    /// Puts an image in the places that the kernel asks for.
    fn add_image(
        &mut self,
        device: &Ref<Device>,
        queue: &Identity,
        arg: &ImageArg,
        mem: Ref<Mem>,
        access: u8,
    ) -> ClResult {
        let index = mem.context().device_index(device)?;
        mem.check_image(device)?;
        let write = access & 2 != 0;
        if arg.sampled.is_some() || arg.storage.is_some() {
            let texels = mem.shown(index, queue)?;
            for (binding, resource) in [
                (arg.sampled, Resource::Sampled(texels.clone())),
                (arg.storage, Resource::Storage(texels)),
            ] {
                if let Some(binding) = binding {
                    self.bindings.push(Binding {
                        binding,
                        resource,
                        write,
                    });
                }
            }
        }
        if let Some(offset) = arg.info {
            let desc = mem.image()?.desc();
            let info = ImageInfo {
                width: desc.width,
                height: desc.height,
                depth: desc.depth,
                array_size: desc.layers,
                channel_data_type: desc.format.data,
                channel_order: desc.format.order,
                mip_levels: 1,
                flags: u32::from(desc.format.has_alpha()),
            };
            let words = [
                info.width,
                info.height,
                info.depth,
                info.array_size,
                info.channel_data_type,
                info.channel_order,
                info.mip_levels,
                info.flags,
            ];
            for (word, at) in words.iter().zip((offset..).step_by(4)) {
                put(&mut self.args, at, &word.to_ne_bytes());
            }
        }
        self.images.push((mem, access));
        Ok(())
    }
}

/// Copies bytes to an offset of the argument block.
fn put(block: &mut [u8], offset: u32, bytes: &[u8]) {
    let at = offset as usize;
    if let Some(place) = block.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

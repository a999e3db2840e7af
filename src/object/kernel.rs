//! Kernels: a function of a built program with the arguments set so far (OpenCL API specification, section 5.9).
//!
//! [`args`] sets arguments, [`pointers`] those that are addresses; [`Kernel::snapshot`] turns kernel and arguments into
//! what a launch needs, which later calls of clSetKernelArg do not touch; [`queries`] tells about it.

mod args;
mod block;
mod pointers;
mod queries;
mod snapshot;

pub use block::BlockLaunch;

use super::device::Device;
use super::grid::LastGrid;
use super::launch::Rules;
use super::program::Program;
use crate::cl::{self, cl_uint};
use crate::compile::Executable;
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::{Body, Kind, Object, Ref};
use crate::util::lock::{rank, Mutex};
use args::Value;
use pointers::ExecInfo;
use spirv_lowering::interface::{Arg, KernelInterface};
use spirv_lowering::ir::module::PrintfSite;
use std::sync::Arc;

/// The kernel of an executable on one device.
#[derive(Clone)]
struct OnDevice {
    device: Ref<Device>,
    executable: Arc<Executable>,
    index: usize,
    printfs: Option<Arc<Vec<PrintfSite>>>,
    rules: Rules,
    last_grid: LastGrid,
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
    /// The kernel's program.
    pub program: Ref<Program>,
    /// CL_KERNEL_FUNCTION_NAME
    pub name: String,
    devices: Vec<OnDevice>,
    /// One an argument; None: not set yet.
    args: Mutex<Vec<Option<Value>>, { rank::KERNEL_ARGS }>,
    exec: Mutex<ExecInfo, { rank::KERNEL_EXEC }>,
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
    fn create(
        program: &Ref<Program>,
        executables: &[(Ref<Device>, Arc<Executable>, Rules)],
        name: &str,
    ) -> ClResult<Ref<Self>> {
        let mut devices: Vec<OnDevice> = Vec::with_capacity(executables.len());
        for (device, executable, rules) in executables {
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
                rules: *rules,
                last_grid: LastGrid::default(),
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
        ensure!(
            devices.iter().filter_map(OnDevice::interface).all(same),
            cl::CL_INVALID_KERNEL_DEFINITION,
            "the kernel's arguments differ between devices"
        );
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

    /// Implements clCloneKernel.
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

    fn first(&self) -> ClResult<&KernelInterface> {
        let first = self.devices.first().and_then(OnDevice::interface);
        first.or_err(cl::CL_INVALID_KERNEL, "the kernel has no code")
    }

    /// Returns what is known of an argument. CL_INVALID_ARG_INDEX: there is no such argument.
    fn arg(&self, index: cl_uint) -> ClResult<&Arg> {
        let args = &self.first()?.args;
        args.get(index as usize).ok_or_else(|| {
            let (name, count) = (&self.name, args.len());
            let what = format!("kernel {name} has {count} arguments, not {index}");
            ClError::new(cl::CL_INVALID_ARG_INDEX, what)
        })
    }

    /// Returns the kernel on a device. CL_INVALID_PROGRAM_EXECUTABLE: it was not built for that.
    fn on(&self, device: &Ref<Device>) -> ClResult<&OnDevice> {
        let mut all = self.devices.iter();
        let found = all.find(|on| Arc::ptr_eq(&on.device, device));
        found.or_err(
            cl::CL_INVALID_PROGRAM_EXECUTABLE,
            "the program was not built for the queue's device",
        )
    }

    /// Returns the grid of the kernel's last launch on a device, if the kernel was built for that.
    pub fn last_grid(&self, device: &Ref<Device>) -> Option<&LastGrid> {
        Some(&self.on(device).ok()?.last_grid)
    }

    /// Returns the interface of the kernel on a device.
    pub fn interface(&self, device: &Ref<Device>) -> ClResult<&KernelInterface> {
        let interface = self.on(device)?.interface();
        interface.or_err(cl::CL_INVALID_PROGRAM_EXECUTABLE, "the kernel has no code")
    }
}

impl Object<Program> {
    /// Implements clCreateKernel.
    pub fn create_kernel(self: &Arc<Self>, name: &str) -> ClResult<Ref<Kernel>> {
        Kernel::create(self, &self.executables()?, name)
    }

    /// Implements clCreateKernelsInProgram.
    pub fn create_kernels(self: &Arc<Self>) -> ClResult<Vec<Ref<Kernel>>> {
        self.kernel_names()?
            .iter()
            .map(|name| self.create_kernel(name))
            .collect()
    }
}

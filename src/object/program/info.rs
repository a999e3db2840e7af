//! The queries about programs and builds.

use super::{DeviceBuild, Origin, Program};
use crate::cl::{self, cl_uint};
use crate::compile::language::ClStd;
use crate::compile::store::binary::{Binary, LoweredKernels};
use crate::compile::{executable, linkable, BuildCall, BuildFailure, BuildOptions, Executable};
use crate::error::{ensure, ClResult, OrErr};
use crate::handle::{Object, Ref};
use crate::object::device::Device;
use crate::object::info::{answer, InfoOut, Written};
use crate::object::launch::Rules;
use std::sync::Arc;

impl Program {
    /// Returns the executables with their devices, and how they were built. Fails if there is none.
    /// Waits for builds in progress: applications that get a callback at the end of a build make
    /// kernels before that, as many drivers build within clBuildProgram all the same.
    pub(in crate::object) fn executables(
        &self,
    ) -> ClResult<Vec<(Ref<Device>, Arc<Executable>, Rules)>> {
        let mut builds = self.builds.lock();
        let in_progress = |build: &DeviceBuild| build.status == cl::CL_BUILD_IN_PROGRESS;
        while builds.iter().any(in_progress) {
            builds.wait(&self.built);
        }
        let found: Vec<_> = self
            .devices
            .iter()
            .zip(builds.iter())
            .filter_map(|(device, build)| {
                Some((device.clone(), build.executable.clone()?, self.rules(build)))
            })
            .collect();
        ensure!(
            !found.is_empty(),
            cl::CL_INVALID_PROGRAM_EXECUTABLE,
            "the program has not been built"
        );
        Ok(found)
    }

    /// Returns what the build demands. Uniform work-groups: OpenCL C before 2.0 without
    /// -cl-arm-non-uniform-work-group-size, or -cl-uniform-work-group-size; precise errors: -g.
    pub(super) fn rules(&self, build: &DeviceBuild) -> Rules {
        let Ok(options) = BuildOptions::parse(&build.options, BuildCall::Build) else {
            return Rules::default();
        };
        let old =
            options.std.is_none_or(|std| std < ClStd::C20) && !options.non_uniform_work_group_size;
        let source = matches!(self.origin, Origin::Source(_));
        Rules {
            uniform: options.uniform_work_group_size || (source && old),
            precise: options.debug,
        }
    }

    /// Returns CL_PROGRAM_KERNEL_NAMES, as a list.
    pub fn kernel_names(&self) -> ClResult<Vec<String>> {
        let executables = self.executables()?;
        let first = executables.first().map(|(_, e, _)| e);
        let names = first
            .iter()
            .flat_map(|e| e.kernels())
            .map(|k| k.lowered.interface.name.clone());
        Ok(names.collect())
    }

    fn any_executable(&self, has: impl Fn(&Executable) -> bool) -> ClResult<bool> {
        Ok(self.executables()?.iter().any(|(_, e, _)| has(e)))
    }

    /// Returns CL_PROGRAM_BINARIES: one a device, empty where there is none.
    pub fn binaries(&self) -> Vec<Vec<u8>> {
        let builds = self.builds.lock().clone();
        let spec_constants = self.spec_constants.lock().clone();
        self.devices
            .iter()
            .zip(&builds)
            .map(|(device, build)| {
                if build.kind == cl::CL_PROGRAM_BINARY_TYPE_NONE || build.linkables.is_empty() {
                    return Vec::new();
                }
                let modules = match linkable::for_library(&build.linkables) {
                    Ok(modules) => modules,
                    Err(BuildFailure(what)) => {
                        crate::log!(Warn, "a program has no binary: {what}");
                        return Vec::new();
                    }
                };
                let mut binary = Binary {
                    kind: build.kind,
                    options: build.options.clone(),
                    modules,
                    spec_constants: spec_constants.clone(),
                    executable: None,
                };
                if let (Some(executable), Some(options)) =
                    (&build.executable, binary.parsed_options())
                {
                    let key = executable::key(
                        device.backend.as_ref(),
                        &binary.modules,
                        &spec_constants,
                        &options.with_zeroed(self.context.zeroed),
                    );
                    binary.executable = Some(LoweredKernels {
                        key: key.name().into_bytes(),
                        kernels: executable.to_bytes(),
                        objects: executable.objects().to_vec(),
                    });
                }
                binary.to_bytes(device.backend.as_ref())
            })
            .collect()
    }

    /// Implements clGetProgramBuildInfo.
    pub fn build_info(
        &self,
        device: &Ref<Device>,
        param: cl_uint,
        out: InfoOut<'_>,
    ) -> ClResult<Written> {
        let index = self.device_index(device)?;
        let build = self.builds.lock().get(index).cloned().or_err(
            cl::CL_INVALID_DEVICE,
            "the device is not one of the program's",
        )?;
        answer! { param, out;
            CL_PROGRAM_BUILD_STATUS => build.status,
            CL_PROGRAM_BUILD_OPTIONS => build.options,
            CL_PROGRAM_BUILD_LOG => build.log,
            CL_PROGRAM_BINARY_TYPE => build.kind,
            CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE
                => build.executable.map_or(0, |e| e.globals().writable_size as usize),
        }
    }
}

impl Object<Program> {
    /// Implements clGetProgramInfo, without CL_PROGRAM_BINARIES (the C edge copies those from
    /// [`Program::binaries`]).
    pub fn info(self: &Arc<Self>, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        answer! { param, out;
            CL_PROGRAM_REFERENCE_COUNT => self.api_refs(),
            CL_PROGRAM_CONTEXT => &self.context,
            CL_PROGRAM_NUM_DEVICES => self.devices.len() as cl_uint,
            CL_PROGRAM_DEVICES => &self.devices,
            CL_PROGRAM_SOURCE => self.source().unwrap_or_default(),
            CL_PROGRAM_IL => match &self.origin {
                Origin::Il { bytes, .. } => bytes.as_slice(),
                _ => &[],
            },
            CL_PROGRAM_BINARY_SIZES => self.binaries().iter().map(Vec::len).collect::<Vec<_>>(),
            CL_PROGRAM_NUM_KERNELS => self.kernel_names()?.len(),
            CL_PROGRAM_KERNEL_NAMES => self.kernel_names()?.join(";"),
            CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT
                => self.any_executable(Executable::has_initializers)?,
            CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT
                => self.any_executable(Executable::has_finalizers)?,
        }
    }
}

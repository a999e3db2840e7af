//! Programs: source, IL or binaries, built for each device (OpenCL API specification, section 5.8).
//!
//! What a build makes stands beside the device it was made for ([`DeviceBuild`]). Kernels hold the executable they were
//! made from, so a later build cannot pull it from under them (and is refused while they exist).

mod build;
mod info;
mod link;

use build::linkables;
pub use link::link;

use super::callback::{Callback, ObjectFn};
use super::context::Context;
use super::device::{place_of, Device};
use crate::cl::{self, cl_build_status, cl_int, cl_program_binary_type};
use crate::compile::store::binary::Binary;
use crate::compile::{self, BuildFailure, Executable, Linkable, SpirvModule};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::{Body, Kind, Object, Ref};
use crate::util::lock::{rank, Mutex};
use parking_lot::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Where a program came from.
enum Origin {
    Source(String),
    Il { bytes: Vec<u8>, words: SpirvModule },
    Binaries,
    Linked,
}

/// The result of building a program for one device.
#[derive(Clone)]
pub struct DeviceBuild {
    status: cl_build_status,
    options: String,
    log: String,
    kind: cl_program_binary_type,
    linkables: Vec<Linkable>,
    executable: Option<Arc<Executable>>,
}

impl DeviceBuild {
    fn none() -> Self {
        Self {
            status: cl::CL_BUILD_NONE,
            options: String::new(),
            log: String::new(),
            kind: cl::CL_PROGRAM_BINARY_TYPE_NONE,
            linkables: Vec::new(),
            executable: None,
        }
    }

    /// Returns a build that has failed, as far as it has come.
    fn failed() -> Self {
        Self {
            status: cl::CL_BUILD_ERROR,
            ..Self::none()
        }
    }

    /// Ends the build: what it has made, or why it has failed.
    fn end(mut self, made: Result<cl_program_binary_type, BuildFailure>) -> Self {
        match made {
            Ok(kind) => (self.status, self.kind) = (cl::CL_BUILD_SUCCESS, kind),
            Err(BuildFailure(what)) => self.log += &what,
        }
        self
    }
}

/// A program.
pub struct Program {
    /// The program's context.
    pub context: Ref<Context>,
    /// The program's devices.
    pub devices: Vec<Ref<Device>>,
    origin: Origin,
    /// Binaries given to clCreateProgramWithBinary, one a device.
    binaries: Vec<Option<Binary>>,
    /// One a device.
    builds: Mutex<Vec<DeviceBuild>, { rank::PROGRAM }>,
    /// Signalled at the end of a build for a device.
    built: Condvar,
    spec_constants: parking_lot::Mutex<Vec<(u32, Vec<u8>)>>,
    kernels: AtomicUsize,
    released: Arc<Released>,
}

/// The callbacks of clSetProgramReleaseCallback. The program has them, and each of its executables until its finalizers
/// have run: the last that lets go calls them.
#[derive(Default)]
pub(super) struct Released {
    /// With the program's handle, as the callbacks get it.
    callbacks: parking_lot::Mutex<Vec<(Callback<ObjectFn>, usize)>>,
}

impl Drop for Released {
    fn drop(&mut self) {
        while let Some((notify, program)) = self.callbacks.get_mut().pop() {
            notify.call(program);
        }
    }
}

impl Body for Program {
    const KIND: Kind = Kind::Program;
}

fn make(
    context: &Ref<Context>,
    devices: Vec<Ref<Device>>,
    origin: Origin,
    binaries: Vec<Option<Binary>>,
) -> Ref<Program> {
    let builds = devices.iter().map(|_| DeviceBuild::none()).collect();
    Object::new(Program {
        context: context.clone(),
        devices,
        origin,
        binaries,
        builds: Mutex::new(builds),
        built: Condvar::new(),
        spec_constants: parking_lot::Mutex::default(),
        kernels: AtomicUsize::new(0),
        released: Arc::default(),
    })
}

/// Implements clCreateProgramWithSource. The strings are joined by the caller.
pub fn with_source(context: &Ref<Context>, source: String) -> Ref<Program> {
    make(
        context,
        context.devices.to_vec(),
        Origin::Source(source),
        Vec::new(),
    )
}

/// Implements clCreateProgramWithIL.
pub fn with_il(context: &Ref<Context>, il: &[u8]) -> ClResult<Ref<Program>> {
    let words = compile::to_words(il).or_err(cl::CL_INVALID_VALUE, "the IL is not SPIR-V")?;
    let words = compile::checked(&words)
        .map_err(|what| ClError::new(cl::CL_INVALID_VALUE, format!("invalid SPIR-V: {what}")))?;
    let origin = Origin::Il {
        bytes: il.to_vec(),
        words: Arc::new(words),
    };
    Ok(make(context, context.devices.to_vec(), origin, Vec::new()))
}

/// Implements clCreateProgramWithBinary: the program, and a status for each binary. Without a
/// program: all were refused.
pub fn with_binaries(
    context: &Ref<Context>,
    devices: &[Ref<Device>],
    binaries: &[&[u8]],
) -> ClResult<(Option<Ref<Program>>, Vec<cl_int>)> {
    for (index, device) in devices.iter().enumerate() {
        context.device_index(device)?;
        ensure!(
            !devices
                .iter()
                .take(index)
                .any(|other| Arc::ptr_eq(other, device)),
            cl::CL_INVALID_DEVICE,
            "a device is listed twice"
        );
    }
    let read: Vec<Option<Binary>> = devices
        .iter()
        .zip(binaries)
        .map(|(device, bytes)| Binary::from_bytes(bytes, device.backend.as_ref()))
        .collect();
    let status = |b: &Option<Binary>| {
        if b.is_some() {
            cl::CL_SUCCESS
        } else {
            cl::CL_INVALID_BINARY
        }
    };
    let statuses: Vec<cl_int> = read.iter().map(status).collect();
    if statuses.iter().any(|s| *s != cl::CL_SUCCESS) {
        return Ok((None, statuses));
    }
    // Binary type, options and modules are known before clBuildProgram.
    let known: Vec<DeviceBuild> = read
        .iter()
        .flatten()
        .map(|binary| DeviceBuild {
            kind: binary.kind,
            linkables: linkables(&binary.modules),
            options: binary.options.clone(),
            ..DeviceBuild::none()
        })
        .collect();
    let program = make(context, devices.to_vec(), Origin::Binaries, read);
    *program.builds.lock() = known;
    Ok((Some(program), statuses))
}

impl Program {
    /// Returns the source text, if it was made from that.
    pub fn source(&self) -> Option<&str> {
        match &self.origin {
            Origin::Source(text) => Some(text),
            _ => None,
        }
    }

    fn device_index(&self, device: &Ref<Device>) -> ClResult<usize> {
        place_of(device, &self.devices, "program")
    }

    fn indices(&self, devices: Option<&[Ref<Device>]>) -> ClResult<Vec<usize>> {
        match devices {
            None => Ok((0..self.devices.len()).collect()),
            Some(list) => list.iter().map(|d| self.device_index(d)).collect(),
        }
    }

    /// Implements clSetProgramSpecializationConstant.
    pub fn set_spec_constant(&self, id: u32, value: &[u8]) -> ClResult {
        let Origin::Il { words, .. } = &self.origin else {
            return err(cl::CL_INVALID_PROGRAM, "the program was not made from IL");
        };
        let known = spirv_lowering::Program::spec_constants(words)
            .map_err(|e| ClError::new(cl::CL_INVALID_PROGRAM, e.to_string()))?;
        let Some(constant) = known.iter().find(|c| c.id == id) else {
            return err(
                cl::CL_INVALID_SPEC_ID,
                format!("no specialisation constant {id}"),
            );
        };
        ensure!(
            constant.size as usize == value.len(),
            cl::CL_INVALID_VALUE,
            "specialisation constant {id} has {} bytes",
            constant.size
        );
        let mut constants = self.spec_constants.lock();
        constants.retain(|(known, _)| *known != id);
        constants.push((id, value.to_vec()));
        Ok(())
    }

    /// Implements clGetKernelArgInfo may answer: the types' names are those of the source.
    pub(super) fn has_arg_info(&self) -> bool {
        match self.origin {
            Origin::Source(_) | Origin::Linked => {
                let builds = self.builds.lock();
                builds.iter().any(|b| {
                    b.options
                        .split_whitespace()
                        .any(|o| o == "-cl-kernel-arg-info")
                }) || matches!(self.origin, Origin::Linked)
            }
            Origin::Il { .. } | Origin::Binaries => true,
        }
    }

    /// Counts a kernel object of the program.
    pub(super) fn attach_kernel(&self) {
        self.kernels.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a kernel object less.
    pub(super) fn detach_kernel(&self) {
        self.kernels.fetch_sub(1, Ordering::AcqRel);
    }
}

// Methods that need the reference to themselves.
impl Object<Program> {
    /// Implements clSetProgramReleaseCallback. The specification lets devices without program-scope
    /// destructors refuse, and the conformance tests expect that of OpenCL 3.0. So it is an error
    /// unless the program was built and has destructors, which is what the callback waits for.
    pub fn set_release_callback(self: &Arc<Self>, notify: Callback<ObjectFn>) -> ClResult {
        let builds = self.builds.lock();
        let waits = |executable: &Arc<Executable>| executable.has_finalizers();
        ensure!(
            builds
                .iter()
                .filter_map(|b| b.executable.as_ref())
                .any(waits),
            cl::CL_INVALID_OPERATION,
            "no device has an executable of the program with program-scope destructors"
        );
        let handle = self.handle() as usize;
        self.released.callbacks.lock().push((notify, handle));
        Ok(())
    }
}

//! Programs: source, IL or binaries, built for each device (OpenCL API specification, section 5.8).
//!
//! What a build makes stands beside the device it was made for ([`DeviceBuild`]). Kernels hold the executable they were
//! made from, so a later build cannot pull it from under them (and is refused while they exist).

use super::context::Context;
use super::device::Device;
use super::info::{unknown, InfoOut, Written};
use super::kernel::Kernel;
use crate::cl::{self, cl_build_status, cl_int, cl_program_binary_type, cl_uint};
use crate::compile::binary::Binary;
use crate::compile::options::ClStd;
use crate::compile::{
    self, executable, unit, BuildOptions, Executable, Failure, Header, Module, Stage, Unit,
};
use crate::error::{err, ClError, ClResult};
use crate::handle::{Body, Kind, Object, Ref};
use crate::util::leaving::Call;
use parking_lot::Mutex;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// `pfn_notify` of clBuildProgram and relatives, and the release callback.
pub type ProgramFn = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// A callback of the application with its user data.
#[derive(Debug, Clone, Copy)]
pub struct Notify {
    function: ProgramFn,
    user_data: usize,
}

impl Notify {
    /// Wraps a callback. The application vouches for function and user data until it has been called.
    pub fn new(function: ProgramFn, user_data: *mut c_void) -> Self {
        Self {
            function,
            user_data: user_data as usize,
        }
    }

    fn call(self, program: *mut c_void) {
        // SAFETY: the application registered this function with this signature, to be called once, now.
        unsafe { (self.function)(program, self.user_data as *mut c_void) }
    }
}

/// Where a program came from.
enum Origin {
    Source(String),
    Il { bytes: Vec<u8>, words: Module },
    Binaries,
    Linked,
}

/// What building a program for one device has left.
#[derive(Clone)]
pub struct DeviceBuild {
    status: cl_build_status,
    options: String,
    log: String,
    kind: cl_program_binary_type,
    units: Vec<Unit>,
    executable: Option<Arc<Executable>>,
}

impl DeviceBuild {
    fn none() -> Self {
        Self {
            status: cl::CL_BUILD_NONE,
            options: String::new(),
            log: String::new(),
            kind: cl::CL_PROGRAM_BINARY_TYPE_NONE,
            units: Vec::new(),
            executable: None,
        }
    }
}

/// A program.
pub struct Program {
    context: Ref<Context>,
    devices: Vec<Ref<Device>>,
    origin: Origin,
    /// Binaries given to clCreateProgramWithBinary, one a device.
    binaries: Vec<Option<Binary>>,
    /// One a device.
    builds: Mutex<Vec<DeviceBuild>>,
    spec_constants: Mutex<Vec<(u32, Vec<u8>)>>,
    kernels: AtomicUsize,
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
        spec_constants: Mutex::default(),
        kernels: AtomicUsize::new(0),
    })
}

/// clCreateProgramWithSource. The strings are joined by the caller.
pub fn with_source(context: &Ref<Context>, source: String) -> Ref<Program> {
    make(
        context,
        context.devices().to_vec(),
        Origin::Source(source),
        Vec::new(),
    )
}

/// clCreateProgramWithIL.
pub fn with_il(context: &Ref<Context>, il: &[u8]) -> ClResult<Ref<Program>> {
    let Some(words) = compile::to_words(il) else {
        return err(cl::CL_INVALID_VALUE, "the IL is not SPIR-V");
    };
    if let Err(what) = compile::validate(&words) {
        return err(cl::CL_INVALID_VALUE, format!("invalid SPIR-V: {what}"));
    }
    let origin = Origin::Il {
        bytes: il.to_vec(),
        words: Arc::new(words),
    };
    Ok(make(
        context,
        context.devices().to_vec(),
        origin,
        Vec::new(),
    ))
}

/// clCreateProgramWithBinary: the program, and a status for each binary. Without a program: all were refused.
pub fn with_binaries(
    context: &Ref<Context>,
    devices: &[Ref<Device>],
    binaries: &[&[u8]],
) -> ClResult<(Option<Ref<Program>>, Vec<cl_int>)> {
    for (index, device) in devices.iter().enumerate() {
        context.device_index(device)?;
        if devices
            .iter()
            .take(index)
            .any(|other| Arc::ptr_eq(other, device))
        {
            return err(cl::CL_INVALID_DEVICE, "a device is listed twice");
        }
    }
    let read: Vec<Option<Binary>> = devices
        .iter()
        .zip(binaries)
        .map(|(device, bytes)| Binary::from_bytes(bytes, device.backend().as_ref()))
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
            units: units(&binary.modules),
            options: binary.options.clone(),
            ..DeviceBuild::none()
        })
        .collect();
    let program = make(context, devices.to_vec(), Origin::Binaries, read);
    *program.builds.lock() = known;
    Ok((Some(program), statuses))
}

/// One device's share of a build: what to do, decided before anything is changed.
enum Job {
    Source(String),
    Il(Module),
    Binary(usize),
}

impl Program {
    /// Its context.
    pub fn context(&self) -> &Ref<Context> {
        &self.context
    }

    /// Its devices.
    pub fn devices(&self) -> &[Ref<Device>] {
        &self.devices
    }

    /// The source text, if it was made from that.
    pub fn source(&self) -> Option<&str> {
        match &self.origin {
            Origin::Source(text) => Some(text),
            _ => None,
        }
    }

    fn device_index(&self, device: &Ref<Device>) -> ClResult<usize> {
        match self
            .devices
            .iter()
            .position(|known| Arc::ptr_eq(known, device))
        {
            Some(index) => Ok(index),
            None => err(
                cl::CL_INVALID_DEVICE,
                "the device is not one of the program's",
            ),
        }
    }

    fn indices(&self, devices: Option<&[Ref<Device>]>) -> ClResult<Vec<usize>> {
        match devices {
            None => Ok((0..self.devices.len()).collect()),
            Some(list) => list.iter().map(|d| self.device_index(d)).collect(),
        }
    }

    /// Refuses to build while kernels exist or a build is under way; then marks the builds as in progress.
    fn begin(&self, indices: &[usize], options: &str) -> ClResult {
        if self.kernels.load(Ordering::Acquire) > 0 {
            return err(
                cl::CL_INVALID_OPERATION,
                "the program has kernels attached to it",
            );
        }
        let mut builds = self.builds.lock();
        if builds.iter().any(|b| b.status == cl::CL_BUILD_IN_PROGRESS) {
            return err(
                cl::CL_INVALID_OPERATION,
                "the program is being built already",
            );
        }
        for &index in indices {
            if let Some(build) = builds.get_mut(index) {
                build.status = cl::CL_BUILD_IN_PROGRESS;
                build.options = options.to_owned();
                build.log.clear();
                build.executable = None;
            }
        }
        Ok(())
    }

    fn build_now(&self, indices: &[usize], options: &BuildOptions) -> bool {
        let mut good = true;
        for &index in indices {
            let job = match &self.origin {
                Origin::Source(text) => Job::Source(text.clone()),
                Origin::Il { words, .. } => Job::Il(words.clone()),
                Origin::Binaries | Origin::Linked => Job::Binary(index),
            };
            let built = self.build_device(index, job, options);
            good &= built.status == cl::CL_BUILD_SUCCESS;
            self.finish(index, built);
        }
        good
    }

    fn finish(&self, index: usize, built: DeviceBuild) {
        if let Some(build) = self.builds.lock().get_mut(index) {
            let options = std::mem::take(&mut build.options);
            *build = DeviceBuild { options, ..built };
        }
    }

    fn build_device(&self, index: usize, job: Job, options: &BuildOptions) -> DeviceBuild {
        let mut build = DeviceBuild {
            status: cl::CL_BUILD_ERROR,
            ..DeviceBuild::none()
        };
        let Some(device) = self.devices.get(index) else {
            return build;
        };
        let mut spec_constants = self.spec_constants.lock().clone();
        match job {
            Job::Source(text) => {
                let (module, log) = compile::compile_source(&text, &[], options, device.language());
                build.log = log;
                let Some(module) = module else { return build };
                build.units = vec![module.into()];
            }
            Job::Il(words) => {
                if let Err(what) = check_capabilities(device, &words) {
                    build.log = what;
                    return build;
                }
                build.units = vec![words.into()];
            }
            Job::Binary(index) => {
                let Some(binary) = self.binaries.get(index).and_then(Option::as_ref) else {
                    return build;
                };
                build.units = units(&binary.modules);
                spec_constants = binary.spec_constants.clone();
                let mut merged = options.clone();
                if let Some(old) = binary.parsed_options() {
                    merged.merge_link_options(&old);
                    merged.correctly_rounded_divide_sqrt |= old.correctly_rounded_divide_sqrt;
                }
                if let Some(executable) = binary.executable_for(device.backend(), &merged) {
                    build.executable = Some(Arc::new(executable));
                    build.kind = cl::CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
                    build.status = cl::CL_BUILD_SUCCESS;
                    return build;
                }
                return make_executable(build, device, &spec_constants, &merged);
            }
        }
        make_executable(build, device, &spec_constants, options)
    }

    fn compile_now(
        &self,
        indices: &[usize],
        options: &BuildOptions,
        headers: &[Header<'_>],
    ) -> bool {
        let mut good = true;
        for &index in indices {
            let mut build = DeviceBuild {
                status: cl::CL_BUILD_ERROR,
                ..DeviceBuild::none()
            };
            let unit = match (&self.origin, self.devices.get(index)) {
                (Origin::Source(text), Some(device)) => {
                    let (unit, log) =
                        unit::compile_source(text, headers, options, device.language());
                    build.log = log;
                    unit
                }
                (Origin::Il { words, .. }, Some(device)) => {
                    match check_capabilities(device, words) {
                        Ok(()) => {
                            let values = self.spec_constants.lock().clone();
                            let frozen = compile::spec_constants::frozen(words, &values);
                            Some(Unit::Spirv(Arc::new(frozen)))
                        }
                        Err(what) => {
                            build.log = what;
                            None
                        }
                    }
                }
                _ => None,
            };
            if let Some(unit) = unit {
                let good = match &unit {
                    Unit::Spirv(module) => {
                        executable::read_all(std::slice::from_ref(module), &[]).map(|_| ())
                    }
                    // Made into SPIR-V when it is linked.
                    Unit::Read(_) => Ok(()),
                };
                match good {
                    Ok(()) => {
                        build.status = cl::CL_BUILD_SUCCESS;
                        build.kind = cl::CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT;
                        build.units = vec![unit];
                    }
                    Err(Failure(what)) => build.log += &what,
                }
            }
            good &= build.status == cl::CL_BUILD_SUCCESS;
            self.finish(index, build);
        }
        good
    }

    /// clSetProgramSpecializationConstant.
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
        if constant.size as usize != value.len() {
            return err(
                cl::CL_INVALID_VALUE,
                format!("specialisation constant {id} has {} bytes", constant.size),
            );
        }
        let mut constants = self.spec_constants.lock();
        constants.retain(|(known, _)| *known != id);
        constants.push((id, value.to_vec()));
        Ok(())
    }

    /// clSetProgramReleaseCallback: no device has program-scope constructors and destructors, in whose place the
    /// specification put the callback.
    pub fn set_release_callback(&self) -> ClResult {
        err(
            cl::CL_INVALID_OPERATION,
            "no device has program-scope constructors and destructors",
        )
    }

    /// The executables with their devices, and whether their work-groups must be uniform; an error when there is none.
    fn executables(&self) -> ClResult<Vec<(Ref<Device>, Arc<Executable>, bool)>> {
        let builds = self.builds.lock();
        let found: Vec<_> = self
            .devices
            .iter()
            .zip(builds.iter())
            .filter_map(|(device, build)| {
                Some((
                    device.clone(),
                    build.executable.clone()?,
                    self.is_uniform(build),
                ))
            })
            .collect();
        if found.is_empty() {
            return err(
                cl::CL_INVALID_PROGRAM_EXECUTABLE,
                "the program has not been built",
            );
        }
        Ok(found)
    }

    /// The build demands uniform work-groups: OpenCL C before 2.0, or -cl-uniform-work-group-size.
    fn is_uniform(&self, build: &DeviceBuild) -> bool {
        let Ok(options) = BuildOptions::parse(&build.options, Stage::Build) else {
            return false;
        };
        let old = options.std.is_none_or(|std| std < ClStd::C20);
        options.uniform_work_group_size || (matches!(self.origin, Origin::Source(_)) && old)
    }

    /// CL_PROGRAM_KERNEL_NAMES, as a list.
    pub fn kernel_names(&self) -> ClResult<Vec<String>> {
        let executables = self.executables()?;
        let first = executables.first().map(|(_, e, _)| e);
        let names = first
            .iter()
            .flat_map(|e| e.kernels())
            .map(|k| k.lowered.interface.name.clone());
        Ok(names.collect())
    }

    /// CL_PROGRAM_BINARIES: one a device, empty where there is none.
    pub fn binaries(&self) -> Vec<Vec<u8>> {
        let builds = self.builds.lock().clone();
        let spec_constants = self.spec_constants.lock().clone();
        self.devices
            .iter()
            .zip(&builds)
            .map(|(device, build)| {
                if build.kind == cl::CL_PROGRAM_BINARY_TYPE_NONE || build.units.is_empty() {
                    return Vec::new();
                }
                let modules = match unit::for_library(&build.units) {
                    Ok(modules) => modules,
                    Err(Failure(what)) => {
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
                        device.backend().as_ref(),
                        &binary.modules,
                        &spec_constants,
                        &options,
                    );
                    binary.executable = Some((key.name().into_bytes(), executable.to_bytes()));
                }
                binary.to_bytes(device.backend().as_ref())
            })
            .collect()
    }

    /// clGetProgramBuildInfo.
    pub fn build_info(
        &self,
        device: &Ref<Device>,
        param: cl_uint,
        out: InfoOut<'_>,
    ) -> ClResult<Written> {
        let index = self.device_index(device)?;
        let Some(build) = self.builds.lock().get(index).cloned() else {
            return err(
                cl::CL_INVALID_DEVICE,
                "the device is not one of the program's",
            );
        };
        match param {
            cl::CL_PROGRAM_BUILD_STATUS => out.write(build.status),
            cl::CL_PROGRAM_BUILD_OPTIONS => out.write(build.options.as_str()),
            cl::CL_PROGRAM_BUILD_LOG => out.write(build.log.as_str()),
            cl::CL_PROGRAM_BINARY_TYPE => out.write(build.kind),
            cl::CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE => {
                let size = build.executable.map_or(0, |e| e.globals().writable_size);
                out.write(size as usize)
            }
            _ => unknown(param),
        }
    }

    /// clGetKernelArgInfo may answer: the types' names are those of the source.
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

    /// Builds that are under way come to nothing.
    fn give_up(&self) {
        for build in self.builds.lock().iter_mut() {
            if build.status == cl::CL_BUILD_IN_PROGRESS {
                build.status = cl::CL_BUILD_ERROR;
                build.log += "the build ended by a defect of the driver\n";
            }
        }
    }

    pub(super) fn attach_kernel(&self) {
        self.kernels.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn detach_kernel(&self) {
        self.kernels.fetch_sub(1, Ordering::AcqRel);
    }
}

// Methods that need the reference to themselves.
impl Object<Program> {
    /// clBuildProgram. With `notify` it returns at once and builds in a thread.
    pub fn build(
        self: &Arc<Self>,
        devices: Option<&[Ref<Device>]>,
        options: &str,
        notify: Option<Notify>,
    ) -> ClResult {
        let indices = self.indices(devices)?;
        let parsed = BuildOptions::parse(options, Stage::Build)
            .or_else(|what| match self.origin {
                // A linked binary is built again with the options it was linked with.
                Origin::Binaries => BuildOptions::parse(options, Stage::Link).map_err(|_| what),
                _ => Err(what),
            })
            .map_err(|what| ClError::new(cl::CL_INVALID_BUILD_OPTIONS, what))?;
        if matches!(self.origin, Origin::Linked) {
            return err(
                cl::CL_INVALID_OPERATION,
                "the program was made by clLinkProgram",
            );
        }
        self.begin(&indices, options)?;
        let program = self.clone();
        run(self, notify, cl::CL_BUILD_PROGRAM_FAILURE, move || {
            program.build_now(&indices, &parsed)
        })
    }

    /// clCompileProgram.
    pub fn compile(
        self: &Arc<Self>,
        devices: Option<&[Ref<Device>]>,
        options: &str,
        headers: &[(String, Ref<Program>)],
        notify: Option<Notify>,
    ) -> ClResult {
        let indices = self.indices(devices)?;
        let parsed = BuildOptions::parse(options, Stage::Compile)
            .map_err(|what| ClError::new(cl::CL_INVALID_COMPILER_OPTIONS, what))?;
        if matches!(self.origin, Origin::Binaries | Origin::Linked) {
            return err(
                cl::CL_INVALID_OPERATION,
                "the program has neither source nor IL",
            );
        }
        let mut texts = Vec::with_capacity(headers.len());
        for (name, header) in headers {
            if !Arc::ptr_eq(header.context(), &self.context) {
                return err(
                    cl::CL_INVALID_CONTEXT,
                    "a header program is of another context",
                );
            }
            let Some(text) = header.source() else {
                return err(
                    cl::CL_INVALID_PROGRAM,
                    "a header program was not made from source",
                );
            };
            texts.push((name.clone(), text.to_owned()));
        }
        self.begin(&indices, options)?;
        let program = self.clone();
        run(self, notify, cl::CL_COMPILE_PROGRAM_FAILURE, move || {
            let headers: Vec<Header<'_>> = texts
                .iter()
                .map(|(name, text)| Header { name, text })
                .collect();
            program.compile_now(&indices, &parsed, &headers)
        })
    }

    /// clCreateKernel.
    pub fn create_kernel(self: &Arc<Self>, name: &str) -> ClResult<Ref<Kernel>> {
        Kernel::create(self, &self.executables()?, name)
    }

    /// clCreateKernelsInProgram.
    pub fn create_kernels(self: &Arc<Self>) -> ClResult<Vec<Ref<Kernel>>> {
        self.kernel_names()?
            .iter()
            .map(|name| self.create_kernel(name))
            .collect()
    }

    /// clGetProgramInfo, without CL_PROGRAM_BINARIES (the C edge copies those from [`Program::binaries`]).
    pub fn info(self: &Arc<Self>, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match param {
            cl::CL_PROGRAM_REFERENCE_COUNT => out.write(self.api_refs()),
            cl::CL_PROGRAM_CONTEXT => out.write(self.context.handle()),
            cl::CL_PROGRAM_NUM_DEVICES => out.write(self.devices.len() as cl_uint),
            cl::CL_PROGRAM_DEVICES => {
                let handles: Vec<*mut c_void> = self.devices.iter().map(|d| d.handle()).collect();
                out.write(handles.as_slice())
            }
            cl::CL_PROGRAM_SOURCE => out.write(self.source().unwrap_or_default()),
            cl::CL_PROGRAM_IL => match &self.origin {
                Origin::Il { bytes, .. } => out.write(bytes.as_slice()),
                _ => out.write(&[] as &[u8]),
            },
            cl::CL_PROGRAM_BINARY_SIZES => {
                let sizes: Vec<usize> = self.binaries().iter().map(Vec::len).collect();
                out.write(sizes.as_slice())
            }
            cl::CL_PROGRAM_NUM_KERNELS => out.write(self.kernel_names()?.len()),
            cl::CL_PROGRAM_KERNEL_NAMES => out.write(self.kernel_names()?.join(";").as_str()),
            cl::CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT
            | cl::CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT => out.write(false),
            _ => unknown(param),
        }
    }
}

/// `Err`: what the build log says of a capability that the device lacks.
fn check_capabilities(device: &Ref<Device>, words: &[u32]) -> Result<(), String> {
    compile::capabilities::check(words, &device.features().spirv_capabilities())
}

/// SPIR-V modules, as what is linked.
fn units(modules: &[Module]) -> Vec<Unit> {
    modules.iter().cloned().map(Unit::Spirv).collect()
}

fn make_executable(
    mut build: DeviceBuild,
    device: &Ref<Device>,
    spec_constants: &[(u32, Vec<u8>)],
    options: &BuildOptions,
) -> DeviceBuild {
    let built = unit::for_executable(&build.units).and_then(|modules| {
        build.units = units(&modules);
        Executable::build(device.backend(), &modules, spec_constants, options)
    });
    match built {
        Ok(executable) => {
            build.executable = Some(Arc::new(executable));
            build.kind = cl::CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
            build.status = cl::CL_BUILD_SUCCESS;
        }
        Err(Failure(what)) => build.log += &what,
    }
    build
}

/// Runs a build here, or in a thread of its own when the application wants to be told of its end.
fn run(
    program: &Ref<Program>,
    notify: Option<Notify>,
    failure: cl_int,
    work: impl FnOnce() -> bool + Send + 'static,
) -> ClResult {
    let Some(notify) = notify else {
        return match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            Ok(true) => Ok(()),
            Ok(false) => err(failure, "see the build log"),
            Err(_) => {
                program.give_up();
                err(failure, "the build ended by a defect of the driver")
            }
        };
    };
    let kept = program.clone();
    let body = move || {
        let _call = Call::enter_or_stay();
        // A defect of ours must not leave the application waiting for its callback.
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
            kept.give_up();
        }
        notify.call(kept.handle());
    };
    match std::thread::Builder::new()
        .name("pumice-build".into())
        .spawn(body)
    {
        Ok(_) => Ok(()),
        Err(error) => {
            program.give_up();
            err(
                cl::CL_OUT_OF_HOST_MEMORY,
                format!("cannot start a build thread: {error}"),
            )
        }
    }
}

/// clLinkProgram: the new program, and the error if linking failed (both, when it could begin).
pub fn link(
    context: &Ref<Context>,
    devices: Option<&[Ref<Device>]>,
    options: &str,
    inputs: &[Ref<Program>],
    notify: Option<Notify>,
) -> ClResult<(Ref<Program>, ClResult)> {
    let devices = match devices {
        None => context.devices().to_vec(),
        Some(list) => list.to_vec(),
    };
    for device in &devices {
        context.device_index(device)?;
    }
    if inputs.is_empty() {
        return err(cl::CL_INVALID_VALUE, "no input programs");
    }
    if inputs
        .iter()
        .any(|input| !Arc::ptr_eq(input.context(), context))
    {
        return err(
            cl::CL_INVALID_CONTEXT,
            "an input program is of another context",
        );
    }
    let parsed = BuildOptions::parse(options, Stage::Link)
        .map_err(|what| ClError::new(cl::CL_INVALID_LINKER_OPTIONS, what))?;
    let mut jobs = Vec::with_capacity(devices.len());
    for device in &devices {
        jobs.push(link_inputs(device, inputs, &parsed)?);
    }
    let program = make(context, devices.clone(), Origin::Linked, Vec::new());
    let indices: Vec<usize> = (0..devices.len()).collect();
    program.begin(&indices, options)?;
    let target = program.clone();
    let result = run(&program, notify, cl::CL_LINK_PROGRAM_FAILURE, move || {
        let mut good = true;
        for (index, ((units, merged), device)) in jobs.into_iter().zip(&devices).enumerate() {
            let build = DeviceBuild {
                status: cl::CL_BUILD_ERROR,
                units,
                ..DeviceBuild::none()
            };
            let build = if parsed.create_library {
                make_library(build)
            } else {
                make_executable(build, device, &[], &merged)
            };
            good &= build.status == cl::CL_BUILD_SUCCESS;
            target.finish(index, build);
        }
        good
    });
    Ok((program, result))
}

type LinkJob = (Vec<Unit>, BuildOptions);

/// What the input programs have for a device.
fn link_inputs(
    device: &Ref<Device>,
    inputs: &[Ref<Program>],
    options: &BuildOptions,
) -> ClResult<LinkJob> {
    let mut job: LinkJob = (Vec::new(), options.clone());
    for input in inputs {
        let index = match input.device_index(device) {
            Ok(index) => index,
            Err(_) => {
                return err(
                    cl::CL_INVALID_OPERATION,
                    "an input program has nothing for a device",
                )
            }
        };
        let build = input.builds.lock().get(index).cloned();
        let linkable = [
            cl::CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT,
            cl::CL_PROGRAM_BINARY_TYPE_LIBRARY,
        ];
        let Some(build) = build.filter(|b| linkable.contains(&b.kind)) else {
            return err(
                cl::CL_INVALID_OPERATION,
                "an input program is neither a compiled object nor a library",
            );
        };
        job.0.extend(build.units);
        if let Ok(compiled) = BuildOptions::parse(&build.options, Stage::Compile) {
            job.1.correctly_rounded_divide_sqrt |= compiled.correctly_rounded_divide_sqrt;
            job.1.merge_link_options(&compiled);
        }
    }
    Ok(job)
}

fn make_library(mut build: DeviceBuild) -> DeviceBuild {
    let checked = unit::for_library(&build.units).and_then(|modules| {
        build.units = units(&modules);
        executable::check_library(&modules)
    });
    match checked {
        Ok(()) => {
            build.status = cl::CL_BUILD_SUCCESS;
            build.kind = cl::CL_PROGRAM_BINARY_TYPE_LIBRARY;
        }
        Err(Failure(what)) => build.log += &what,
    }
    build
}

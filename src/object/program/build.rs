//! clBuildProgram and clCompileProgram: what each device's build is made of, and when.

use super::{DeviceBuild, Origin, Program};
use crate::cl::{self, cl_int};
use crate::compile::{
    self, executable, linkable, BuildCall, BuildFailure, BuildOptions, Executable, Header,
    Linkable, SpirvModule,
};
use crate::error::{ensure, ClError, ClResult, OrErr};
use crate::handle::{Object, Ref};
use crate::object::callback::{Callback, ObjectFn};
use crate::object::device::Device;
use crate::util::shutdown::Call;
use crate::util::thread;
use std::sync::atomic::Ordering;
use std::sync::Arc;

impl Program {
    /// Marks the builds as in progress. Fails if kernels exist or a build is in progress.
    pub(super) fn begin(&self, indices: &[usize], options: &str) -> ClResult {
        ensure!(
            self.kernels.load(Ordering::Acquire) == 0,
            cl::CL_INVALID_OPERATION,
            "the program has kernels attached to it"
        );
        let mut builds = self.builds.lock();
        ensure!(
            !builds.iter().any(|b| b.status == cl::CL_BUILD_IN_PROGRESS),
            cl::CL_INVALID_OPERATION,
            "the program is being built already"
        );
        // Their finalizers run when they go, which takes its time: not under the lock.
        let mut replaced = Vec::new();
        for &index in indices {
            if let Some(build) = builds.get_mut(index) {
                build.status = cl::CL_BUILD_IN_PROGRESS;
                build.options = options.to_owned();
                build.log.clear();
                replaced.extend(build.executable.take());
            }
        }
        drop(builds);
        Ok(())
    }

    fn build_now(&self, indices: &[usize], options: &BuildOptions) -> bool {
        let mut good = true;
        let mut done: Vec<usize> = Vec::new();
        for &index in indices {
            // Devices that are parts of one another run the same code.
            let same = done.iter().find(|other| self.same_code(**other, index));
            if let Some(built) = same.and_then(|other| self.builds.lock().get(*other).cloned()) {
                self.finish(index, built);
                continue;
            }
            done.push(index);
            let built = self.build_device(index, options);
            good &= built.status == cl::CL_BUILD_SUCCESS;
            self.finish(index, built);
        }
        good
    }

    fn same_code(&self, one: usize, other: usize) -> bool {
        let pair = (self.devices.get(one), self.devices.get(other));
        matches!(pair, (Some(one), Some(other)) if Arc::ptr_eq(Device::root(one), Device::root(other)))
            && self.binaries.is_empty()
    }

    /// Adds the sub-devices that the program has: a build for a device is one for them too.
    fn with_parts(&self, mut indices: Vec<usize>) -> Vec<usize> {
        for (index, device) in self.devices.iter().enumerate() {
            let within = |whole: &usize| {
                self.devices
                    .get(*whole)
                    .is_some_and(|w| device.is_within(w))
            };
            if device.parent().is_some() && !indices.contains(&index) && indices.iter().any(within)
            {
                indices.push(index);
            }
        }
        indices
    }

    pub(super) fn finish(&self, index: usize, built: DeviceBuild) {
        if let Some(executable) = &built.executable {
            executable.keep_until_finalized(self.released.clone());
        }
        if let Some(build) = self.builds.lock().get_mut(index) {
            let options = std::mem::take(&mut build.options);
            *build = DeviceBuild { options, ..built };
        }
        self.built.notify_all();
    }

    fn build_device(&self, index: usize, options: &BuildOptions) -> DeviceBuild {
        let mut build = DeviceBuild::failed();
        let Some(device) = self.devices.get(index) else {
            return build;
        };
        let mut spec_constants = self.spec_constants.lock().clone();
        match &self.origin {
            Origin::Source(text) => {
                let (module, log) = compile::compile_source(text, &[], options, &device.language);
                build.log = log;
                let Some(module) = module else { return build };
                build.linkables = vec![module.into()];
            }
            Origin::Il { words, .. } => {
                if let Err(failure) = check_capabilities(device, words) {
                    return build.end(Err(failure));
                }
                build.linkables = vec![words.clone().into()];
            }
            Origin::Binaries | Origin::Linked => {
                let Some(binary) = self.binaries.get(index).and_then(Option::as_ref) else {
                    return build;
                };
                build.linkables = linkables(&binary.modules);
                spec_constants = binary.spec_constants.clone();
                let mut merged = options.clone();
                if let Some(old) = binary.parsed_options() {
                    merged.merge_link_options(&old);
                    merged.correctly_rounded_divide_sqrt |= old.correctly_rounded_divide_sqrt;
                }
                if let Some(executable) = executable::of_binary(binary, &device.backend, &merged) {
                    build.executable = Some(Arc::new(executable));
                    return build.end(Ok(cl::CL_PROGRAM_BINARY_TYPE_EXECUTABLE));
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
            let mut build = DeviceBuild::failed();
            let none = || BuildFailure(String::new());
            let compiled = match (&self.origin, self.devices.get(index)) {
                (Origin::Source(text), Some(device)) => {
                    let (linkable, log) =
                        linkable::compile_source(text, headers, options, &device.language);
                    build.log = log;
                    linkable.ok_or_else(none)
                }
                (Origin::Il { words, .. }, Some(device)) => {
                    check_capabilities(device, words).map(|()| {
                        let values = self.spec_constants.lock();
                        let frozen = compile::spec_constants::frozen(words, &values);
                        Linkable::Spirv(Arc::new(frozen))
                    })
                }
                _ => Err(none()),
            };
            let made = compiled.and_then(|linkable| {
                // Other forms are made into SPIR-V when they are linked.
                if let Linkable::Spirv(module) = &linkable {
                    executable::read_all(std::slice::from_ref(module), &[])?;
                }
                build.linkables = vec![linkable];
                Ok(cl::CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT)
            });
            let build = build.end(made);
            good &= build.status == cl::CL_BUILD_SUCCESS;
            self.finish(index, build);
        }
        good
    }

    /// Cancels the builds that are in progress.
    pub(super) fn give_up(&self) {
        for build in self.builds.lock().iter_mut() {
            if build.status == cl::CL_BUILD_IN_PROGRESS {
                build.status = cl::CL_BUILD_ERROR;
                build.log += "the build ended by a defect of the driver\n";
            }
        }
        self.built.notify_all();
    }
}

impl Object<Program> {
    /// Implements clBuildProgram. With `notify` it returns at once and builds in a thread.
    pub fn build(
        self: &Arc<Self>,
        devices: Option<&[Ref<Device>]>,
        options: &str,
        notify: Option<Callback<ObjectFn>>,
    ) -> ClResult {
        let indices = self.with_parts(self.indices(devices)?);
        let parsed = BuildOptions::parse(options, BuildCall::Build)
            .or_else(|what| match self.origin {
                // A linked binary is built again with the options it was linked with.
                Origin::Binaries => BuildOptions::parse(options, BuildCall::Link).map_err(|_| what),
                _ => Err(what),
            })
            .map_err(|what| ClError::new(cl::CL_INVALID_BUILD_OPTIONS, what))?
            .with_zeroed(self.context.zeroed);
        ensure!(
            !matches!(self.origin, Origin::Linked),
            cl::CL_INVALID_OPERATION,
            "the program was made by clLinkProgram"
        );
        self.begin(&indices, options)?;
        let program = self.clone();
        run(self, notify, cl::CL_BUILD_PROGRAM_FAILURE, move || {
            program.build_now(&indices, &parsed)
        })
    }

    /// Implements clCompileProgram.
    pub fn compile(
        self: &Arc<Self>,
        devices: Option<&[Ref<Device>]>,
        options: &str,
        headers: &[(String, Ref<Program>)],
        notify: Option<Callback<ObjectFn>>,
    ) -> ClResult {
        let indices = self.indices(devices)?;
        let parsed = BuildOptions::parse(options, BuildCall::Compile)
            .map_err(|what| ClError::new(cl::CL_INVALID_COMPILER_OPTIONS, what))?
            .with_zeroed(self.context.zeroed);
        ensure!(
            !matches!(self.origin, Origin::Binaries | Origin::Linked),
            cl::CL_INVALID_OPERATION,
            "the program has neither source nor IL"
        );
        let mut texts = Vec::with_capacity(headers.len());
        for (name, header) in headers {
            ensure!(
                Arc::ptr_eq(&header.context, &self.context),
                cl::CL_INVALID_CONTEXT,
                "a header program is of another context"
            );
            let text = header.source().or_err(
                cl::CL_INVALID_PROGRAM,
                "a header program was not made from source",
            )?;
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
}

/// Checks that the device has the capabilities of a module. The error is the text of the build log.
fn check_capabilities(device: &Ref<Device>, words: &[u32]) -> Result<(), BuildFailure> {
    let has = device.features.spirv_capabilities();
    compile::check::capabilities::check(words, &has).map_err(BuildFailure)
}

/// Returns SPIR-V modules in the form that can be linked.
pub(super) fn linkables(modules: &[SpirvModule]) -> Vec<Linkable> {
    modules.iter().cloned().map(Linkable::Spirv).collect()
}

pub(super) fn make_executable(
    mut build: DeviceBuild,
    device: &Ref<Device>,
    spec_constants: &[(u32, Vec<u8>)],
    options: &BuildOptions,
) -> DeviceBuild {
    let built = linkable::for_executable(&build.linkables).and_then(|modules| {
        build.linkables = linkables(&modules);
        let made = Executable::build(&device.backend, &modules, spec_constants, options)?;
        build.executable = Some(Arc::new(made));
        Ok(cl::CL_PROGRAM_BINARY_TYPE_EXECUTABLE)
    });
    build.end(built)
}

/// Runs a build in the calling thread, or in a thread of its own if the application requests a
/// callback at its end.
pub(super) fn run(
    program: &Ref<Program>,
    notify: Option<Callback<ObjectFn>>,
    failure: cl_int,
    work: impl FnOnce() -> bool + Send + 'static,
) -> ClResult {
    let built = program.clone();
    // A defect of ours must not leave the application waiting for its callback.
    let work = move || {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        done.unwrap_or_else(|_| {
            built.give_up();
            false
        })
    };
    let Some(notify) = notify else {
        ensure!(work(), failure, "see the build log");
        return Ok(());
    };
    let kept = program.clone();
    let body = move || {
        let _call = Call::enter_or_stay();
        work();
        notify.call(kept.handle() as usize);
    };
    thread::spawn("pumice-build", body).map_err(|error| {
        program.give_up();
        let what = format!("cannot start a build thread: {error}");
        ClError::new(cl::CL_OUT_OF_HOST_MEMORY, what)
    })
}

//! clLinkProgram: executables and libraries of compiled programs.

use super::build::{linkables, make_executable, run};
use super::{make, DeviceBuild, Origin, Program};
use crate::cl::{self};
use crate::compile::{executable, linkable, BuildCall, BuildOptions, Linkable};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::Ref;
use crate::object::callback::{Callback, ObjectFn};
use crate::object::context::Context;
use crate::object::device::Device;
use std::ffi::c_void;
use std::sync::Arc;

type LinkJob = (Vec<Linkable>, BuildOptions);

/// Implements clLinkProgram: the handle of the new program, and the error if linking failed (both,
/// when it could begin). The application has its reference before `notify` is called, which may
/// release it.
pub fn link(
    context: &Ref<Context>,
    devices: Option<&[Ref<Device>]>,
    options: &str,
    inputs: &[Ref<Program>],
    notify: Option<Callback<ObjectFn>>,
) -> ClResult<(*mut c_void, ClResult)> {
    let devices = match devices {
        None => context.devices.to_vec(),
        Some(list) => list.to_vec(),
    };
    for device in &devices {
        context.device_index(device)?;
    }
    ensure!(
        !inputs.is_empty(),
        cl::CL_INVALID_VALUE,
        "no input programs"
    );
    ensure!(
        inputs
            .iter()
            .all(|input| Arc::ptr_eq(&input.context, context)),
        cl::CL_INVALID_CONTEXT,
        "an input program is of another context"
    );
    let parsed = BuildOptions::parse(options, BuildCall::Link)
        .map_err(|what| ClError::new(cl::CL_INVALID_LINKER_OPTIONS, what))?
        .with_zeroed(context.zeroed);
    let mut jobs = Vec::with_capacity(devices.len());
    for device in &devices {
        jobs.push(link_inputs(device, inputs, &parsed)?);
    }
    let program = make(context, devices.clone(), Origin::Linked, Vec::new());
    let indices: Vec<usize> = (0..devices.len()).collect();
    program.begin(&indices, options)?;
    let handle = program.publish();
    let target = program.clone();
    let result = run(&program, notify, cl::CL_LINK_PROGRAM_FAILURE, move || {
        let mut good = true;
        for (index, ((linkables, merged), device)) in jobs.into_iter().zip(&devices).enumerate() {
            let build = DeviceBuild {
                linkables,
                ..DeviceBuild::failed()
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
    Ok((handle, result))
}

/// Collects what the input programs have for a device.
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
        let build = build.filter(|b| linkable.contains(&b.kind)).or_err(
            cl::CL_INVALID_OPERATION,
            "an input program is neither a compiled object nor a library",
        )?;
        job.0.extend(build.linkables);
        if let Ok(compiled) = BuildOptions::parse(&build.options, BuildCall::Compile) {
            job.1.correctly_rounded_divide_sqrt |= compiled.correctly_rounded_divide_sqrt;
            job.1.merge_link_options(&compiled);
        }
    }
    Ok(job)
}

fn make_library(mut build: DeviceBuild) -> DeviceBuild {
    let made = linkable::for_library(&build.linkables).and_then(|modules| {
        build.linkables = linkables(&modules);
        executable::check_library(&modules)?;
        Ok(cl::CL_PROGRAM_BINARY_TYPE_LIBRARY)
    });
    build.end(made)
}

//! Commands of a command buffer.

use super::{
    buffer, extension, kernel, set, Ended, Objects, Outcome, Stop, World, BYTES, COUNT, MEMORY,
};
use opencl_sys as sys;
use pumice_tests::call;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// A command buffer, which is replayed, and again after an update.
pub fn recorded(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let create: sys::clCreateCommandBufferKHR_fn = extension(world, c"clCreateCommandBufferKHR")?;
    let release: sys::clReleaseCommandBufferKHR_fn =
        extension(world, c"clReleaseCommandBufferKHR")?;
    let finalize: sys::clFinalizeCommandBufferKHR_fn =
        extension(world, c"clFinalizeCommandBufferKHR")?;
    let enqueue: sys::clEnqueueCommandBufferKHR_fn =
        extension(world, c"clEnqueueCommandBufferKHR")?;
    let fill: sys::clCommandFillBufferKHR_fn = extension(world, c"clCommandFillBufferKHR")?;
    let launch: sys::clCommandNDRangeKernelKHR_fn = extension(world, c"clCommandNDRangeKernelKHR")?;
    let update: sys::clUpdateMutableCommandsKHR_fn =
        extension(world, c"clUpdateMutableCommandsKHR")?;
    let object = buffer(o, objects, world)?;
    let add = kernel(o, objects, world, c"add")?;
    set(o, add, 0, &object)?;
    set(o, add, 1, &5i32)?;
    let mut code = 1;
    let mutable = sys::CL_COMMAND_BUFFER_MUTABLE_KHR;
    let properties = [sys::CL_COMMAND_BUFFER_FLAGS_KHR, mutable, 0];
    let list = properties.as_ptr();
    let commands = extended!(create, (1, &world.queue, list, &mut code));
    o.check("clCreateCommandBufferKHR", code, &[])?;
    objects.push(move || {
        if let Some(release) = release {
            // SAFETY: it lives until here.
            unsafe { release(commands) };
        }
    });
    let (none, nobody, pattern) = (null(), null_mut(), 2i32);
    let pattern = (&raw const pattern).cast();
    let size = COUNT;
    let code = extended!(
        fill,
        (
            commands,
            nobody,
            none,
            object,
            pattern,
            4,
            0,
            BYTES,
            0,
            null(),
            null_mut(),
            null_mut()
        )
    );
    o.check("clCommandFillBufferKHR", code, MEMORY)?;
    let mut command = null_mut();
    for _ in 0..2 {
        let code = extended!(
            launch,
            (
                commands,
                nobody,
                none,
                add,
                1,
                null(),
                &size,
                null(),
                0,
                null(),
                null_mut(),
                &mut command
            )
        );
        o.check("clCommandNDRangeKernelKHR", code, MEMORY)?;
    }
    let code = extended!(finalize, (commands));
    o.check("clFinalizeCommandBufferKHR", code, &[])?;
    for value in [5i32, 9] {
        if value != 5 {
            let arg = sys::cl_mutable_dispatch_arg_khr {
                arg_index: 1,
                arg_size: 4,
                arg_value: (&raw const value).cast(),
            };
            let config = sys::cl_mutable_dispatch_config_khr {
                command,
                num_args: 1,
                num_svm_args: 0,
                num_exec_infos: 0,
                work_dim: 0,
                arg_list: &arg,
                arg_svm_list: null(),
                exec_info_list: null(),
                global_work_offset: null(),
                global_work_size: null(),
                local_work_size: null(),
            };
            let kind = sys::CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR;
            let mut configs: *const c_void = (&raw const config).cast();
            let code = extended!(update, (commands, 1, &kind, &mut configs));
            o.check("clUpdateMutableCommandsKHR", code, MEMORY)?;
        }
        let mut replayed = Objects::default();
        let mut event = null_mut();
        let code = extended!(enqueue, (0, null_mut(), commands, 0, null(), &mut event));
        o.check("clEnqueueCommandBufferKHR", code, MEMORY)?;
        replayed.push(move || {
            call!(clReleaseEvent(event));
        });
        let failed = &[sys::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST];
        done!(o, failed, clWaitForEvents(1, &event));
        let mut last = 0i32;
        done!(
            o,
            MEMORY,
            clEnqueueReadBuffer(
                world.queue,
                object,
                sys::CL_TRUE,
                BYTES - 4,
                4,
                (&raw mut last).cast(),
                0,
                null(),
                null_mut()
            )
        );
        o.expect(last == 2 + 5 + value, "a replay has another result");
    }
    Ok(())
}

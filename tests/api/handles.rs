//! Null, foreign, wrong-typed and dead handles are refused by every function, with the error of its chapter.

use pumice_tests::sys::*;
use pumice_tests::{call, create, create_fails, fails, ok, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// A live object with the words that the loader needs, but of another type.
struct Foreign {
    setup: Setup,
    buffer: cl_mem,
    /// Looks like a handle to the loader, and is none of ours.
    copy: Box<[usize; 8]>,
}

impl Foreign {
    fn new() -> Self {
        let setup = Setup::new();
        let buffer = create!(clCreateBuffer(
            setup.context.0,
            CL_MEM_READ_WRITE,
            64,
            null_mut()
        ));
        // SAFETY: the first word of a handle is the address of a dispatch table, the second is the loader's.
        let [table, data] = unsafe { *setup.platform.cast::<[usize; 2]>() };
        Self {
            setup,
            buffer,
            copy: Box::new([table, data, 2, 3, 4, 5, 6, 7]),
        }
    }

    /// Handles that are no `kind`; the loader cannot check them itself.
    fn bad(&self, kind: &str) -> Vec<*mut c_void> {
        let unknown = (&raw const *self.copy).cast_mut().cast();
        let other = match kind {
            "context" => self.buffer,
            _ => self.setup.context.0,
        };
        vec![unknown, other]
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        call!(clReleaseMemObject(self.buffer));
    }
}

#[test]
fn platforms_and_devices() {
    let foreign = Foreign::new();
    for bad in foreign.bad("platform") {
        fails!(
            CL_INVALID_PLATFORM,
            clGetPlatformInfo(bad, CL_PLATFORM_NAME, 0, null_mut(), null_mut())
        );
        fails!(
            CL_INVALID_PLATFORM,
            clGetDeviceIDs(bad, CL_DEVICE_TYPE_ALL, 0, null_mut(), null_mut())
        );
        fails!(CL_INVALID_PLATFORM, clUnloadPlatformCompiler(bad));
    }
    for bad in foreign.bad("device") {
        fails!(
            CL_INVALID_DEVICE,
            clGetDeviceInfo(bad, CL_DEVICE_NAME, 0, null_mut(), null_mut())
        );
        fails!(CL_INVALID_DEVICE, clRetainDevice(bad));
        fails!(CL_INVALID_DEVICE, clReleaseDevice(bad));
        fails!(
            CL_INVALID_DEVICE,
            clCreateSubDevices(bad, null(), 0, null_mut(), null_mut())
        );
        let mut time = 0;
        fails!(CL_INVALID_DEVICE, clGetHostTimer(bad, &mut time));
        create_fails!(
            CL_INVALID_DEVICE,
            clCreateContext(null(), 1, &bad, None, null_mut())
        );
        create_fails!(
            CL_INVALID_DEVICE,
            clCreateCommandQueueWithProperties(foreign.setup.context.0, bad, null())
        );
    }
}

#[test]
fn contexts() {
    let foreign = Foreign::new();
    for bad in foreign.bad("context") {
        fails!(CL_INVALID_CONTEXT, clRetainContext(bad));
        fails!(CL_INVALID_CONTEXT, clReleaseContext(bad));
        fails!(
            CL_INVALID_CONTEXT,
            clGetContextInfo(bad, CL_CONTEXT_DEVICES, 0, null_mut(), null_mut())
        );
        let device = foreign.setup.device;
        create_fails!(
            CL_INVALID_CONTEXT,
            clCreateCommandQueueWithProperties(bad, device, null())
        );
        create_fails!(CL_INVALID_CONTEXT, clCreateCommandQueue(bad, device, 0));
        create_fails!(
            CL_INVALID_CONTEXT,
            clCreateBuffer(bad, CL_MEM_READ_WRITE, 64, null_mut())
        );
        create_fails!(
            CL_INVALID_CONTEXT,
            clCreateBufferWithProperties(bad, null(), CL_MEM_READ_WRITE, 64, null_mut())
        );
        create_fails!(CL_INVALID_CONTEXT, clCreateUserEvent(bad));
        let mut text = c"kernel void f() {}".as_ptr();
        create_fails!(
            CL_INVALID_CONTEXT,
            clCreateProgramWithSource(bad, 1, &mut text, null())
        );
        create_fails!(
            CL_INVALID_CONTEXT,
            clCreateProgramWithIL(bad, text.cast(), 8)
        );
        create_fails!(
            CL_INVALID_CONTEXT,
            clCreateImage(bad, 0, null(), null(), null_mut())
        );
        create_fails!(
            CL_INVALID_CONTEXT,
            clCreateSampler(bad, 0, CL_ADDRESS_NONE, CL_FILTER_NEAREST)
        );
        create_fails!(CL_INVALID_CONTEXT, clCreatePipe(bad, 0, 4, 4, null()));
        fails!(
            CL_INVALID_CONTEXT,
            clGetSupportedImageFormats(
                bad,
                CL_MEM_READ_WRITE,
                CL_MEM_OBJECT_IMAGE2D,
                0,
                null_mut(),
                null_mut()
            )
        );
        assert!(call!(clSVMAlloc(bad, CL_MEM_READ_WRITE, 64, 0)).is_null());
    }
}

#[test]
fn queues() {
    let foreign = Foreign::new();
    let buffer = foreign.buffer;
    let mut word = 0u32;
    let place: *mut c_void = (&raw mut word).cast();
    let e = CL_INVALID_COMMAND_QUEUE;
    for bad in foreign.bad("queue") {
        let codes = [
            call!(clRetainCommandQueue(bad)),
            call!(clReleaseCommandQueue(bad)),
            call!(clGetCommandQueueInfo(
                bad,
                CL_QUEUE_DEVICE,
                0,
                null_mut(),
                null_mut()
            )),
            call!(clFlush(bad)),
            call!(clFinish(bad)),
            call!(clEnqueueReadBuffer(
                bad,
                buffer,
                1,
                0,
                4,
                place,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueWriteBuffer(
                bad,
                buffer,
                1,
                0,
                4,
                place,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueFillBuffer(
                bad,
                buffer,
                place,
                4,
                0,
                4,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueCopyBuffer(
                bad,
                buffer,
                buffer,
                0,
                8,
                4,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueUnmapMemObject(
                bad,
                buffer,
                place,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueMarkerWithWaitList(bad, 0, null(), null_mut())),
            call!(clEnqueueBarrierWithWaitList(bad, 0, null(), null_mut())),
            call!(clEnqueueMigrateMemObjects(
                bad,
                1,
                &buffer,
                0,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueNDRangeKernel(
                bad,
                null_mut(),
                1,
                null(),
                &4,
                null(),
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueTask(bad, null_mut(), 0, null(), null_mut())),
            call!(clEnqueueNativeKernel(
                bad,
                None,
                null_mut(),
                0,
                0,
                null(),
                null_mut(),
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueSVMMap(bad, 1, 1, place, 4, 0, null(), null_mut())),
        ];
        assert_eq!(codes, [e; 17]);
        create_fails!(
            CL_INVALID_COMMAND_QUEUE,
            clEnqueueMapBuffer(bad, buffer, 1, CL_MAP_READ, 0, 4, 0, null(), null_mut())
        );
    }
}

#[test]
fn memory_objects() {
    let foreign = Foreign::new();
    let queue = foreign.setup.queue.0;
    let buffer = foreign.buffer;
    let mut word = 0u32;
    let place: *mut c_void = (&raw mut word).cast();
    let e = CL_INVALID_MEM_OBJECT;
    let mut bads = foreign.bad("mem");
    bads.push(null_mut());
    for bad in bads {
        let codes = [
            call!(clEnqueueReadBuffer(
                queue,
                bad,
                1,
                0,
                4,
                place,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueWriteBuffer(
                queue,
                bad,
                1,
                0,
                4,
                place,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueFillBuffer(
                queue,
                bad,
                place,
                4,
                0,
                4,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueCopyBuffer(
                queue,
                bad,
                buffer,
                0,
                8,
                4,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueCopyBuffer(
                queue,
                buffer,
                bad,
                0,
                8,
                4,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueUnmapMemObject(
                queue,
                bad,
                place,
                0,
                null(),
                null_mut()
            )),
            call!(clEnqueueMigrateMemObjects(
                queue,
                1,
                &bad,
                0,
                0,
                null(),
                null_mut()
            )),
        ];
        assert_eq!(codes, [e; 7]);
        create_fails!(
            CL_INVALID_MEM_OBJECT,
            clEnqueueMapBuffer(queue, bad, 1, CL_MAP_READ, 0, 4, 0, null(), null_mut())
        );
    }
    for bad in foreign.bad("mem") {
        fails!(CL_INVALID_MEM_OBJECT, clRetainMemObject(bad));
        fails!(CL_INVALID_MEM_OBJECT, clReleaseMemObject(bad));
        fails!(
            CL_INVALID_MEM_OBJECT,
            clGetMemObjectInfo(bad, CL_MEM_SIZE, 0, null_mut(), null_mut())
        );
        fails!(
            CL_INVALID_MEM_OBJECT,
            clGetImageInfo(bad, CL_IMAGE_FORMAT, 0, null_mut(), null_mut())
        );
        let region = cl_buffer_region { origin: 0, size: 4 };
        let region = (&raw const region).cast();
        let kind = CL_BUFFER_CREATE_TYPE_REGION;
        create_fails!(
            CL_INVALID_MEM_OBJECT,
            clCreateSubBuffer(bad, CL_MEM_READ_WRITE, kind, region)
        );
    }
}

#[test]
fn programs_and_kernels() {
    let foreign = Foreign::new();
    let device = foreign.setup.device;
    for bad in foreign.bad("program") {
        fails!(CL_INVALID_PROGRAM, clRetainProgram(bad));
        fails!(CL_INVALID_PROGRAM, clReleaseProgram(bad));
        fails!(
            CL_INVALID_PROGRAM,
            clBuildProgram(bad, 0, null(), null(), None, null_mut())
        );
        fails!(
            CL_INVALID_PROGRAM,
            clCompileProgram(
                bad,
                0,
                null(),
                null(),
                0,
                null(),
                null_mut(),
                None,
                null_mut()
            )
        );
        fails!(
            CL_INVALID_PROGRAM,
            clGetProgramInfo(bad, CL_PROGRAM_SOURCE, 0, null_mut(), null_mut())
        );
        fails!(
            CL_INVALID_PROGRAM,
            clGetProgramBuildInfo(bad, device, CL_PROGRAM_BUILD_LOG, 0, null_mut(), null_mut())
        );
        create_fails!(CL_INVALID_PROGRAM, clCreateKernel(bad, c"f".as_ptr()));
        fails!(
            CL_INVALID_PROGRAM,
            clCreateKernelsInProgram(bad, 0, null_mut(), null_mut())
        );
    }
    let queue = foreign.setup.queue.0;
    for bad in foreign.bad("kernel") {
        fails!(CL_INVALID_KERNEL, clRetainKernel(bad));
        fails!(CL_INVALID_KERNEL, clReleaseKernel(bad));
        fails!(CL_INVALID_KERNEL, clSetKernelArg(bad, 0, 4, null()));
        fails!(
            CL_INVALID_KERNEL,
            clGetKernelInfo(bad, CL_KERNEL_NUM_ARGS, 0, null_mut(), null_mut())
        );
        fails!(
            CL_INVALID_KERNEL,
            clGetKernelArgInfo(bad, 0, CL_KERNEL_ARG_NAME, 0, null_mut(), null_mut())
        );
        fails!(
            CL_INVALID_KERNEL,
            clGetKernelWorkGroupInfo(
                bad,
                device,
                CL_KERNEL_WORK_GROUP_SIZE,
                0,
                null_mut(),
                null_mut()
            )
        );
        fails!(
            CL_INVALID_KERNEL,
            clEnqueueNDRangeKernel(queue, bad, 1, null(), &4, null(), 0, null(), null_mut())
        );
        create_fails!(CL_INVALID_KERNEL, clCloneKernel(bad));
    }
}

#[test]
fn events() {
    let foreign = Foreign::new();
    let queue = foreign.setup.queue.0;
    for bad in foreign.bad("event") {
        fails!(CL_INVALID_EVENT, clRetainEvent(bad));
        fails!(CL_INVALID_EVENT, clReleaseEvent(bad));
        fails!(CL_INVALID_EVENT, clWaitForEvents(1, &bad));
        fails!(CL_INVALID_EVENT, clSetUserEventStatus(bad, 0));
        fails!(
            CL_INVALID_EVENT,
            clGetEventInfo(bad, CL_EVENT_CONTEXT, 0, null_mut(), null_mut())
        );
        fails!(
            CL_INVALID_EVENT,
            clGetEventProfilingInfo(bad, CL_PROFILING_COMMAND_START, 0, null_mut(), null_mut())
        );
        fails!(
            CL_INVALID_EVENT_WAIT_LIST,
            clEnqueueMarkerWithWaitList(queue, 1, &bad, null_mut())
        );
    }
    fails!(
        CL_INVALID_EVENT_WAIT_LIST,
        clEnqueueMarkerWithWaitList(queue, 1, null(), null_mut())
    );
    let event = create!(clCreateUserEvent(foreign.setup.context.0));
    fails!(
        CL_INVALID_EVENT_WAIT_LIST,
        clEnqueueMarkerWithWaitList(queue, 0, &event, null_mut())
    );
    ok!(clSetUserEventStatus(event, 0));
    ok!(clReleaseEvent(event));
}

/// A handle that was released is as dead as one that never was, unless the runtime still needs the object.
#[test]
fn released_handles() {
    let setup = Setup::new();
    let buffer = create!(clCreateBuffer(
        setup.context.0,
        CL_MEM_READ_WRITE,
        64,
        null_mut()
    ));
    ok!(clRetainMemObject(buffer));
    ok!(clReleaseMemObject(buffer));
    ok!(clReleaseMemObject(buffer));
    // The loader would read through the handle, so only functions that take it as a second argument can be asked.
    let mut word = 0u32;
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueReadBuffer(
            setup.queue.0,
            buffer,
            1,
            0,
            4,
            (&raw mut word).cast(),
            0,
            null(),
            null_mut()
        )
    );
}

/// Objects of one context with a queue of another.
#[test]
fn objects_of_other_contexts() {
    let (one, two) = (Setup::new(), Setup::new());
    let buffer = one.buffer(64);
    let mut word = 0u32;
    let place: *mut c_void = (&raw mut word).cast();
    let queue = two.queue.0;
    fails!(
        CL_INVALID_CONTEXT,
        clEnqueueReadBuffer(queue, buffer.0, 1, 0, 4, place, 0, null(), null_mut())
    );
    fails!(
        CL_INVALID_CONTEXT,
        clEnqueueFillBuffer(queue, buffer.0, place, 4, 0, 4, 0, null(), null_mut())
    );
    let event = create!(clCreateUserEvent(one.context.0));
    fails!(
        CL_INVALID_CONTEXT,
        clEnqueueMarkerWithWaitList(queue, 1, &event, null_mut())
    );
    let other = create!(clCreateUserEvent(two.context.0));
    ok!(clSetUserEventStatus(event, 0));
    ok!(clSetUserEventStatus(other, 0));
    fails!(
        CL_INVALID_CONTEXT,
        clWaitForEvents(2, [event, other].as_ptr())
    );
    ok!(clReleaseEvent(event));
    ok!(clReleaseEvent(other));
    let kernel = one.kernel_of("kernel void f(global int *p) { *p = 1; }", "f");
    kernel.set_buffer(0, &buffer);
    fails!(
        CL_INVALID_CONTEXT,
        clEnqueueNDRangeKernel(
            queue,
            kernel.0,
            1,
            null(),
            &1,
            null(),
            0,
            null(),
            null_mut()
        )
    );
}

/// Checks that unsupported features fail as the specification requires.
#[test]
fn unsupported_features() {
    let setup = Setup::new();
    let context = setup.context.0;
    if !setup.has_images() {
        create_fails!(
            CL_INVALID_OPERATION,
            clCreateImage(context, CL_MEM_READ_WRITE, null(), null(), null_mut())
        );
        create_fails!(
            CL_INVALID_OPERATION,
            clCreateSampler(context, 0, CL_ADDRESS_NONE, CL_FILTER_NEAREST)
        );
        let mut count = 7;
        ok!(clGetSupportedImageFormats(
            context,
            CL_MEM_READ_WRITE,
            CL_MEM_OBJECT_IMAGE2D,
            0,
            null_mut(),
            &mut count
        ));
        assert_eq!(count, 0);
        fails!(
            CL_INVALID_VALUE,
            clGetSupportedImageFormats(
                context,
                CL_MEM_READ_WRITE,
                CL_MEM_OBJECT_BUFFER,
                0,
                null_mut(),
                &mut count
            )
        );
    }
    if pumice_tests::info_value!(u32, clGetDeviceInfo(setup.device), CL_DEVICE_PIPE_SUPPORT) == 0 {
        create_fails!(CL_INVALID_OPERATION, clCreatePipe(context, 0, 4, 4, null()));
    }
    if pumice_tests::info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_SVM_CAPABILITIES
    ) == 0
    {
        assert!(call!(clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0)).is_null());
        call!(clSVMFree(context, null_mut()));
        let mut word = 0u32;
        fails!(
            CL_INVALID_OPERATION,
            clEnqueueSVMMap(
                setup.queue.0,
                1,
                1,
                (&raw mut word).cast(),
                4,
                0,
                null(),
                null_mut()
            )
        );
    }
    unsafe extern "C" fn native(_args: *mut c_void) {}
    if pumice_tests::info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    ) & CL_EXEC_NATIVE_KERNEL
        != 0
    {
        return pumice_tests::left_out("the device runs native kernels");
    }
    fails!(
        CL_INVALID_OPERATION,
        clEnqueueNativeKernel(
            setup.queue.0,
            Some(native),
            null_mut(),
            0,
            0,
            null(),
            null_mut(),
            0,
            null(),
            null_mut()
        )
    );
}

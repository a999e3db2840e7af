//! Contexts with several devices. Skipped where there is one: `ci/test` offers lavapipe twice.

use pumice_tests::sys::*;
use pumice_tests::{
    call, create, fails, info_value, ok, platform, Buffer, Context, Event, Kernel, Program, Queue,
};
use std::ffi::{c_void, CString};
use std::ptr::{null, null_mut};

/// A context of two devices with a queue on each.
struct Pair {
    queues: [Queue; 2],
    devices: [cl_device_id; 2],
    context: Context,
}

fn pair() -> Option<Pair> {
    let mut devices = [null_mut(); 2];
    let mut count = 0;
    ok!(clGetDeviceIDs(
        platform(),
        CL_DEVICE_TYPE_ALL,
        2,
        devices.as_mut_ptr(),
        &mut count
    ));
    if count < 2 {
        return None;
    }
    let context = Context(create!(clCreateContext(
        null(),
        2,
        devices.as_ptr(),
        None,
        null_mut()
    )));
    let queue = |device| {
        Queue(create!(clCreateCommandQueueWithProperties(
            context.0,
            device,
            null()
        )))
    };
    let queues = [queue(devices[0]), queue(devices[1])];
    Some(Pair {
        queues,
        devices,
        context,
    })
}

impl Pair {
    fn buffer(&self, flags: cl_mem_flags, words: usize, host: *mut u32) -> Buffer {
        let context = self.context.0;
        Buffer(create!(clCreateBuffer(
            context,
            flags,
            words * 4,
            host.cast()
        )))
    }

    /// Built for the first `devices`.
    fn program(&self, source: &str, devices: u32) -> Program {
        let (mut text, length) = (source.as_ptr().cast(), source.len());
        let program = Program(create!(clCreateProgramWithSource(
            self.context.0,
            1,
            &mut text,
            &length
        )));
        let list = self.devices.as_ptr();
        ok!(clBuildProgram(
            program.0,
            devices,
            list,
            c"-cl-std=CL3.0".as_ptr(),
            None,
            null_mut()
        ));
        program
    }

    fn kernel(&self, program: &Program, name: &str) -> Kernel {
        let name = CString::new(name).expect("a name");
        Kernel(create!(clCreateKernel(program.0, name.as_ptr())))
    }

    fn launch(&self, on: usize, kernel: &Kernel, items: usize, wait: &[cl_event]) -> Event {
        let list = if wait.is_empty() {
            null()
        } else {
            wait.as_ptr()
        };
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            self.queues[on].0,
            kernel.0,
            1,
            null(),
            &items,
            null(),
            wait.len() as u32,
            list,
            &mut event
        ));
        Event(event)
    }

    fn read(&self, on: usize, buffer: &Buffer, words: usize, wait: &[cl_event]) -> Vec<u32> {
        let mut data = vec![0u32; words];
        let place = data.as_mut_ptr().cast();
        let list = if wait.is_empty() {
            null()
        } else {
            wait.as_ptr()
        };
        let count = wait.len() as u32;
        ok!(clEnqueueReadBuffer(
            self.queues[on].0,
            buffer.0,
            CL_TRUE,
            0,
            words * 4,
            place,
            count,
            list,
            null_mut()
        ));
        data
    }
}

const ADD: &str = "kernel void add(global uint *p, uint n) { p[get_global_id(0)] += n; }";

#[test]
fn a_buffer_goes_back_and_forth() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    let mut host: Vec<u32> = (0..1000).collect();
    for flags in [CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR] {
        let buffer = pair.buffer(flags, 1000, host.as_mut_ptr());
        kernel.set_buffer(0, &buffer);
        let mut last: Option<Event> = None;
        // Not one wait on the host: the devices wait for each other.
        for round in 0..20u32 {
            kernel.set(1, round);
            let wait: Vec<cl_event> = last.iter().map(|event| event.0).collect();
            last = Some(pair.launch(round as usize % 2, &kernel, 1000, &wait));
        }
        let wait = [last.as_ref().expect("an event").0];
        let seen = pair.read(0, &buffer, 1000, &wait);
        assert!((0..).zip(&seen).all(|(n, word)| *word == n + 190));
        // What the other device sees.
        assert_eq!(pair.read(1, &buffer, 1000, &wait), seen);
        drop(buffer);
        host = (0..1000).collect();
    }
}

#[test]
fn parts_written_by_two_devices_make_a_whole() {
    let Some(pair) = pair() else { return };
    let buffer = pair.buffer(CL_MEM_READ_WRITE, 1024, null_mut());
    let half = |origin: usize| {
        let region = cl_buffer_region { origin, size: 2048 };
        let place = (&raw const region).cast();
        let kind = CL_BUFFER_CREATE_TYPE_REGION;
        Buffer(create!(clCreateSubBuffer(buffer.0, 0, kind, place)))
    };
    let halves = [half(0), half(2048)];
    for (on, half) in halves.iter().enumerate() {
        let value = on as u32 + 5;
        let mut event = null_mut();
        let pattern = (&raw const value).cast();
        let queue = pair.queues[on].0;
        ok!(clEnqueueFillBuffer(
            queue,
            half.0,
            pattern,
            4,
            0,
            2048,
            0,
            null(),
            &mut event
        ));
        assert_eq!(Event(event).wait(), CL_SUCCESS);
    }
    let mut expected = vec![5u32; 1024];
    expected[512..].fill(6);
    assert_eq!(pair.read(0, &buffer, 1024, &[]), expected);

    // A map by one device of what the other wrote, and the other way round.
    let mut code = 1;
    let flags = CL_MAP_READ | CL_MAP_WRITE;
    let pointer = call!(clEnqueueMapBuffer(
        pair.queues[0].0,
        buffer.0,
        CL_TRUE,
        flags,
        2000,
        100,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    // SAFETY: mapped.
    let mapped = unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u32>(), 25) };
    assert_eq!(mapped, &expected[500..525]);
    mapped.fill(9);
    let mut event = null_mut();
    ok!(clEnqueueUnmapMemObject(
        pair.queues[0].0,
        buffer.0,
        pointer,
        0,
        null(),
        &mut event
    ));
    let event = Event(event);
    expected[500..525].fill(9);
    assert_eq!(pair.read(1, &buffer, 1024, &[event.0]), expected);
    ok!(clFinish(pair.queues[1].0));

    // Migration, and a copy whose source is on the other device.
    let other = pair.buffer(CL_MEM_READ_WRITE, 1024, null_mut());
    let queue = pair.queues[1].0;
    let list = [buffer.0, other.0];
    ok!(clEnqueueMigrateMemObjects(
        queue,
        2,
        list.as_ptr(),
        0,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue));
    let queue = pair.queues[0].0;
    ok!(clEnqueueCopyBuffer(
        queue,
        buffer.0,
        other.0,
        0,
        0,
        4096,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue));
    assert_eq!(pair.read(1, &other, 1024, &[]), expected);
}

#[test]
fn programs_are_built_for_each_device() {
    let Some(pair) = pair() else { return };
    let both = pair.program(ADD, 2);
    assert_eq!(
        info_value!(u32, clGetProgramInfo(both.0), CL_PROGRAM_NUM_DEVICES),
        2
    );
    let one = pair.program(ADD, 1);
    let kernel = pair.kernel(&one, "add");
    let buffer = pair.buffer(CL_MEM_READ_WRITE, 16, null_mut());
    kernel.set_buffer(0, &buffer).set(1, 1u32);
    assert_eq!(pair.launch(0, &kernel, 16, &[]).wait(), 0);
    let items = 16usize;
    fails!(
        CL_INVALID_PROGRAM_EXECUTABLE,
        clEnqueueNDRangeKernel(
            pair.queues[1].0,
            kernel.0,
            1,
            null(),
            &items,
            null(),
            0,
            null(),
            null_mut()
        )
    );
    // Variables of a program are those of a device.
    let source = "global uint count = 10; kernel void next(global uint *p) { p[0] = ++count; }";
    let program = pair.program(source, 2);
    let next = pair.kernel(&program, "next");
    next.set_buffer(0, &buffer);
    for (on, expected) in [(0, 11), (0, 12), (1, 11), (0, 13), (1, 12)] {
        let event = pair.launch(on, &next, 1, &[]);
        assert_eq!(pair.read(on, &buffer, 1, &[event.0]), [expected]);
    }
}

#[test]
fn events_reach_across_devices() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    let mut zeros = vec![0u32; 64];
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 64, zeros.as_mut_ptr());
    kernel.set_buffer(0, &buffer).set(1, 1u32);
    let gate = Event::user(&pair.context);
    let first = pair.launch(0, &kernel, 64, &[gate.0]);
    let second = pair.launch(1, &kernel, 64, &[first.0]);
    let third = pair.launch(0, &kernel, 64, &[second.0, gate.0]);
    ok!(clFlush(pair.queues[0].0));
    ok!(clFlush(pair.queues[1].0));
    assert!(third.status() > CL_COMPLETE && first.status() > CL_COMPLETE);
    gate.finish(CL_COMPLETE);
    assert_eq!(third.wait(), CL_SUCCESS);
    assert_eq!(pair.read(1, &buffer, 64, &[third.0]), [3; 64]);

    let gate = Event::user(&pair.context);
    let first = pair.launch(1, &kernel, 64, &[gate.0]);
    let second = pair.launch(0, &kernel, 64, &[first.0]);
    gate.finish(-5);
    assert_eq!(second.wait(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    assert!(second.status() < 0 && first.status() < 0);
    assert_eq!(pair.read(0, &buffer, 64, &[]), [3; 64]);
}

#[test]
fn shared_virtual_memory_of_two_devices() {
    let Some(pair) = pair() else { return };
    let context = pair.context.0;
    let svm = |device| info_value!(u64, clGetDeviceInfo(device), CL_DEVICE_SVM_CAPABILITIES);
    if pair
        .devices
        .into_iter()
        .any(|device| svm(device) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM == 0)
    {
        return;
    }
    let pointer = call!(clSVMAlloc(context, CL_MEM_READ_WRITE, 4096, 0));
    assert!(!pointer.is_null());
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, pointer));
    let zero = 0u32;
    let pattern: *const c_void = (&raw const zero).cast();
    let mut event = null_mut();
    let queue = pair.queues[1].0;
    ok!(clEnqueueSVMMemFill(
        queue,
        pointer,
        pattern,
        4,
        4096,
        0,
        null(),
        &mut event
    ));
    let mut last = Event(event);
    for round in 0..10u32 {
        kernel.set(1, round);
        last = pair.launch(round as usize % 2, &kernel, 1024, &[last.0]);
    }
    let queue = pair.queues[0].0;
    ok!(clEnqueueSVMMap(
        queue,
        CL_TRUE,
        CL_MAP_READ,
        pointer,
        4096,
        1,
        &last.0,
        null_mut()
    ));
    // SAFETY: mapped.
    let words = unsafe { std::slice::from_raw_parts(pointer.cast::<u32>(), 1024) };
    assert_eq!(words, [45; 1024]);
    ok!(clEnqueueSVMUnmap(queue, pointer, 0, null(), null_mut()));
    ok!(clFinish(queue));
    call!(clSVMFree(context, pointer));
}

#[test]
fn images_follow_the_commands_that_use_them() {
    let Some(pair) = pair() else { return };
    let images = |device| info_value!(cl_bool, clGetDeviceInfo(device), CL_DEVICE_IMAGE_SUPPORT);
    if pair.devices.iter().any(|device| images(*device) == 0) {
        return;
    }
    let format = cl_image_format {
        image_channel_order: CL_R,
        image_channel_data_type: CL_UNSIGNED_INT32,
    };
    let desc = cl_image_desc {
        image_type: CL_MEM_OBJECT_IMAGE2D,
        image_width: 5,
        image_height: 3,
        image_depth: 0,
        image_array_size: 0,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: null_mut(),
    };
    let mut data: Vec<u32> = (0..15).map(|n| n * n + 7).collect();
    let image = Buffer(create!(clCreateImage(
        pair.context.0,
        CL_MEM_COPY_HOST_PTR,
        &format,
        &desc,
        data.as_mut_ptr().cast()
    )));
    let (origin, size) = ([0usize; 3], [5usize, 3, 1]);
    let read = |on: usize| {
        let mut seen = vec![0u32; 15];
        ok!(clEnqueueReadImage(
            pair.queues[on].0,
            image.0,
            CL_TRUE,
            origin.as_ptr(),
            size.as_ptr(),
            0,
            0,
            seen.as_mut_ptr().cast(),
            0,
            null(),
            null_mut()
        ));
        seen
    };
    assert_eq!(read(1), data);
    assert_eq!(read(0), data);
    for (on, other) in [(0, 1), (1, 0), (1, 0)] {
        data[7] += 1;
        ok!(clEnqueueFillImage(
            pair.queues[on].0,
            image.0,
            [data[7], 0, 0, 0].as_ptr().cast(),
            [2usize, 1, 0].as_ptr(),
            [1usize, 1, 1].as_ptr(),
            0,
            null(),
            null_mut()
        ));
        ok!(clFinish(pair.queues[on].0));
        assert_eq!(read(other), data);
    }
}

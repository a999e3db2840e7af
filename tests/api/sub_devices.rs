//! clCreateSubDevices, on devices that can be divided and on those that cannot.

use pumice_tests::sys::*;
use pumice_tests::{
    call, create, fails, info, info_value, ok, Buffer, Context, Kernel, Program, Queue, Setup,
};
use std::ffi::CString;
use std::ptr::{null, null_mut};

fn units(device: cl_device_id) -> u32 {
    info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_MAX_COMPUTE_UNITS)
}

/// The processors of the machine may be too few: such a device says so, like those that cannot be divided at all.
fn divides(setup: &Setup) -> bool {
    info_value!(
        u32,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_PARTITION_MAX_SUB_DEVICES
    ) > 1
}

fn words(device: cl_device_id, param: cl_device_info) -> Vec<isize> {
    info!(clGetDeviceInfo(device), param)
        .chunks(size_of::<isize>())
        .map(|bytes| isize::from_ne_bytes(bytes.try_into().expect("a word")))
        .collect()
}

#[test]
fn refused_where_there_is_nothing_to_divide() {
    let setup = Setup::new();
    let equally = [CL_DEVICE_PARTITION_EQUALLY, 1, 0];
    if divides(&setup) {
        return pumice_tests::left_out("the device can be divided");
    }
    assert_eq!(words(setup.device, CL_DEVICE_PARTITION_PROPERTIES), [0]);
    let mut count = 0;
    let code = call!(clCreateSubDevices(
        setup.device,
        equally.as_ptr(),
        0,
        null_mut(),
        &mut count
    ));
    assert!(matches!(
        code,
        CL_INVALID_VALUE | CL_DEVICE_PARTITION_FAILED
    ));
}

/// Parts by counts: what they tell, how they are counted, and that they outlive the application's references where a context
/// has them.
#[test]
fn parts_and_their_references() {
    let setup = Setup::new();
    if !divides(&setup) {
        return pumice_tests::left_out("the device cannot be divided");
    }
    let whole = units(setup.device) as isize;
    let scheme = [CL_DEVICE_PARTITION_BY_COUNTS, 1, whole - 1, 0, 0];
    let mut parts = [null_mut(); 2];
    let mut count = 0;
    ok!(clCreateSubDevices(
        setup.device,
        scheme.as_ptr(),
        2,
        parts.as_mut_ptr(),
        &mut count
    ));
    assert_eq!(count, 2);
    assert_eq!((units(parts[0]), units(parts[1])), (1, whole as u32 - 1));
    let parent = info_value!(usize, clGetDeviceInfo(parts[0]), CL_DEVICE_PARENT_DEVICE);
    assert_eq!(parent, setup.device as usize);
    assert_eq!(words(parts[1], CL_DEVICE_PARTITION_TYPE), scheme);
    assert_eq!(words(setup.device, CL_DEVICE_PARTITION_TYPE), [0]);
    let references = |device| info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_REFERENCE_COUNT);
    ok!(clRetainDevice(parts[0]));
    assert_eq!((references(parts[0]), references(setup.device)), (2, 1));
    ok!(clReleaseDevice(parts[0]));
    // One compute unit is not divided further.
    let equally = [CL_DEVICE_PARTITION_EQUALLY, 1, 0];
    fails!(
        CL_DEVICE_PARTITION_FAILED,
        clCreateSubDevices(parts[0], equally.as_ptr(), 0, null_mut(), &mut count)
    );
    fails!(
        CL_INVALID_VALUE,
        clCreateSubDevices(
            setup.device,
            scheme.as_ptr(),
            1,
            parts.as_mut_ptr(),
            null_mut()
        )
    );
    fails!(
        CL_INVALID_VALUE,
        clCreateSubDevices(setup.device, null(), 0, null_mut(), &mut count)
    );
    let context = Context(create!(clCreateContext(
        null(),
        1,
        &parts[0],
        None,
        null_mut()
    )));
    ok!(clReleaseDevice(parts[0]));
    ok!(clReleaseDevice(parts[1]));
    fails!(CL_INVALID_DEVICE, clReleaseDevice(parts[1]));
    let queue = Queue(create!(clCreateCommandQueueWithProperties(
        context.0,
        parts[0],
        null()
    )));
    run(&context, &[queue], &[parts[0]]);
}

/// A context of a device and its parts: what is built for the device runs on them, on one memory.
#[test]
fn beside_the_whole() {
    let setup = Setup::new();
    if !divides(&setup) {
        return pumice_tests::left_out("the device cannot be divided");
    }
    let scheme = [CL_DEVICE_PARTITION_EQUALLY, 1, 0];
    let mut parts = vec![null_mut(); units(setup.device) as usize];
    ok!(clCreateSubDevices(
        setup.device,
        scheme.as_ptr(),
        parts.len() as u32,
        parts.as_mut_ptr(),
        null_mut()
    ));
    let mut all = parts.clone();
    all.push(setup.device);
    let context = Context(create!(clCreateContext(
        null(),
        all.len() as u32,
        all.as_ptr(),
        None,
        null_mut()
    )));
    let queues: Vec<Queue> = all
        .iter()
        .map(|device| {
            Queue(create!(clCreateCommandQueueWithProperties(
                context.0,
                *device,
                null()
            )))
        })
        .collect();
    run(&context, &queues, &[setup.device]);
    for part in parts {
        ok!(clReleaseDevice(part));
    }
}

/// Each queue in turn adds to a buffer, with a program built for these devices.
fn run(context: &Context, queues: &[Queue], built_for: &[cl_device_id]) {
    let source = CString::new(
        "kernel void add(global uint *p) { p[get_global_id(0)] += get_global_id(0) + 1; }",
    )
    .expect("text");
    let program = Program(create!(clCreateProgramWithSource(
        context.0,
        1,
        &mut source.as_ptr(),
        null()
    )));
    ok!(clBuildProgram(
        program.0,
        built_for.len() as u32,
        built_for.as_ptr(),
        c"".as_ptr(),
        None,
        null_mut()
    ));
    let kernel = Kernel(create!(clCreateKernel(program.0, c"add".as_ptr())));
    let buffer = Buffer(create!(clCreateBuffer(
        context.0,
        CL_MEM_READ_WRITE,
        4096 * 4,
        null_mut()
    )));
    let zero = 0u32;
    ok!(clEnqueueFillBuffer(
        queues[0].0,
        buffer.0,
        (&raw const zero).cast(),
        4,
        0,
        4096 * 4,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queues[0].0));
    kernel.set_buffer(0, &buffer);
    for queue in queues {
        for _ in 0..2 {
            queue.enqueue(&kernel, &[4096], Some(&[16]));
        }
        ok!(clFinish(queue.0));
    }
    let mut got = vec![0u32; 4096];
    ok!(clEnqueueReadBuffer(
        queues[0].0,
        buffer.0,
        CL_TRUE,
        0,
        4096 * 4,
        got.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    let times = 2 * queues.len() as u32;
    for (i, word) in got.iter().enumerate() {
        assert_eq!(*word, times * (i as u32 + 1));
    }
}

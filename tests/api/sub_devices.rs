//! clCreateSubDevices, on devices that can be divided and on those that cannot.

use pumice_tests::sys::*;
use pumice_tests::{
    call, create, fails, info, info_value, ok, Buffer, Context, Event, Kernel, Program, Queue,
    Setup,
};
use std::ffi::{c_void, CString};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

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

/// So many sub-devices of one compute unit each: the device is divided as often as that takes.
struct Parts(Vec<cl_device_id>);

impl Parts {
    fn new(setup: &Setup, count: usize) -> Self {
        let mut parts = Vec::new();
        while parts.len() < count {
            let scheme = [CL_DEVICE_PARTITION_EQUALLY, 1, 0];
            let mut some = vec![null_mut(); units(setup.device) as usize];
            ok!(clCreateSubDevices(
                setup.device,
                scheme.as_ptr(),
                some.len() as u32,
                some.as_mut_ptr(),
                null_mut()
            ));
            parts.append(&mut some);
        }
        for part in parts.drain(count..) {
            ok!(clReleaseDevice(part));
        }
        Self(parts)
    }

    fn context(&self) -> Context {
        Context(create!(clCreateContext(
            null(),
            self.0.len() as u32,
            self.0.as_ptr(),
            None,
            null_mut()
        )))
    }

    fn queues(&self, context: &Context) -> Vec<Queue> {
        let make = |part: &cl_device_id| {
            Queue(create!(clCreateCommandQueueWithProperties(
                context.0,
                *part,
                null()
            )))
        };
        self.0.iter().map(make).collect()
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for part in &self.0 {
            ok!(clReleaseDevice(*part));
        }
    }
}

/// As many devices in a context as one likes: each sees what the one before wrote, in buffers and in images, and a chain of events
/// through all of them needs no host.
#[test]
fn in_any_number() {
    const WORDS: usize = 1024;
    const SIDE: usize = 16;
    let setup = Setup::new();
    if !divides(&setup) {
        return pumice_tests::left_out("the device cannot be divided");
    }
    let program = CString::new(
        "kernel void add(global uint *p, uint n) { p[get_global_id(0)] += n; }
         kernel void next(read_write image2d_t i, uint n) {
             int2 at = (int2)(get_global_id(0), get_global_id(1));
             write_imageui(i, at, read_imageui(i, at) + n);
         }",
    )
    .expect("text");
    for count in [1, 2, 3, 63, 64, 65, 130] {
        let parts = Parts::new(&setup, count);
        let context = parts.context();
        let queues = parts.queues(&context);
        let program = Program(create!(clCreateProgramWithSource(
            context.0,
            1,
            &mut program.as_ptr(),
            null()
        )));
        ok!(clBuildProgram(
            program.0,
            0,
            null(),
            c"-cl-std=CL3.0".as_ptr(),
            None,
            null_mut()
        ));
        let add = Kernel(create!(clCreateKernel(program.0, c"add".as_ptr())));
        let next = Kernel(create!(clCreateKernel(program.0, c"next".as_ptr())));
        let words: Vec<u32> = (0..WORDS as u32).collect();
        let buffer = Buffer(create!(clCreateBuffer(
            context.0,
            CL_MEM_COPY_HOST_PTR,
            WORDS * 4,
            words.as_ptr().cast_mut().cast()
        )));
        let format = cl_image_format {
            image_channel_order: CL_RGBA,
            image_channel_data_type: CL_UNSIGNED_INT32,
        };
        // SAFETY: zeros are a description that says nothing.
        let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
        desc.image_type = CL_MEM_OBJECT_IMAGE2D;
        (desc.image_width, desc.image_height) = (SIDE, SIDE);
        let image = Buffer(create!(clCreateImage(
            context.0,
            0,
            &format,
            &desc,
            null_mut()
        )));
        let (origin, region) = ([0usize; 3], [SIDE, SIDE, 1]);
        let zero = [0u32; 4];
        let mut last = null_mut();
        ok!(clEnqueueFillImage(
            queues[0].0,
            image.0,
            zero.as_ptr().cast(),
            origin.as_ptr(),
            region.as_ptr(),
            0,
            null(),
            &mut last
        ));
        add.set_buffer(0, &buffer);
        next.set_buffer(0, &image);
        let mut events = vec![Event(last)];
        for (number, queue) in queues.iter().enumerate() {
            for (kernel, global) in [(&add, &[WORDS][..]), (&next, &[SIDE, SIDE][..])] {
                kernel.set(1, number as u32 + 1);
                let before = events.last().map_or(null_mut(), |event| event.0);
                let mut event = null_mut();
                ok!(clEnqueueNDRangeKernel(
                    queue.0,
                    kernel.0,
                    global.len() as u32,
                    null(),
                    global.as_ptr(),
                    null(),
                    1,
                    &before,
                    &mut event
                ));
                events.push(Event(event));
            }
        }
        let last = events.last().map_or(null_mut(), |event| event.0);
        let added: u32 = (1..=count as u32).sum();
        for queue in &queues {
            let mut got = vec![0u32; WORDS];
            ok!(clEnqueueReadBuffer(
                queue.0,
                buffer.0,
                CL_TRUE,
                0,
                WORDS * 4,
                got.as_mut_ptr().cast(),
                1,
                &last,
                null_mut()
            ));
            assert!(got.iter().zip(0..).all(|(word, i)| *word == i + added));
            let mut texels = vec![0u32; SIDE * SIDE * 4];
            ok!(clEnqueueReadImage(
                queue.0,
                image.0,
                CL_TRUE,
                origin.as_ptr(),
                region.as_ptr(),
                0,
                0,
                texels.as_mut_ptr().cast(),
                1,
                &last,
                null_mut()
            ));
            assert!(texels.iter().all(|texel| *texel == added));
        }
    }
}

/// A buffer is at one address for the device and all its parts, and maps of all of them lead there.
#[test]
fn one_allocation() {
    const SIZE: usize = 1 << 20;
    let setup = Setup::new();
    if !divides(&setup) {
        return pumice_tests::left_out("the device cannot be divided");
    }
    let mut parts = Parts::new(&setup, 5);
    ok!(clRetainDevice(setup.device));
    parts.0.push(setup.device);
    let context = parts.context();
    let queues = parts.queues(&context);
    let source = c"kernel void where(global ulong *out, global uchar *p) { *out = (ulong)p; }";
    let program = Program(create!(clCreateProgramWithSource(
        context.0,
        1,
        &mut source.as_ptr(),
        null()
    )));
    ok!(clBuildProgram(
        program.0,
        0,
        null(),
        c"".as_ptr(),
        None,
        null_mut()
    ));
    let kernel = Kernel(create!(clCreateKernel(program.0, c"where".as_ptr())));
    let make = |flags, pointer| Buffer(create!(clCreateBuffer(context.0, flags, SIZE, pointer)));
    let mut own = vec![0u8; SIZE];
    let buffers = [
        make(0, null_mut()),
        make(CL_MEM_ALLOC_HOST_PTR, null_mut()),
        make(CL_MEM_USE_HOST_PTR, own.as_mut_ptr().cast()),
    ];
    let out = make(0, null_mut());
    for buffer in &buffers {
        kernel.set_buffer(0, &out).set_buffer(1, buffer);
        let mut addresses = Vec::new();
        for queue in &queues {
            queue.enqueue(&kernel, &[1], None);
            let mut address = 0usize;
            ok!(clEnqueueReadBuffer(
                queue.0,
                out.0,
                CL_TRUE,
                0,
                8,
                (&raw mut address).cast(),
                0,
                null(),
                null_mut()
            ));
            let mapped = create!(clEnqueueMapBuffer(
                queue.0,
                buffer.0,
                CL_TRUE,
                CL_MAP_READ,
                0,
                SIZE,
                0,
                null(),
                null_mut()
            ));
            ok!(clEnqueueUnmapMemObject(
                queue.0,
                buffer.0,
                mapped,
                0,
                null(),
                null_mut()
            ));
            ok!(clFinish(queue.0));
            addresses.extend([address, mapped as usize]);
        }
        addresses.dedup();
        assert_eq!(addresses.len(), 1, "{addresses:x?}");
    }
}

/// The launch that a native kernel enqueues and waits for.
struct Inner {
    queue: Queue,
    kernel: Kernel,
    finished: AtomicU32,
}

unsafe extern "C" fn waits(args: *mut c_void) {
    // SAFETY: enqueued with such an argument below.
    let inner = unsafe { &**args.cast::<*const Inner>() };
    inner.queue.enqueue(&inner.kernel, &[1000], None);
    ok!(clFinish(inner.queue.0));
    inner.finished.fetch_add(1, Ordering::SeqCst);
}

/// Native kernels wait for another queue of their device, which is one compute unit, in several queues at a time.
#[test]
fn native_kernels_wait_for_other_queues() {
    let setup = Setup::new();
    if !divides(&setup) {
        return pumice_tests::left_out("the device cannot be divided");
    }
    let parts = Parts::new(&setup, 1);
    let context = parts.context();
    let queue = || parts.queues(&context).remove(0);
    let source = c"kernel void add(global uint *p) { p[get_global_id(0)] += 1; }";
    let program = Program(create!(clCreateProgramWithSource(
        context.0,
        1,
        &mut source.as_ptr(),
        null()
    )));
    ok!(clBuildProgram(
        program.0,
        0,
        null(),
        c"".as_ptr(),
        None,
        null_mut()
    ));
    let kernel = Kernel(create!(clCreateKernel(program.0, c"add".as_ptr())));
    let buffer = Buffer(create!(clCreateBuffer(context.0, 0, 4000, null_mut())));
    kernel.set_buffer(0, &buffer);
    let outer = [queue(), queue(), queue()];
    let inner = Inner {
        queue: queue(),
        kernel,
        finished: AtomicU32::new(0),
    };
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut argument: *const Inner = &raw const inner;
        for round in 1..=20 {
            for queue in &outer {
                ok!(clEnqueueNativeKernel(
                    queue.0,
                    Some(waits),
                    (&raw mut argument).cast(),
                    size_of::<*const Inner>(),
                    0,
                    null(),
                    null_mut(),
                    0,
                    null(),
                    null_mut()
                ));
                ok!(clFlush(queue.0));
            }
            for queue in &outer {
                ok!(clFinish(queue.0));
            }
            assert_eq!(inner.finished.load(Ordering::SeqCst), round * 3);
        }
        let _ = done.send(());
    });
    let patience = std::time::Duration::from_secs(100);
    is_done.recv_timeout(patience).expect("the queues go on");
}

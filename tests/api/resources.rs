//! Tests of scarce resources: memory over time, threads, sizes of files; and threads that are
//! cancelled. In processes of their own: this test executable again.

use crate::command_buffers::Recording;
use pumice_tests::process::resident;
use pumice_tests::sys::*;
use pumice_tests::{
    call, create, good_child, info_text, info_value, job, left_out, ok, Event, Queue, Scratch,
    Setup,
};
#[cfg(unix)]
use std::ffi::c_void;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

fn child(mode: &str, variables: &[(&str, &str)]) -> String {
    let cache = Scratch::new(mode).expect("a directory");
    let mut all: Vec<(&str, &Path)> = vec![("PUMICE_CACHE_DIR", &cache)];
    all.extend(
        variables
            .iter()
            .map(|(name, value)| (*name, Path::new(*value))),
    );
    let output = good_child("resources::inner", mode, &all);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Not a test of its own: the child of the others.
#[test]
fn inner() {
    let Some(mode) = job() else {
        return;
    };
    let setup = Setup::new();
    match mode.as_str() {
        "printing" => printing(&setup),
        "programs" => programs(&setup),
        "sizes" => sizes(&setup),
        #[cfg(unix)]
        "cancelled" => cancelled(&setup),
        #[cfg(unix)]
        "file-size" => {
            let limit = libc::rlimit {
                rlim_cur: 100,
                rlim_max: libc::RLIM_INFINITY,
            };
            // SAFETY: a limit of this process, which nobody else is in.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
            (0..3).for_each(|number| build_and_run(&setup, number));
        }
        "no-threads" => (0..3).for_each(|number| build_and_run(&setup, number)),
        "private" => private(&setup),
        #[cfg(target_os = "linux")]
        "replays" => replays_beside_failures(),
        other => panic!("mode {other}"),
    }
}

fn build_and_run(setup: &Setup, number: i32) {
    let source = format!("kernel void f(global int *p) {{ p[get_global_id(0)] += {number}; }}");
    let program = setup
        .try_build(&source, "")
        .unwrap_or_else(|log| panic!("{log}"));
    let kernel = setup.kernel(&program, "f");
    let buffer = setup.buffer_of(&[1i32; 16]);
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[16], None);
    assert_eq!(setup.read::<i32>(&buffer, 16), [number + 1; 16]);
}

fn printing(setup: &Setup) {
    let program = setup.build("kernel void f(int n) { if (n > 3998) printf(\"n is %d\\n\", n); }");
    let kernel = setup.kernel(&program, "f");
    kernel.set(0, 0i32);
    setup.run(&kernel, &[1], None);
    let (before, begun) = (resident(), Instant::now());
    let mut most = before;
    for n in 0..4000i32 {
        kernel.set(0, n);
        setup.enqueue(&kernel, &[1], None);
        if n % 100 == 0 {
            most = most.max(resident());
        }
    }
    ok!(clFinish(setup.queue.0));
    println!(
        "4000 launches that might print: {:.1} us each, {} KB",
        begun.elapsed().as_secs_f64() * 1e6 / 4000.0,
        (most - before) >> 10
    );
    assert!(most - before < 128 << 20, "{} MB", (most - before) >> 20);
    // Launches that wait for what the application does only after all of them have been asked for.
    let gate = create!(clCreateUserEvent(setup.context.0));
    for n in 0..100i32 {
        kernel.set(0, n);
        let global = 1usize;
        ok!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            1,
            null(),
            &global,
            null(),
            1,
            &gate,
            null_mut()
        ));
    }
    ok!(clSetUserEventStatus(gate, 0));
    ok!(clFinish(setup.queue.0));
    ok!(clReleaseEvent(gate));
}

fn programs(setup: &Setup) {
    for number in 0..60 {
        build_and_run(setup, number);
    }
    let (before, count) = (resident(), 200);
    for number in 0..count {
        build_and_run(setup, 1000 + number);
    }
    let each = (resident() - before) / i64::from(count);
    println!("each program leaves {each} bytes");
    assert!(each < 32 << 10, "{each} bytes");
}

fn sizes(setup: &Setup) {
    let program = setup.build("kernel void f(global int *p) { p[get_local_id(0)] = 1; }");
    let kernel = setup.kernel(&program, "f");
    let buffer = setup.buffer(4 << 10);
    kernel.set_buffer(0, &buffer);
    let mut seen = 0;
    // Twice as many are forgotten meanwhile as are kept, so that as many are there.
    for size in 1..=534usize {
        setup.run(&kernel, &[size], Some(&[size]));
        if size == 278 {
            seen = resident();
        }
    }
    let grown = resident() - seen;
    println!("256 more work-group sizes: {} KB", grown >> 10);
    assert!(grown < 12 << 20, "{} KB", grown >> 10);
}

/// The body of a thread that is cancelled while it is in a call.
#[cfg(unix)]
extern "C" fn calls(setup: *mut c_void) -> *mut c_void {
    // SAFETY: the test keeps it until the thread has ended.
    let setup = unsafe { &*(setup as *const Setup) };
    for number in 0..20 {
        build_and_run(setup, number);
        ok!(clFinish(setup.queue.0));
    }
    std::ptr::without_provenance_mut(1)
}

#[cfg(unix)]
fn cancelled(setup: &Setup) {
    build_and_run(setup, 100);
    for delay in [3, 30, 100] {
        let mut thread: libc::pthread_t = 0;
        let mut result = null_mut();
        let place = (&raw const *setup).cast_mut().cast();
        // SAFETY: the thread ends before this function does.
        unsafe {
            assert_eq!(libc::pthread_create(&mut thread, null(), calls, place), 0);
            std::thread::sleep(Duration::from_millis(delay));
            assert_eq!(libc::pthread_cancel(thread), 0);
            assert_eq!(libc::pthread_join(thread, &mut result), 0);
        }
        assert_eq!(result.addr(), 1, "the calls were made whole");
        build_and_run(setup, 101);
    }
}

fn private(setup: &Setup) {
    let source = "kernel void f(global uint *p, uint n) {
        uint a[1 << 20];
        for (uint i = 0; i < n; i++) a[p[i] & 0xfffff] = i;
        p[0] = a[p[1] & 0xfffff];
    }";
    let begun = Instant::now();
    let program = setup.build(source);
    let kernel = setup.kernel(&program, "f");
    let buffer = setup.buffer_of(&[5u32, 0xfffff, 7, 8]);
    kernel.set_buffer(0, &buffer).set(1, 4u32);
    let code = setup.queue.try_enqueue(&kernel, &[1], None);
    if code == CL_SUCCESS {
        assert_eq!(setup.read::<u32>(&buffer, 1), [1]);
    } else {
        assert_eq!(code, CL_OUT_OF_RESOURCES);
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
    build_and_run(setup, 1);
}

/// Limits the memory of this process to so many bytes more than it has.
#[cfg(target_os = "linux")]
fn limit_memory(more: u64) {
    let text = std::fs::read_to_string("/proc/self/statm").expect("numbers of pages");
    let pages: u64 = text
        .split(' ')
        .next()
        .map_or(0, |word| word.parse().expect("a number"));
    let limit = libc::rlimit {
        rlim_cur: pages * 4096 + more,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a limit of this process, which nobody else is in.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// A replay pauses for the kernels that its own have enqueued, while another one waits for a launch that fails.
#[cfg(target_os = "linux")]
fn replays_beside_failures() {
    const SOURCE: &str = "
        kernel void parent(global uint *p) {
            enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(64), ^{
                p[get_global_id(0)] += 2;
            });
        }
        kernel void twice(global uint *p) { p[get_global_id(0)] *= 2; }
        kernel void large(global uint *x) {
            uint p[262144], s = 0;
            for (uint i = 0; i < 262144; i++) p[i] = i + get_local_id(0);
            barrier(CLK_GLOBAL_MEM_FENCE);
            for (uint i = 0; i < 262144; i += 7) s += p[(i * x[0]) % 262144];
            barrier(CLK_GLOBAL_MEM_FENCE);
            x[get_global_id(0)] = s;
        }";
    let setup = Setup::with_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let bits = CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT;
    let list = [
        u64::from(CL_QUEUE_PROPERTIES),
        bits | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        0,
    ];
    let (context, device) = (setup.context.0, setup.device);
    let _children = Queue(create!(clCreateCommandQueueWithProperties(
        context,
        device,
        list.as_ptr()
    )));
    let program = setup.try_build(SOURCE, "-cl-std=CL3.0").expect("a program");
    let kernels = ["parent", "twice", "large"].map(|name| setup.kernel(&program, name));
    let [parent, twice, large] = &kernels;
    let (numbers, scratch) = (setup.buffer_of(&[0u32; 64]), setup.buffer_of(&[1u32; 4096]));
    parent.set_buffer(0, &numbers);
    twice.set_buffer(0, &numbers);
    large.set_buffer(0, &scratch);
    let param = CL_KERNEL_WORK_GROUP_SIZE;
    let group = info_value!(usize, clGetKernelWorkGroupInfo(large.0, device), param).min(4096);
    for barrier in [false, true] {
        let recording =
            Recording::with(&setup, &setup.queue, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR);
        let point = recording.launch(parent, &[1], &[]);
        if barrier {
            recording.barrier();
        }
        recording.launch(twice, &[64], &[point]);
        recording.finalize();
        // Everything is compiled once.
        setup.run(large, &[1], Some(&[1]));
        ok!(clWaitForEvents(1, &recording.replay_event(None, &[]).0));
        limit_memory((group as u64) << 19);
        for _ in 0..10 {
            setup.write(&numbers, &[1u32; 64]);
            let first = recording.replay_event(None, &[]);
            let mut event = null_mut();
            ok!(clEnqueueNDRangeKernel(
                setup.queue.0,
                large.0,
                1,
                null(),
                &group,
                &group,
                0,
                null(),
                &mut event
            ));
            let failing = Event(event);
            let second = recording.replay_event(None, &[failing.0]);
            let status = [&first, &failing, &second].map(|event| {
                call!(clWaitForEvents(1, &event.0));
                info_value!(
                    cl_int,
                    clGetEventInfo(event.0),
                    CL_EVENT_COMMAND_EXECUTION_STATUS
                )
            });
            assert!(
                status[0] == 0 && status[1] < 0 && status[2] < 0,
                "{status:?}"
            );
            assert_eq!(setup.read::<u32>(&numbers, 64), [6; 64]);
        }
        limit_memory(1 << 40);
    }
}

/// Commands fail by themselves on the CPU device alone.
#[cfg(target_os = "linux")]
#[test]
fn replays_where_launches_fail() {
    let param = CL_DEVICE_EXECUTION_CAPABILITIES;
    let able = info_value!(u64, clGetDeviceInfo(Setup::new().device), param);
    if able & CL_EXEC_NATIVE_KERNEL == 0 {
        return left_out("launches do not fail for want of memory");
    }
    child("replays", &[]);
}

/// Launches that might print cost what they print.
#[test]
fn launches_that_do_not_print() {
    let text = child("printing", &[]);
    assert!(text.contains("n is 3999\n"), "{text}");
}

/// Programs that are built, launched and released leave little behind.
#[test]
fn many_programs() {
    child("programs", &[]);
}

/// A kernel does not keep code for every work-group size that it ever had.
#[test]
fn many_work_group_sizes() {
    child("sizes", &[]);
}

/// A thread that is cancelled inside a call goes when the call has been made.
#[cfg(unix)]
#[test]
fn threads_that_are_cancelled() {
    child("cancelled", &[]);
    child("cancelled", &[("PUMICE_CLANG_SERVER", "0")]);
}

/// Where files may not be large, nothing is kept of a build, and the process lives.
#[cfg(unix)]
#[test]
fn small_files_only() {
    // Its memory is a file, too.
    let device = Setup::new().device;
    if info_text!(clGetDeviceInfo(device), CL_DEVICE_NAME).contains("llvmpipe") {
        return left_out("lavapipe cannot allocate memory there");
    }
    // The files of drivers are not ours to guard.
    let variables = [
        ("MESA_SHADER_CACHE_DISABLE", "true"),
        ("__GL_SHADER_DISK_CACHE", "0"),
    ];
    child("file-size", &variables);
}

/// Where no thread can be made (their stacks would be too large), everything is done without.
#[cfg(unix)]
#[test]
fn no_threads() {
    let stack = (1u64 << 50).to_string();
    for server in ["0", "1"] {
        let variables = [
            ("RUST_MIN_STACK", stack.as_str()),
            ("PUMICE_CLANG_SERVER", server),
        ];
        child("no-threads", &variables);
    }
}

/// Arrays in private memory that a driver would compile for hours are refused, or work.
#[test]
fn large_private_arrays() {
    child("private", &[]);
}

//! Program-scope constructors and destructors, and SPIR-V's Initializer and Finalizer: run once on a device, before the
//! program's first kernel and after its last reference.

use crate::il::build_text;
use pumice_tests::sys::*;
use pumice_tests::{
    call, create, fails, info_text, info_value, ok, user_data, Buffer, Event, Kernel, Program,
    Setup,
};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Objects that write a protocol: `written[0]` counts what was destructed, the rest says which in that order. A kernel tells
/// them where it is.
const SOURCE: &str = "
    global int made;
    global int *global written;
    struct Object {
        int number, order;
        Object(int n) : number(n), order(++made) {}
        ~Object() { if (written) { written[1 + written[0]] = number; written[0]++; } }
    };
    global Object first(10), second(20);
    global Object list[2] = {Object(30), Object(40)};
    namespace inner { global Object third(50); }
    struct Global { int n; ~Global() __global { if (written) { written[1 + written[0]] = n; written[0]++; } } };
    global Global constant_from_the_start = {60};
    kernel void look(global int *out) {
        out[0] = made; out[1] = first.order; out[2] = list[1].order; out[3] = inner::third.number;
    }
    kernel void take(global int *where) { written = where; }";

fn build(setup: &Setup, source: &str) -> Program {
    setup
        .try_build(source, "-cl-std=CLC++")
        .unwrap_or_else(|log| panic!("{log}"))
}

fn presence(program: &Program) -> (u32, u32) {
    let of = |name| info_value!(u32, clGetProgramInfo(program.0), name);
    (
        of(CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT),
        of(CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT),
    )
}

fn look(setup: &Setup, program: &Program) -> Vec<i32> {
    let out = setup.buffer_of(&[-1; 4]);
    let kernel = setup.kernel(program, "look");
    kernel.set_buffer(0, &out);
    setup.run(&kernel, &[1], None);
    setup.read(&out, 4)
}

/// A buffer that destructors write to, which the program knows from now on.
fn protocol(setup: &Setup, program: &Program) -> Buffer {
    let log = setup.buffer_of(&[0i32; 16]);
    let kernel = setup.kernel(program, "take");
    kernel.set_buffer(0, &log);
    setup.run(&kernel, &[1], None);
    log
}

#[test]
fn constructors_run_once_before_the_first_kernel() {
    let setup = Setup::new();
    let program = build(&setup, SOURCE);
    assert_eq!(presence(&program), (1, 1));
    let names = info_text!(clGetProgramInfo(program.0), CL_PROGRAM_KERNEL_NAMES);
    assert_eq!(names, "look;take");
    assert_eq!(
        info_value!(usize, clGetProgramInfo(program.0), CL_PROGRAM_NUM_KERNELS),
        2
    );
    for _ in 0..3 {
        assert_eq!(look(&setup, &program), [5, 1, 4, 50]);
    }
    // Another program of the same source has objects of its own.
    let other = build(&setup, SOURCE);
    assert_eq!(look(&setup, &other), [5, 1, 4, 50]);
}

#[test]
fn many_threads_find_them_run() {
    for _ in 0..5 {
        let setup = Setup::new();
        let program = build(&setup, SOURCE);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let queue = setup.new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
                    let out = setup.buffer_of(&[-1; 4]);
                    let kernel = setup.kernel(&program, "look");
                    kernel.set_buffer(0, &out);
                    queue.enqueue(&kernel, &[1], None);
                    ok!(clFinish(queue.0));
                    assert_eq!(setup.read::<i32>(&out, 4), [5, 1, 4, 50]);
                });
            }
        });
    }
}

#[test]
fn destructors_run_with_the_last_reference() {
    let setup = Setup::new();
    let program = build(&setup, SOURCE);
    let log = protocol(&setup, &program);
    let kernel = setup.kernel(&program, "look");
    drop(program);
    assert_eq!(setup.read::<i32>(&log, 1), [0]);
    drop(kernel);
    // The last first, and each once; arrays from their end.
    assert_eq!(setup.read::<i32>(&log, 8), [6, 60, 50, 40, 30, 20, 10, 0]);
}

/// Checks that programs without a launch run no finalizer.
#[test]
fn programs_that_never_ran() {
    let setup = Setup::new();
    let counter = Released::new();
    let program = build(&setup, SOURCE);
    counter.register(&program, 1);
    drop(program);
    assert_eq!(counter.seen(), [1]);
}

#[test]
fn building_again_is_an_end() {
    let setup = Setup::new();
    let program = build(&setup, SOURCE);
    let log = protocol(&setup, &program);
    ok!(clBuildProgram(
        program.0,
        1,
        &setup.device,
        c"-cl-std=CLC++".as_ptr(),
        None,
        null_mut()
    ));
    assert_eq!(setup.read::<i32>(&log, 1), [6]);
    assert_eq!(look(&setup, &program), [5, 1, 4, 50]);
}

/// Binaries and the caches say it too.
#[test]
fn binaries() {
    let setup = Setup::new();
    let program = build(&setup, SOURCE);
    let binary = crate::programs::separate::binary_of(&program);
    let (mut pointer, size) = (binary.as_ptr(), binary.len());
    let again = Program(create!(clCreateProgramWithBinary(
        setup.context.0,
        1,
        &setup.device,
        &size,
        &mut pointer,
        null_mut()
    )));
    again.build();
    assert_eq!(presence(&again), (1, 1));
    assert_eq!(look(&setup, &again), [5, 1, 4, 50]);
    let log = protocol(&setup, &again);
    drop(again);
    assert_eq!(setup.read::<i32>(&log, 2), [6, 60]);
}

/// Programs without constructors say so, and refuse the callback.
#[test]
fn programs_without_objects() {
    let setup = Setup::new();
    let released = Released::new();
    for options in ["-cl-std=CL3.0", "-cl-std=CLC++"] {
        let program = setup
            .try_build("global int n = 3; kernel void k() {}", options)
            .unwrap();
        assert_eq!(presence(&program), (0, 0));
        fails!(
            CL_INVALID_OPERATION,
            clSetProgramReleaseCallback(program.0, Some(called), released.data(1))
        );
    }
    let program = setup.program("kernel void k() {}");
    let mut value = 0u32;
    for name in [
        CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT,
        CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT,
    ] {
        fails!(
            CL_INVALID_PROGRAM_EXECUTABLE,
            clGetProgramInfo(program.0, name, 4, (&raw mut value).cast(), null_mut())
        );
    }
    fails!(
        CL_INVALID_OPERATION,
        clSetProgramReleaseCallback(program.0, Some(called), released.data(1))
    );
    let program = build(&setup, SOURCE);
    fails!(
        CL_INVALID_VALUE,
        clSetProgramReleaseCallback(program.0, None, null_mut())
    );
    drop(program);
    assert_eq!(released.seen(), []);
    // Constructors alone are nothing to wait for at the end.
    let source = "struct A { int n; A() : n(get_work_dim()) {} }; global A a; kernel void k(global int *p) { *p = a.n; }";
    let program = build(&setup, source);
    assert_eq!(presence(&program), (1, 0));
}

/// Calls that came, in their order, by a number that each test has for itself.
static CALLS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

unsafe extern "C" fn called(_program: cl_program, data: *mut c_void) {
    CALLS.lock().unwrap().push(data as usize);
}

struct Released(usize);

impl Released {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed) * 100)
    }

    fn data(&self, number: usize) -> *mut c_void {
        user_data(self.0 + number)
    }

    fn register(&self, program: &Program, number: usize) {
        ok!(clSetProgramReleaseCallback(
            program.0,
            Some(called),
            self.data(number)
        ));
    }

    fn seen(&self) -> Vec<usize> {
        let calls = CALLS.lock().unwrap();
        let mine = calls.iter().filter(|call| *call / 100 * 100 == self.0);
        mine.map(|call| call % 100).collect()
    }

    /// Waits for a call; the last calls come from another thread where launches outlast the program.
    fn wait(&self, count: usize) -> Vec<usize> {
        let begin = Instant::now();
        while self.seen().len() < count && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.seen()
    }
}

#[test]
fn callbacks_come_after_the_destructors() {
    let setup = Setup::new();
    let released = Released::new();
    let program = build(&setup, SOURCE);
    for number in 1..=3 {
        released.register(&program, number);
    }
    let log = protocol(&setup, &program);
    let kernel: Kernel = setup.kernel(&program, "look");
    drop(program);
    assert_eq!(released.seen(), []);
    drop(kernel);
    assert_eq!(released.seen(), [3, 2, 1]);
    assert_eq!(setup.read::<i32>(&log, 1), [6]);
}

/// Launches that wait for the application when it lets go of everything: nobody waits for them, and they come first.
#[test]
fn launches_under_way_come_before_destructors() {
    let setup = Setup::new();
    let released = Released::new();
    let program = build(&setup, SOURCE);
    released.register(&program, 1);
    let log = setup.buffer_of(&[0i32; 16]);
    let out = setup.buffer_of(&[0i32; 4]);
    let gate = Event::user(&setup.context);
    let (take, look) = (
        setup.kernel(&program, "take"),
        setup.kernel(&program, "look"),
    );
    take.set_buffer(0, &log);
    look.set_buffer(0, &out);
    let one = 1usize;
    for kernel in [&take, &look] {
        ok!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            1,
            null(),
            &one,
            null(),
            1,
            &gate.0,
            null_mut()
        ));
    }
    drop((take, look, program));
    assert_eq!(call!(clFlush(setup.queue.0)), 0);
    assert_eq!(released.seen(), []);
    gate.finish(0);
    ok!(clFinish(setup.queue.0));
    assert_eq!(released.wait(1), [1]);
    assert_eq!(setup.read::<i32>(&out, 4), [5, 1, 4, 50]);
    assert_eq!(setup.read::<i32>(&log, 7), [6, 60, 50, 40, 30, 20, 10]);
}

/// A module made by hand, with two of each.
fn module(modes: &str) -> String {
    let entry = |name: &str| format!("OpEntryPoint Kernel %{name} \"{name}\" %value %where\n");
    let function = |name: &str, body: &str| {
        format!("%{name} = OpFunction %void None %plain\n%{name}_l = OpLabel\n{body}\nOpReturn\nOpFunctionEnd\n")
    };
    // value = value * 10 + digit
    let append = |digit: u32| {
        let n = format!("%a{digit}");
        format!(
            "{n} = OpLoad %u32 %value Aligned 4\n{n}x = OpIMul %u32 {n} %ten\n{n}y = OpIAdd %u32 {n}x %d{digit}\nOpStore %value {n}y Aligned 4"
        )
    };
    let publish = |number: u32| {
        let n = format!("%b{number}");
        format!(
            "{n}p = OpLoad %ptr %where Aligned 8\n{n}v = OpLoad %u32 %value Aligned 4\nOpStore {n}p {n}v Aligned 4"
        )
    };
    let mut text = "OpCapability Addresses\nOpCapability Kernel\nOpCapability Int64\n\
        OpMemoryModel Physical64 OpenCL\n"
        .to_owned();
    for name in ["one", "k", "end", "two", "last"] {
        text += &entry(name);
    }
    text += modes;
    text += "\n%void = OpTypeVoid\n%u32 = OpTypeInt 32 0\n%ten = OpConstant %u32 10\n%zero = OpConstant %u32 0\n";
    for digit in 1..=4 {
        text += &format!("%d{digit} = OpConstant %u32 {digit}\n");
    }
    text += "%ptr = OpTypePointer CrossWorkgroup %u32\n%pptr = OpTypePointer CrossWorkgroup %ptr\n\
        %value = OpVariable %ptr CrossWorkgroup %zero\n%null = OpConstantNull %ptr\n\
        %where = OpVariable %pptr CrossWorkgroup %null\n\
        %plain = OpTypeFunction %void\n%kernel = OpTypeFunction %void %ptr\n\
        %k = OpFunction %void None %kernel\n%out = OpFunctionParameter %ptr\n%kl = OpLabel\n\
        OpStore %where %out Aligned 8\n%now = OpLoad %u32 %value Aligned 4\nOpStore %out %now Aligned 4\nOpReturn\nOpFunctionEnd\n";
    text += &function("one", &append(1));
    text += &function("two", &append(2));
    text += &function("end", &format!("{}\n{}", append(3), publish(1)));
    text += &function("last", &format!("{}\n{}", append(4), publish(2)));
    text
}

const MODES: &str = "OpExecutionMode %one Initializer\nOpExecutionMode %two Initializer\n\
    OpExecutionMode %end Finalizer\nOpExecutionMode %last Finalizer\n";

#[test]
fn entry_points_of_spirv() {
    let setup = Setup::new();
    let program = build_text(&setup, &module(MODES)).unwrap_or_else(|log| panic!("{log}"));
    assert_eq!(presence(&program), (1, 1));
    let names = info_text!(clGetProgramInfo(program.0), CL_PROGRAM_KERNEL_NAMES);
    assert_eq!(names, "k");
    let mut code = 0;
    assert!(call!(clCreateKernel(program.0, c"one".as_ptr(), &mut code)).is_null());
    assert_eq!(code, CL_INVALID_KERNEL_NAME);
    let out = setup.buffer_of(&[0u32]);
    let kernel = setup.kernel(&program, "k");
    kernel.set_buffer(0, &out);
    for _ in 0..2 {
        setup.run(&kernel, &[1], None);
        assert_eq!(setup.read::<u32>(&out, 1), [12]);
    }
    drop((kernel, program));
    assert_eq!(setup.read::<u32>(&out, 1), [1243]);
}

/// An initializer that cannot run: so cannot the kernels, each time anew.
#[test]
fn initializers_that_cannot_run() {
    let setup = Setup::new();
    let modes = format!("{MODES}OpExecutionMode %two LocalSize 60000 60000 1\n");
    let program = build_text(&setup, &module(&modes)).unwrap_or_else(|log| panic!("{log}"));
    let out = setup.buffer_of(&[77u32]);
    let kernel = setup.kernel(&program, "k");
    kernel.set_buffer(0, &out);
    for _ in 0..2 {
        let code = setup.queue.try_enqueue(&kernel, &[1], None);
        assert_eq!(code, CL_OUT_OF_RESOURCES);
    }
    drop((kernel, program));
    assert_eq!(setup.read::<u32>(&out, 1), [77]);
}

#[test]
fn modes_that_make_no_sense() {
    let setup = Setup::new();
    for mode in [
        // It has a parameter.
        "OpExecutionMode %k Initializer\n",
        "OpExecutionMode %one Finalizer\n",
    ] {
        let log = build_text(&setup, &module(&format!("{MODES}{mode}"))).map(drop);
        let log = log.expect_err(mode);
        assert!(log.contains("CL_INVALID_VALUE"), "{log}");
    }
}

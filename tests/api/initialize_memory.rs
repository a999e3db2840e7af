//! Contexts whose kernels find zeros in local and private memory (cl_khr_initialize_memory).

use crate::il;
use pumice_tests::sys::*;
use pumice_tests::{
    create, create_fails, first_device, good_child, info_value, job, left_out, ok, Context, Kernel,
    Program, Setup,
};
use std::ptr::{null, null_mut};

const SOURCE: &str = include_str!("initialize_memory.cl");

const LOCAL: u64 = CL_CONTEXT_MEMORY_INITIALIZE_LOCAL_KHR;
const PRIVATE: u64 = CL_CONTEXT_MEMORY_INITIALIZE_PRIVATE_KHR;

fn properties(bits: u64) -> [cl_context_properties; 3] {
    [
        CL_CONTEXT_MEMORY_INITIALIZE_KHR as cl_context_properties,
        bits as cl_context_properties,
        0,
    ]
}

fn setup(bits: u64) -> Setup {
    let (list, device) = (properties(bits), first_device());
    let context = create!(clCreateContext(list.as_ptr(), 1, &device, None, null_mut()));
    Setup::of(Context(context), 0)
}

/// Leaves other values than zeros in the memory of the device.
fn fill(setup: &Setup, program: &Program) {
    let bytes = info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_LOCAL_MEM_SIZE);
    let bytes = bytes.min(32 << 10) as usize;
    let kernel = setup.kernel(program, "fill");
    let to = setup.buffer_of(&[5u32; 257]);
    kernel.set_local(0, bytes).set(1, bytes as u32 / 4);
    kernel.set_buffer(2, &to);
    setup.run(&kernel, &[256], Some(&[32]));
}

/// Runs a kernel, whose first argument is counters, and checks that it has found nothing.
fn check(
    setup: &Setup,
    program: &Program,
    name: &str,
    global: &[usize],
    local: &[usize],
    set: impl Fn(&Kernel),
) {
    for _ in 0..3 {
        fill(setup, program);
        let wrong = setup.buffer_of(&[0u32; 4]);
        let kernel = setup.kernel(program, name);
        kernel.set_buffer(0, &wrong);
        set(&kernel);
        setup.run(&kernel, global, Some(local));
        assert_eq!(setup.read::<u32>(&wrong, 1), [0], "{name} {local:?}");
    }
}

/// Checks local variables and arguments.
fn check_local(setup: &Setup, program: &Program) {
    let place = |kernel: &Kernel| {
        kernel.set(1, 3i32);
    };
    check(setup, program, "variables", &[128], &[16], place);
    check(setup, program, "variables", &[50], &[25], place);
    check(setup, program, "variables", &[12, 6, 4], &[3, 2, 2], place);
    // Beside one another in a pack of the CPU device, and one after the other.
    check(setup, program, "variables", &[500], &[1], place);
    check(setup, program, "variables", &[2], &[1], place);
    check(setup, program, "stored_once", &[64], &[16], |_| ());
    check(setup, program, "stored_once", &[300], &[1], |_| ());
    for (bytes, words) in [(1usize, 1usize), (999, 77), (5000, 1200)] {
        check(setup, program, "arguments", &[128], &[32], |kernel| {
            kernel.set_local(1, bytes).set(2, bytes as u32);
            kernel.set_local(3, 4 * words).set(4, words as u32);
            kernel.set_local(5, 8);
        });
    }
}

fn check_private(setup: &Setup, program: &Program) {
    let way = |kernel: &Kernel| {
        kernel.set(1, 0u32);
    };
    for local in [32, 5, 1] {
        check(setup, program, "privates", &[320], &[local], way);
    }
}

#[test]
fn memory_is_zero() {
    // The same program without it first: they share no entry of a cache.
    drop(Setup::new().build(SOURCE));
    let both = setup(LOCAL | PRIVATE);
    let program = both.build(SOURCE);
    check_local(&both, &program);
    check_private(&both, &program);
    let local = setup(LOCAL);
    check_local(&local, &local.build(SOURCE));
    let private = setup(PRIVATE);
    let unoptimised = private.try_build(SOURCE, "-cl-opt-disable").unwrap();
    check_private(&private, &private.build(SOURCE));
    check_private(&private, &unoptimised);
}

/// Not a test of its own: the child of the next.
#[test]
fn child() {
    if job().is_none() {
        return;
    }
    let both = setup(LOCAL | PRIVATE);
    let program = both.build(SOURCE);
    check_local(&both, &program);
    check_private(&both, &program);
}

#[test]
fn memory_of_functions_that_are_shared_or_called_is_zero() {
    good_child(
        "initialize_memory::child",
        "",
        &[("PUMICE_PASSES", "one-copy,verify")],
    );
}

#[test]
fn memory_of_kernels_that_kernels_enqueue_is_zero() {
    let setup = setup(LOCAL | PRIVATE);
    let on_device = [
        u64::from(CL_QUEUE_PROPERTIES),
        CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT,
        0,
    ];
    let queue = create!(clCreateCommandQueueWithProperties(
        setup.context.0,
        setup.device,
        on_device.as_ptr()
    ));
    let program = setup.try_build(SOURCE, "-cl-std=CL3.0 -DENQUEUES").unwrap();
    for bytes in [1u32, 777, 4096] {
        fill(&setup, &program);
        let wrong = setup.buffer_of(&[0u32, 0, 1]);
        let kernel = setup.kernel(&program, "enqueues");
        kernel.set(0, queue).set_buffer(1, &wrong).set(2, bytes);
        setup.run(&kernel, &[1], None);
        let [found, last, refused] = setup.read::<[u32; 3]>(&wrong, 1)[0];
        assert_eq!((found, refused), (0, 0), "{bytes}");
        assert_eq!(last, u32::from((1 + bytes / 2) as u8));
    }
    ok!(clReleaseCommandQueue(queue));
}

/// Programs that were compiled and linked, and those that come back from a binary.
#[test]
fn linked_programs_and_binaries_find_zeros() {
    let both = setup(LOCAL | PRIVATE);
    let unlinked = both.program(SOURCE);
    ok!(clCompileProgram(
        unlinked.0,
        0,
        null(),
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    let linked = Program(create!(clLinkProgram(
        both.context.0,
        0,
        null(),
        null(),
        1,
        &unlinked.0,
        None,
        null_mut()
    )));
    check_local(&both, &linked);
    check_private(&both, &linked);
    // Of a context without it: the kernels in the binary are not those that are run.
    let plain = Setup::new();
    let unoptimised = plain.try_build(SOURCE, "-cl-opt-disable").unwrap();
    for made in [linked, unoptimised] {
        let again = from_binary(&both, &made);
        check_local(&both, &again);
        check_private(&both, &again);
    }
}

fn from_binary(setup: &Setup, made: &Program) -> Program {
    let size = info_value!(usize, clGetProgramInfo(made.0), CL_PROGRAM_BINARY_SIZES);
    let mut binary = vec![0u8; size];
    let mut to = binary.as_mut_ptr();
    ok!(clGetProgramInfo(
        made.0,
        CL_PROGRAM_BINARIES,
        size_of::<*mut u8>(),
        (&raw mut to).cast(),
        null_mut()
    ));
    let mut from = binary.as_ptr();
    let program = Program(create!(clCreateProgramWithBinary(
        setup.context.0,
        1,
        &setup.device,
        &size,
        &mut from,
        null_mut()
    )));
    program.build();
    program
}

/// Variables of SPIR-V without initializers, and values that are undefined.
#[test]
fn modules_find_zeros() {
    let setup = setup(LOCAL | PRIVATE);
    let text = "OpCapability Addresses
        OpCapability Kernel
        OpMemoryModel Physical64 OpenCL
        OpEntryPoint Kernel %k \"k\" %shared
        %void = OpTypeVoid
        %u32 = OpTypeInt 32 0
        %one = OpConstant %u32 1
        %four = OpConstant %u32 4
        %row = OpTypeArray %u32 %four
        %global = OpTypePointer CrossWorkgroup %u32
        %local = OpTypePointer Workgroup %u32
        %private = OpTypePointer Function %u32
        %private_row = OpTypePointer Function %row
        %type = OpTypeFunction %void %global
        %shared = OpVariable %local Workgroup
        %undefined = OpUndef %u32
        %k = OpFunction %void None %type
        %to = OpFunctionParameter %global
        %entry = OpLabel
        %own = OpVariable %private Function
        %own_row = OpVariable %private_row Function
        %a = OpLoad %u32 %shared
        %b = OpLoad %u32 %own
        %index = OpLoad %u32 %to Aligned 4
        %element = OpInBoundsAccessChain %private %own_row %index
        %c = OpLoad %u32 %element
        %ab = OpBitwiseOr %u32 %a %b
        %abc = OpBitwiseOr %u32 %ab %c
        %all = OpBitwiseOr %u32 %abc %undefined
        OpStore %to %all Aligned 4
        OpReturn
        OpFunctionEnd";
    let program = il::build_text(&setup, text).unwrap_or_else(|log| panic!("{log}"));
    let filled = setup.build(SOURCE);
    for _ in 0..3 {
        fill(&setup, &filled);
        let to = setup.buffer_of(&[2u32]);
        let kernel = setup.kernel(&program, "k");
        kernel.set_buffer(0, &to);
        setup.run(&kernel, &[1], None);
        assert_eq!(setup.read::<u32>(&to, 1), [0]);
    }
}

#[test]
fn bits_are_checked_and_reported() {
    let plain = Setup::new();
    if !plain.has_extension("cl_khr_initialize_memory") {
        return left_out("cl_khr_initialize_memory is not reported");
    }
    for bits in 0..4 {
        let setup = setup(bits);
        let kept = info_value!(
            [isize; 3],
            clGetContextInfo(setup.context.0),
            CL_CONTEXT_PROPERTIES
        );
        assert_eq!(kept, properties(bits));
    }
    for bits in [4, 1 << 40, u64::MAX] {
        create_fails!(
            CL_INVALID_PROPERTY,
            clCreateContext(
                properties(bits).as_ptr(),
                1,
                &plain.device,
                None,
                null_mut()
            )
        );
    }
}

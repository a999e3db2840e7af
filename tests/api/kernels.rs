//! Kernels: arguments, memories, queries, lives; and what is refused.

mod arithmetic;
mod atomics;
mod groups_of_one;
mod nested_loops;
mod sizes;
mod wide;

use super::buffers::Random;
use pumice_tests::sys::*;
use pumice_tests::{
    call, create_fails, fails, info, info_text, info_value, ok, Kernel, Plain, Setup,
};
use std::ptr::{null, null_mut};

#[test]
fn queries() {
    let setup = Setup::new();
    let program = setup.build(
        "kernel __attribute__((reqd_work_group_size(4, 2, 1))) void fixed(global int *p, local int *l) {
             l[get_local_id(0)] = 1; p[get_global_id(0)] = l[0]; }
         kernel void plain(global int *p, int n) { p[0] = n; }",
    );
    let kernel = setup.kernel(&program, "fixed");
    assert_eq!(
        info_text!(clGetKernelInfo(kernel.0), CL_KERNEL_FUNCTION_NAME),
        "fixed"
    );
    assert_eq!(
        info_value!(u32, clGetKernelInfo(kernel.0), CL_KERNEL_NUM_ARGS),
        2
    );
    assert_eq!(
        info_value!(u32, clGetKernelInfo(kernel.0), CL_KERNEL_REFERENCE_COUNT),
        1
    );
    assert_eq!(
        info_value!(usize, clGetKernelInfo(kernel.0), CL_KERNEL_CONTEXT),
        setup.context.0 as usize
    );
    assert_eq!(
        info_value!(usize, clGetKernelInfo(kernel.0), CL_KERNEL_PROGRAM),
        program.0 as usize
    );
    let attributes = info_text!(clGetKernelInfo(kernel.0), CL_KERNEL_ATTRIBUTES);
    assert!(
        attributes.contains("reqd_work_group_size(4"),
        "{attributes:?}"
    );
    fails!(
        CL_INVALID_VALUE,
        clGetKernelInfo(kernel.0, 0x1234, 0, null_mut(), null_mut())
    );
    let k = kernel.0;
    let d = setup.device;
    let required = info_value!(
        [usize; 3],
        clGetKernelWorkGroupInfo(k, d),
        CL_KERNEL_COMPILE_WORK_GROUP_SIZE
    );
    assert_eq!(required, [4, 2, 1]);
    assert!(
        info_value!(
            usize,
            clGetKernelWorkGroupInfo(k, d),
            CL_KERNEL_WORK_GROUP_SIZE
        ) >= 8
    );
    assert!(
        info_value!(
            usize,
            clGetKernelWorkGroupInfo(k, d),
            CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE
        ) >= 1
    );
    let before = info_value!(
        u64,
        clGetKernelWorkGroupInfo(k, d),
        CL_KERNEL_LOCAL_MEM_SIZE
    );
    kernel.set_local(1, 1024);
    let after = info_value!(
        u64,
        clGetKernelWorkGroupInfo(k, d),
        CL_KERNEL_LOCAL_MEM_SIZE
    );
    assert_eq!(after, before + 1024);
    let own = setup.kernel_of(
        "kernel void f(global int *p) {
             local int own[1000];
             own[get_local_id(0)] = p[0];
             barrier(CLK_LOCAL_MEM_FENCE);
             p[1] = own[get_local_id(0) ^ 1]; }",
        "f",
    );
    let size = info_value!(
        u64,
        clGetKernelWorkGroupInfo(own.0, d),
        CL_KERNEL_LOCAL_MEM_SIZE
    );
    assert!((4000..4400).contains(&size), "{size}");
    info_value!(
        u64,
        clGetKernelWorkGroupInfo(k, d),
        CL_KERNEL_PRIVATE_MEM_SIZE
    );
    // One device: it need not be named.
    let n = null_mut();
    assert!(
        info_value!(
            usize,
            clGetKernelWorkGroupInfo(k, n),
            CL_KERNEL_WORK_GROUP_SIZE
        ) >= 8
    );
    fails!(
        CL_INVALID_VALUE,
        clGetKernelWorkGroupInfo(k, d, CL_KERNEL_GLOBAL_WORK_SIZE, 0, null_mut(), null_mut())
    );
    let plain = setup.kernel(&program, "plain");
    let required = info_value!(
        [usize; 3],
        clGetKernelWorkGroupInfo(plain.0, d),
        CL_KERNEL_COMPILE_WORK_GROUP_SIZE
    );
    assert_eq!(required, [0, 0, 0]);
}

#[test]
fn wrong_arguments() {
    let setup = Setup::new();
    let program = setup.build(
        "typedef struct { int a; float4 b; } S;
         kernel void f(global int *p, int n, local int *l, S s, constant int *c) {
             p[0] = n + l[0] + s.a + c[0]; }",
    );
    let kernel = setup.kernel(&program, "f");
    let buffer = setup.buffer(64);
    let word = 0u32;
    let word = (&raw const word).cast();
    let handle = (&raw const buffer.0).cast();
    fails!(CL_INVALID_ARG_INDEX, clSetKernelArg(kernel.0, 5, 4, word));
    fails!(CL_INVALID_ARG_SIZE, clSetKernelArg(kernel.0, 1, 8, word));
    fails!(CL_INVALID_ARG_SIZE, clSetKernelArg(kernel.0, 1, 0, word));
    fails!(CL_INVALID_ARG_VALUE, clSetKernelArg(kernel.0, 1, 4, null()));
    fails!(CL_INVALID_ARG_SIZE, clSetKernelArg(kernel.0, 0, 4, handle));
    fails!(CL_INVALID_ARG_VALUE, clSetKernelArg(kernel.0, 2, 64, word));
    let size = [0u8; 64];
    fails!(
        CL_INVALID_ARG_SIZE,
        clSetKernelArg(kernel.0, 3, 31, size.as_ptr().cast())
    );
    let context = setup.context.0;
    fails!(
        CL_INVALID_MEM_OBJECT,
        clSetKernelArg(kernel.0, 0, 8, (&raw const context).cast())
    );
    // Not all are set.
    fails!(
        CL_INVALID_KERNEL_ARGS,
        clEnqueueNDRangeKernel(
            setup.queue.0,
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
    kernel
        .set_buffer(0, &buffer)
        .set(1, 3i32)
        .set_local(2, 64)
        .set(3, [0u8; 32])
        .set_buffer(4, &buffer);
    setup.run(&kernel, &[1], None);
    create_fails!(
        CL_INVALID_KERNEL_NAME,
        clCreateKernel(program.0, c"g".as_ptr())
    );
    create_fails!(CL_INVALID_VALUE, clCreateKernel(program.0, null()));
}

#[test]
fn more_arguments_than_push_constants_hold() {
    let setup = Setup::new();
    let count = 60;
    let list: Vec<String> = (0..count).map(|i| format!("long a{i}")).collect();
    let sum: Vec<String> = (0..count).map(|i| format!("a{i} * {}", i + 1)).collect();
    let source = format!(
        "kernel void f(global long *out, {}) {{ out[get_global_id(0)] = {} + get_global_id(0); }}",
        list.join(", "),
        sum.join(" + ")
    );
    let kernel = setup.kernel_of(&source, "f");
    let out = setup.buffer(64);
    kernel.set_buffer(0, &out);
    let mut expected = 0;
    for i in 0..count {
        let value = (i as i64 - 30) * 1_000_000_007;
        kernel.set(i + 1, value);
        expected += value * i64::from(i + 1);
    }
    setup.run(&kernel, &[8], None);
    assert_eq!(
        setup.read::<i64>(&out, 8),
        (0..8).map(|i| expected + i).collect::<Vec<_>>()
    );
}

/// Arguments are taken when the kernel is enqueued.
#[test]
fn arguments_change_between_enqueues() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void f(global int *p, int at, int v) { p[at] = v; }",
        "f",
    );
    let buffer = setup.buffer(400);
    kernel.set_buffer(0, &buffer);
    for i in 0..100i32 {
        kernel.set(1, i).set(2, i * i);
        setup.enqueue(&kernel, &[1], None);
    }
    kernel.set(1, 0i32).set(2, -1i32);
    assert_eq!(
        setup.read::<i32>(&buffer, 100),
        (0..100).map(|i| i * i).collect::<Vec<_>>()
    );
    // A clone has arguments of its own.
    let copy = Kernel(pumice_tests::create!(clCloneKernel(kernel.0)));
    copy.set(2, 5i32);
    setup.run(&copy, &[1], None);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [-1]);
    setup.run(&copy, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [5]);
}

#[test]
fn null_buffers() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void f(global int *p, global int *q) { q[0] = p == 0 ? 7 : 8; }",
        "f",
    );
    let buffer = setup.buffer(64);
    kernel.set_buffer(1, &buffer);
    ok!(clSetKernelArg(kernel.0, 0, size_of::<usize>(), null()));
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [7]);
    kernel.set(0, null_mut::<std::ffi::c_void>());
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [7]);
}

#[test]
fn local_memory_and_barriers() {
    let setup = Setup::new();
    // Sums of groups by halving, through a local argument and a local variable.
    let source = "
        kernel void f(global const int *in, global int *out, local int *scratch) {
            local int base;
            size_t l = get_local_id(0), n = get_local_size(0);
            if (l == 0) base = (int)get_group_id(0) * 1000;
            scratch[l] = in[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (size_t step = n / 2; step > 0; step /= 2) {
                if (l < step) scratch[l] += scratch[l + step];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (l == 0) out[get_group_id(0)] = scratch[0] + base;
        }";
    let kernel = setup.kernel_of(source, "f");
    let input: Vec<i32> = (0..4096).map(|i| i * 37 % 101 - 50).collect();
    let (a, out) = (setup.buffer_of(&input), setup.buffer(4096 * 4));
    for local in [1usize, 2, 16, 64, 256] {
        kernel
            .set_buffer(0, &a)
            .set_buffer(1, &out)
            .set_local(2, local * 4);
        setup.run(&kernel, &[4096], Some(&[local]));
        let expected: Vec<i32> = input
            .chunks(local)
            .enumerate()
            .map(|(group, part)| part.iter().sum::<i32>() + group as i32 * 1000)
            .collect();
        assert_eq!(
            setup.read::<i32>(&out, expected.len()),
            expected,
            "local size {local}"
        );
    }
    let most = info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_LOCAL_MEM_SIZE) as usize;
    kernel.set_local(2, most + 64);
    fails!(
        CL_OUT_OF_RESOURCES,
        clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            1,
            null(),
            &64,
            &64,
            0,
            null(),
            null_mut()
        )
    );
}

/// From OpenCL 3.1 on a local argument may have no memory at all.
#[test]
fn empty_local_arguments() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void f(local int *l, global int *p, int use) { if (use) l[0] = 1; p[0] = use ? l[0] : 5; }",
        "f",
    );
    if !pumice_tests::at_least(&setup, 3, 1) {
        fails!(CL_INVALID_ARG_SIZE, clSetKernelArg(kernel.0, 0, 0, null()));
        return pumice_tests::left_out("the device is not of OpenCL 3.1");
    }
    let buffer = setup.buffer(4);
    kernel.set_local(0, 0).set_buffer(1, &buffer).set(2, 0i32);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [5]);
}

#[test]
fn kernels_outlive_their_program() {
    let setup = Setup::new();
    let program = setup.build(
        "kernel void f(global int *p) { *p = 11; } kernel void g(global int *p) { *p = 12; }",
    );
    let mut count = 0;
    ok!(clCreateKernelsInProgram(
        program.0,
        0,
        null_mut(),
        &mut count
    ));
    assert_eq!(count, 2);
    let mut kernels = [null_mut(); 2];
    fails!(
        CL_INVALID_VALUE,
        clCreateKernelsInProgram(program.0, 1, kernels.as_mut_ptr(), null_mut())
    );
    ok!(clCreateKernelsInProgram(
        program.0,
        2,
        kernels.as_mut_ptr(),
        null_mut()
    ));
    drop(program);
    let buffer = setup.buffer(4);
    let mut sum = 0;
    for kernel in kernels.map(Kernel) {
        kernel.set_buffer(0, &buffer);
        setup.run(&kernel, &[1], None);
        sum += setup.read::<i32>(&buffer, 1)[0];
    }
    assert_eq!(sum, 23);
    assert!(!info!(clGetDeviceInfo(setup.device), CL_DEVICE_NAME).is_empty());
}

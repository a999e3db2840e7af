//! Kernels: arguments, work sizes, memories, types, atomics, barriers; and what is refused.

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
fn wrong_work_sizes() {
    let setup = Setup::new();
    let program = setup.build(
        "kernel void f(global int *p) { p[0] = 1; }
         kernel __attribute__((reqd_work_group_size(8, 1, 1))) void fixed(global int *p) { p[0] = 1; }",
    );
    let (kernel, fixed) = (setup.kernel(&program, "f"), setup.kernel(&program, "fixed"));
    let buffer = setup.buffer(64);
    kernel.set_buffer(0, &buffer);
    fixed.set_buffer(0, &buffer);
    let go = |kernel: &Kernel,
              dims,
              offset: Option<&[usize]>,
              global: Option<&[usize]>,
              local: Option<&[usize]>| {
        let pointer = |list: Option<&[usize]>| list.map_or(null(), <[usize]>::as_ptr);
        pumice_tests::call!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            dims,
            pointer(offset),
            pointer(global),
            pointer(local),
            0,
            null(),
            null_mut()
        ))
    };
    let eight = [8usize; 3];
    assert_eq!(
        go(&kernel, 0, None, Some(&eight), None),
        CL_INVALID_WORK_DIMENSION
    );
    assert_eq!(
        go(&kernel, 4, None, Some(&eight), None),
        CL_INVALID_WORK_DIMENSION
    );
    let most = info_value!(
        usize,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_WORK_GROUP_SIZE
    );
    assert_eq!(
        go(&kernel, 1, None, Some(&[8 * most]), Some(&[2 * most])),
        CL_INVALID_WORK_GROUP_SIZE
    );
    assert_eq!(
        go(&kernel, 1, None, Some(&eight), Some(&[0])),
        CL_INVALID_WORK_GROUP_SIZE
    );
    assert_eq!(
        go(&fixed, 1, None, Some(&eight), Some(&[4])),
        CL_INVALID_WORK_GROUP_SIZE
    );
    assert_eq!(
        go(&fixed, 1, None, Some(&[12]), Some(&[8])),
        CL_INVALID_WORK_GROUP_SIZE
    );
    let sizes = info_value!(
        [usize; 3],
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_WORK_ITEM_SIZES
    );
    let code = go(
        &kernel,
        3,
        None,
        Some(&[1, 1, 2 * sizes[2]]),
        Some(&[1, 1, 2 * sizes[2]]),
    );
    assert!(
        matches!(code, CL_INVALID_WORK_ITEM_SIZE | CL_INVALID_WORK_GROUP_SIZE),
        "{code}"
    );
    assert_eq!(go(&fixed, 1, None, Some(&[16]), Some(&[8])), CL_SUCCESS);
    ok!(clFinish(setup.queue.0));
    // Nothing to do is no error since OpenCL 2.1.
    assert_eq!(go(&kernel, 1, None, Some(&[0]), None), CL_SUCCESS);
    ok!(clFinish(setup.queue.0));
}

const IDS: &str = "
    kernel void ids(global uint *out) {
        size_t x = get_global_id(0) - get_global_offset(0);
        size_t y = get_global_id(1) - get_global_offset(1);
        size_t z = get_global_id(2) - get_global_offset(2);
        size_t at = (z * get_global_size(1) + y) * get_global_size(0) + x;
        global uint *o = out + at * 24;
        for (uint d = 0; d < 3; ++d) {
            o[d * 8 + 0] = get_global_id(d);
            o[d * 8 + 1] = get_local_id(d);
            o[d * 8 + 2] = get_group_id(d);
            o[d * 8 + 3] = get_global_size(d);
            o[d * 8 + 4] = get_local_size(d);
            o[d * 8 + 5] = get_num_groups(d);
            o[d * 8 + 6] = get_global_offset(d);
            o[d * 8 + 7] = get_enqueued_local_size(d);
        }
    }";

/// Each work-item counts itself, so that one too few, one too many and one with wrong ids all show.
const COUNT: &str = "
    kernel void count(global uint *out, uint guess) {
        size_t x = get_global_id(0) - get_global_offset(0);
        size_t y = get_global_id(1) - get_global_offset(1);
        size_t z = get_global_id(2) - get_global_offset(2);
        size_t at = (z * get_global_size(1) + y) * get_global_size(0) + x;
        uint table[8];
        for (uint i = 0; i < 8; ++i)
            table[i] = i * guess;
        atomic_add(out + at, table[at & 7] + 1);
    }";

#[test]
fn odd_sizes_where_the_grouping_does_not_show() {
    let setup = Setup::new();
    let guess = 3u32;
    for options in ["-cl-std=CL1.2", "-cl-std=CL3.0"] {
        let program = setup
            .try_build(COUNT, options)
            .unwrap_or_else(|log| panic!("{log}"));
        let kernel = setup.kernel(&program, "count");
        ok!(clSetKernelArg(kernel.0, 1, 4, (&raw const guess).cast()));
        let cases: [(u32, [usize; 3]); 11] = [
            (1, [1, 1, 1]),
            (1, [37, 1, 1]),
            (1, [251, 1, 1]),
            (1, [4099, 1, 1]),
            (2, [13, 9, 1]),
            (2, [257, 3, 1]),
            (2, [1, 511, 1]),
            (2, [64, 64, 1]),
            (3, [7, 5, 3]),
            (3, [1, 1, 97]),
            (3, [33, 17, 5]),
        ];
        for (dims, global) in cases {
            for offset in [[0, 0, 0], [11, 5, 3]] {
                let items: usize = global.iter().product();
                // A row more than is counted.
                let room = items + global[0] * global[1] + 300;
                let buffer = setup.buffer_of(&vec![0u32; room]);
                kernel.set_buffer(0, &buffer);
                ok!(clEnqueueNDRangeKernel(
                    setup.queue.0,
                    kernel.0,
                    dims,
                    offset.as_ptr(),
                    global.as_ptr(),
                    null(),
                    0,
                    null(),
                    null_mut()
                ));
                let out = setup.read::<u32>(&buffer, room);
                for (at, count) in out.iter().enumerate() {
                    let expected = if at < items {
                        (at as u32 & 7) * 3 + 1
                    } else {
                        0
                    };
                    assert_eq!(*count, expected, "{options} {global:?} {offset:?} {at}");
                }
            }
        }
    }
}

#[test]
fn group_sizes_where_the_grouping_does_not_show() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(COUNT, "count");
    kernel.set(1, 3u32);
    let global = [24, 12, 10];
    let items: usize = global.iter().product();
    let sizes = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
    // More sizes than a kernel is compiled for.
    for x in sizes(global[0]) {
        for (y, z) in [(1, 1), (3, 1), (12, 1), (1, 10), (2, 5), (6, 1)] {
            let buffer = setup.buffer_of(&vec![0u32; items + 300]);
            kernel.set_buffer(0, &buffer);
            setup.enqueue(&kernel, &global, Some(&[x, y, z]));
            let out = setup.read::<u32>(&buffer, items + 300);
            for (at, count) in out.iter().enumerate() {
                let expected = (at as u32 & 7) * 3 + 1;
                let expected = if at < items { expected } else { 0 };
                assert_eq!(*count, expected, "{x} {y} {z}: {at}");
            }
        }
    }
    // What is wrong stays wrong.
    let buffer = setup.buffer(4);
    kernel.set_buffer(0, &buffer);
    let wrong = |global: [usize; 3], local: [usize; 3]| {
        call!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            3,
            null(),
            global.as_ptr(),
            local.as_ptr(),
            0,
            null(),
            null_mut()
        ))
    };
    assert_eq!(wrong(global, [0, 1, 1]), CL_INVALID_WORK_GROUP_SIZE);
    assert_eq!(
        wrong([1 << 20, 1, 1], [1 << 20, 1, 1]),
        CL_INVALID_WORK_GROUP_SIZE
    );
}

#[test]
fn work_item_functions() {
    let setup = Setup::new();
    let program = setup
        .try_build(IDS, "-cl-std=CL3.0")
        .unwrap_or_else(|log| panic!("{log}"));
    let kernel = setup.kernel(&program, "ids");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    /// Dimensions, global size, local size, offset.
    type Case = (usize, [usize; 3], Option<[usize; 3]>, [usize; 3]);
    let mut cases: Vec<Case> = vec![
        (1, [37, 1, 1], None, [0, 0, 0]),
        (1, [37, 1, 1], Some([8, 1, 1]), [5, 0, 0]),
        (2, [16, 8, 1], Some([4, 4, 1]), [0, 0, 0]),
        (3, [8, 6, 4], Some([4, 3, 2]), [1, 2, 3]),
        (3, [7, 5, 3], Some([4, 4, 2]), [10, 20, 30]),
        (1, [1, 1, 1], Some([1, 1, 1]), [0, 0, 0]),
        (3, [9, 9, 9], None, [0, 0, 0]),
    ];
    for _ in 0..25 {
        let dims = 1 + random.next(3);
        let mut global = [1; 3];
        let mut local = [1; 3];
        let mut offset = [0; 3];
        for d in 0..dims {
            global[d] = 1 + random.next(20);
            local[d] = 1 + random.next(global[d].min(6));
            offset[d] = random.next(100);
        }
        cases.push((dims, global, Some(local), offset));
    }
    for (dims, global, local, offset) in cases {
        let items: usize = global.iter().product();
        let buffer = setup.buffer_of(&vec![0xffff_ffffu32; items * 24]);
        kernel.set_buffer(0, &buffer);
        let local_ptr = local.as_ref().map_or(null(), |l| l.as_ptr());
        ok!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            dims as u32,
            offset.as_ptr(),
            global.as_ptr(),
            local_ptr,
            0,
            null(),
            null_mut()
        ));
        let out = setup.read::<u32>(&buffer, items * 24);
        for z in 0..global[2] {
            for y in 0..global[1] {
                for x in 0..global[0] {
                    let id = [x, y, z];
                    let at = (z * global[1] + y) * global[0] + x;
                    for d in 0..3 {
                        let o: Vec<usize> = out[at * 24 + d * 8..at * 24 + d * 8 + 8]
                            .iter()
                            .map(|v| *v as usize)
                            .collect();
                        let l = local.map_or(o[7], |l| l[d]);
                        let group = id[d] / l;
                        let size = l.min(global[d] - group * l);
                        let expected = [
                            id[d] + offset[d],
                            id[d] % l,
                            group,
                            global[d],
                            size,
                            global[d].div_ceil(l),
                            offset[d],
                            l,
                        ];
                        assert_eq!(
                            o, expected,
                            "global {global:?} local {local:?} offset {offset:?} at {id:?} dim {d}"
                        );
                    }
                }
            }
        }
    }
}

/// Runs `kernel` over `n` work-items with one output and the given inputs.
fn map_kernel<A: Plain, R: Plain>(
    setup: &Setup,
    source: &str,
    input: &[A],
    out_each: usize,
) -> Vec<R> {
    let kernel = setup.kernel_of(source, "f");
    let a = setup.buffer_of(input);
    let count = input.len();
    let out = setup.buffer(count * out_each * size_of::<R>());
    kernel.set_buffer(0, &a).set_buffer(1, &out);
    setup.run(&kernel, &[count], None);
    setup.read(&out, count * out_each)
}

#[test]
fn integer_arithmetic() {
    let setup = Setup::new();
    let mut random = Random(77);
    let input: Vec<[u64; 2]> = (0..256)
        .map(|i| {
            let bits = |r: &mut Random| {
                let wide = (r.next(1 << 30) as u64) << 34
                    ^ (r.next(1 << 30) as u64) << 15
                    ^ r.next(1 << 30) as u64;
                wide >> (i % 64)
            };
            [bits(&mut random), bits(&mut random) | 1]
        })
        .collect();
    let out: Vec<u64> = map_kernel(
        &setup,
        "kernel void f(global ulong2 *in, global ulong *out) {
             size_t i = get_global_id(0);
             ulong a = in[i].x, b = in[i].y;
             long sa = (long)a, sb = (long)b;
             global ulong *o = out + i * 16;
             o[0] = a + b; o[1] = a - b; o[2] = a * b; o[3] = a / b; o[4] = a % b;
             o[5] = sa / sb; o[6] = sa % sb; o[7] = mul_hi(a, b);
             o[8] = a << (b & 63); o[9] = a >> (b & 63); o[10] = sa >> (b & 63);
             o[11] = popcount(a) * 100 + clz(a);
             o[12] = rotate(a, b); o[13] = sa < sb; o[14] = a < b;
             o[15] = (ulong)(uchar)a + (ulong)(long)(char)b + (ushort)a * (short)b;
         }",
        &input,
        16,
    );
    for (index, [a, b]) in input.iter().copied().enumerate() {
        let (sa, sb) = (a as i64, b as i64);
        let small = i64::from(a as u8)
            + i64::from(b as i8)
            + i64::from(i32::from(a as u16) * i32::from(b as i16));
        let expected = [
            a.wrapping_add(b),
            a.wrapping_sub(b),
            a.wrapping_mul(b),
            a / b,
            a % b,
            sa.wrapping_div(sb) as u64,
            sa.wrapping_rem(sb) as u64,
            ((u128::from(a) * u128::from(b)) >> 64) as u64,
            a << (b & 63),
            a >> (b & 63),
            (sa >> (b & 63)) as u64,
            u64::from(a.count_ones() * 100 + a.leading_zeros()),
            a.rotate_left((b & 63) as u32),
            u64::from(sa < sb),
            u64::from(a < b),
            small as u64,
        ];
        assert_eq!(
            out[index * 16..index * 16 + 16],
            expected,
            "a {a:#x} b {b:#x}"
        );
    }
}

#[test]
fn float_arithmetic() {
    let setup = Setup::new();
    let mut random = Random(5);
    let input: Vec<[f32; 2]> = (0..512)
        .map(|_| {
            let value = |r: &mut Random| (r.next(2_000_001) as f32 - 1e6) / 1000.0;
            [value(&mut random), value(&mut random)]
        })
        .collect();
    let out: Vec<f32> = map_kernel(
        &setup,
        "kernel void f(global float2 *in, global float *out) {
             size_t i = get_global_id(0);
             float a = in[i].x, b = in[i].y;
             global float *o = out + i * 8;
             o[0] = a + b; o[1] = a * b; o[2] = fmin(a, b); o[3] = floor(a); o[4] = fabs(b); o[5] = (float)(int)a;
             o[6] = a / b; o[7] = sqrt(fabs(a));
         }",
        &input,
        8,
    );
    for (index, [a, b]) in input.iter().copied().enumerate() {
        let o = &out[index * 8..index * 8 + 8];
        assert_eq!(
            o[..6],
            [a + b, a * b, a.min(b), a.floor(), b.abs(), a.trunc()],
            "a {a} b {b}"
        );
        let close = |x: f32, y: f32, ulps: f32| (x - y).abs() <= ulps * f32::EPSILON * y.abs();
        assert!(b == 0.0 || close(o[6], a / b, 2.5), "{a} / {b}: {}", o[6]);
        assert!(close(o[7], a.abs().sqrt(), 3.0), "sqrt {a}: {}", o[7]);
    }
}

#[test]
fn double_arithmetic() {
    let setup = Setup::new();
    if info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_DOUBLE_FP_CONFIG
    ) == 0
    {
        return;
    }
    let input: Vec<[f64; 2]> = (0..256)
        .map(|i| [f64::from(i) * 1.1 - 100.0, 3.7 / f64::from(i + 1)])
        .collect();
    let out: Vec<f64> = map_kernel(
        &setup,
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
         kernel void f(global double2 *in, global double *out) {
             size_t i = get_global_id(0);
             double a = in[i].x, b = in[i].y;
             global double *o = out + i * 6;
             o[0] = a + b; o[1] = a * b; o[2] = a / b; o[3] = sqrt(fabs(a)); o[4] = fma(a, b, 1.0); o[5] = (double)(long)a;
         }",
        &input,
        6,
    );
    for (index, [a, b]) in input.iter().copied().enumerate() {
        let expected = [
            a + b,
            a * b,
            a / b,
            a.abs().sqrt(),
            a.mul_add(b, 1.0),
            a.trunc(),
        ];
        assert_eq!(out[index * 6..index * 6 + 6], expected, "a {a} b {b}");
    }
}

#[test]
fn vectors_and_structures() {
    let setup = Setup::new();
    let source = "
        typedef struct { char c; short s; int3 v; long l; float f[3]; } Inner;
        typedef struct { Inner in[2]; uchar16 bytes; double d; } Outer;
        kernel void f(global int *out, int4 a, Outer s, char3 c, float2 g, ushort8 w) {
            out[0] = a.x + a.y * 10 + a.z * 100 + a.w * 1000;
            out[1] = s.in[0].c; out[2] = s.in[0].s; out[3] = s.in[0].v.y; out[4] = (int)s.in[1].l;
            out[5] = (int)s.in[1].f[2]; out[6] = s.bytes.sf; out[7] = (int)s.d;
            out[8] = c.x * c.y * c.z; out[9] = (int)(g.x * g.y);
            out[10] = w.s0 + w.s7;
            out[11] = sizeof(Outer);
            out[12] = dot(convert_float4(a), (float4)(1, 1, 1, 1));
            int8 wide = (int8)(a, a.wzyx);
            out[13] = wide.s4; out[14] = wide.even.y; out[15] = any(a > 3) * 2 + all(a > 0);
        }";
    let kernel = setup.kernel_of(source, "f");
    let out = setup.buffer_of(&[0i32; 16]);
    // Inner: c 0, s 2, v 16..32, l 32, f 40..52, size 64. Outer: in 0..128, bytes 128..144, d 144, size 160.
    let mut outer = [0u8; 160];
    outer[0] = -5i8 as u8;
    outer[2..4].copy_from_slice(&(-300i16).to_ne_bytes());
    outer[20..24].copy_from_slice(&77i32.to_ne_bytes());
    outer[64 + 32..64 + 40].copy_from_slice(&123_456i64.to_ne_bytes());
    outer[64 + 48..64 + 52].copy_from_slice(&9.5f32.to_ne_bytes());
    outer[143] = 200;
    outer[144..152].copy_from_slice(&4321.75f64.to_ne_bytes());
    kernel
        .set_buffer(0, &out)
        .set(1, [1i32, 2, 3, 4])
        .set(2, outer)
        .set(3, [2u8, 3, 7, 0])
        .set(4, [2.5f32, 4.0])
        .set(5, [1u16, 0, 0, 0, 0, 0, 0, 1000]);
    setup.run(&kernel, &[1], None);
    let expected = [
        4321, -5, -300, 77, 123_456, 9, 200, 4321, 42, 10, 1001, 160, 10, 4, 3, 3,
    ];
    assert_eq!(setup.read::<i32>(&out, 16), expected);
}

#[test]
fn half_floats_in_memory() {
    let setup = Setup::new();
    let input: Vec<f32> = (0..64).map(|i| i as f32 * 0.5 - 7.0).collect();
    let out: Vec<f32> = map_kernel(
        &setup,
        "kernel void f(global float *in, global float *out) {
             size_t i = get_global_id(0);
             local ushort bits[64];
             local half *h = (local half *)bits;
             vstore_half(in[i], 0, h);
             out[i] = vload_half(0, h) * 2;
         }",
        &input[..1],
        1,
    );
    assert_eq!(out, [input[0] * 2.0]);
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

#[test]
fn atomics() {
    let setup = Setup::new();
    let source = "
        kernel void f(global int *p, global uint *u) {
            int i = get_global_id(0);
            local int shared;
            if (get_local_id(0) == 0) shared = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            atomic_add(p + 0, i);
            atomic_sub(p + 1, i);
            atomic_inc(p + 2);
            atomic_dec(p + 3);
            atomic_min(p + 4, -i);
            atomic_max(p + 5, i);
            atomic_or(u + 0, 1u << (i & 31));
            atomic_and(u + 1, ~(1u << (i & 15)));
            atomic_xor(u + 2, (uint)i);
            atomic_inc(&shared);
            int old;
            do { old = p[6]; } while (atomic_cmpxchg(p + 6, old, old + 2) != old);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (get_local_id(0) == 0) atomic_add(p + 7, shared);
            atomic_xchg(p + 8, 55);
        }";
    let kernel = setup.kernel_of(source, "f");
    let p = setup.buffer_of(&[0i32, 0, 0, 0, 1000, -1000, 0, 0, 0]);
    let u = setup.buffer_of(&[0u32, u32::MAX, 0]);
    kernel.set_buffer(0, &p).set_buffer(1, &u);
    let n = 1024;
    setup.run(&kernel, &[n as usize], Some(&[64]));
    let sum = n * (n - 1) / 2;
    assert_eq!(
        setup.read::<i32>(&p, 9),
        [sum, -sum, n, -n, -(n - 1), n - 1, 2 * n, n, 55]
    );
    let xor = (0..n as u32).fold(0, |all, i| all ^ i);
    assert_eq!(setup.read::<u32>(&u, 3), [u32::MAX, 0xffff_0000, xor]);
}

#[test]
fn atomics_of_64_bits() {
    let setup = Setup::new();
    let extensions = info_text!(clGetDeviceInfo(setup.device), CL_DEVICE_EXTENSIONS);
    if !extensions.contains("cl_khr_int64_base_atomics") {
        return;
    }
    let source = "
        #pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
        #pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
        kernel void f(global ulong *p) {
            ulong i = get_global_id(0);
            atom_add(p, i << 30);
            atom_max(p + 1, i << 33);
        }";
    let kernel = setup.kernel_of(source, "f");
    let p = setup.buffer_of(&[0u64; 2]);
    kernel.set_buffer(0, &p);
    setup.run(&kernel, &[512], None);
    assert_eq!(setup.read::<u64>(&p, 2), [(511 * 256) << 30, 511 << 33]);
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
        return;
    }
    let buffer = setup.buffer(4);
    kernel.set_local(0, 0).set_buffer(1, &buffer).set(2, 0i32);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [5]);
}

/// OpenCL C 3.0 atomics with orders and scopes.
#[test]
fn generic_atomics() {
    let setup = Setup::new();
    let source = "
        kernel void f(global atomic_int *p, global int *data) {
            int i = get_global_id(0);
            atomic_fetch_add_explicit(p, 1, memory_order_relaxed, memory_scope_device);
            atomic_fetch_add_explicit(p + 1, i, memory_order_acq_rel, memory_scope_device);
            int expected = 0;
            if (atomic_compare_exchange_strong_explicit(p + 2, &expected, i + 1, memory_order_acq_rel,
                                                        memory_order_acquire, memory_scope_device))
                data[0] = i + 1;
            atomic_store_explicit(p + 3, 9, memory_order_release, memory_scope_device);
        }";
    let program = setup
        .try_build(source, "-cl-std=CL3.0")
        .unwrap_or_else(|log| panic!("{log}"));
    let kernel = setup.kernel(&program, "f");
    let (p, data) = (setup.buffer_of(&[0i32; 4]), setup.buffer_of(&[0i32; 1]));
    kernel.set_buffer(0, &p).set_buffer(1, &data);
    setup.run(&kernel, &[256], None);
    let out = setup.read::<i32>(&p, 4);
    assert_eq!((out[0], out[1], out[3]), (256, 256 * 255 / 2, 9));
    assert_eq!(setup.read::<i32>(&data, 1), [out[2]]);
    assert!((1..=256).contains(&out[2]));
}

#[test]
fn control_flow() {
    let setup = Setup::new();
    let input: Vec<u32> = (1..=512).collect();
    let out: Vec<u32> = map_kernel(
        &setup,
        "uint collatz(ulong n) {
             uint steps = 0;
             while (n != 1) {
                 if (steps > 1000) return 0;
                 n = (n & 1) ? 3 * n + 1 : n / 2;
                 ++steps;
             }
             return steps;
         }
         kernel void f(global uint *in, global uint *out) {
             size_t i = get_global_id(0);
             uint n = in[i], r = 0;
             switch (n % 5) {
                 case 0: r = collatz(n); break;
                 case 1: for (uint k = 0; k < n; ++k) { if (k % 3 == 0) continue; if (k > 100) break; r += k; } break;
                 case 2: r = n * 2; // falls through
                 case 3: r += 7; break;
                 default: { uint a = 0, b = 1; do { uint t = a + b; a = b; b = t; } while (b < n); r = b; }
             }
             out[i] = r;
         }",
        &input,
        1,
    );
    let model = |n: u32| match n % 5 {
        0 => {
            let (mut v, mut steps) = (u64::from(n), 0);
            while v != 1 {
                v = if v & 1 == 1 { 3 * v + 1 } else { v / 2 };
                steps += 1;
            }
            steps
        }
        1 => (0..n)
            .filter(|k| k % 3 != 0)
            .take_while(|k| *k <= 100)
            .sum(),
        2 => n * 2 + 7,
        3 => 7,
        _ => {
            let (mut a, mut b) = (0, 1);
            loop {
                (a, b) = (b, a + b);
                if b >= n {
                    break b;
                }
            }
        }
    };
    let expected: Vec<u32> = input.iter().map(|n| model(*n)).collect();
    assert_eq!(out, expected);
}

#[test]
fn private_arrays_and_constant_tables() {
    let setup = Setup::new();
    let input: Vec<u32> = (0..256).map(|i| i * 7919).collect();
    let out: Vec<u32> = map_kernel(
        &setup,
        "constant uint table[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
         kernel void f(global uint *in, global uint *out) {
             size_t i = get_global_id(0);
             uint digits[10];
             for (int d = 0; d < 10; ++d) digits[d] = 0;
             uint n = in[i];
             do { digits[n % 10] += table[n & 7]; n /= 10; } while (n);
             uint r = 0;
             for (int d = 0; d < 10; ++d) r = r * 7 + digits[d];
             out[i] = r;
         }",
        &input,
        1,
    );
    let table = [3u32, 1, 4, 1, 5, 9, 2, 6];
    for (n, got) in input.iter().zip(out) {
        let (mut rest, mut digits) = (*n, [0u32; 10]);
        loop {
            digits[(rest % 10) as usize] += table[(rest & 7) as usize];
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let expected = digits
            .iter()
            .fold(0u32, |r, d| r.wrapping_mul(7).wrapping_add(*d));
        assert_eq!(got, expected, "{n}");
    }
}

#[test]
fn suggested_local_size() {
    let setup = Setup::new();
    let name = c"clGetKernelSuggestedLocalWorkSizeKHR";
    let address = pumice_tests::call!(clGetExtensionFunctionAddressForPlatform(
        setup.platform,
        name.as_ptr()
    ));
    assert!(!address.is_null());
    type Suggest = unsafe extern "C" fn(
        cl_command_queue,
        cl_kernel,
        cl_uint,
        *const usize,
        *const usize,
        *mut usize,
    ) -> cl_int;
    // SAFETY: the extension declares the function so.
    let suggest: Suggest = unsafe { std::mem::transmute(address) };
    let kernel = setup.kernel_of(
        "kernel void f(global int *p) { p[get_global_id(0)] = get_local_size(0); }",
        "f",
    );
    let buffer = setup.buffer(4096);
    kernel.set_buffer(0, &buffer);
    let mut local = [0usize; 3];
    let global = [1000usize];
    // SAFETY: all pointers live.
    let code = unsafe {
        suggest(
            setup.queue.0,
            kernel.0,
            1,
            null(),
            global.as_ptr(),
            local.as_mut_ptr(),
        )
    };
    assert_eq!(code, CL_SUCCESS);
    assert!(local[0] > 0 && local[1..] == [0, 0]);
    setup.run(&kernel, &global, None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [local[0] as i32]);
    // SAFETY: all pointers live or null.
    let code = unsafe {
        suggest(
            setup.queue.0,
            kernel.0,
            1,
            null(),
            global.as_ptr(),
            null_mut(),
        )
    };
    assert_eq!(code, CL_INVALID_VALUE);
}

#[test]
fn tasks() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void f(global int *p) { p[0] += get_global_size(0) * 3; }",
        "f",
    );
    let buffer = setup.buffer_of(&[1i32]);
    kernel.set_buffer(0, &buffer);
    ok!(clEnqueueTask(
        setup.queue.0,
        kernel.0,
        0,
        null(),
        null_mut()
    ));
    assert_eq!(setup.read::<i32>(&buffer, 1), [4]);
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

/// Vectors of narrow elements, which are loaded and stored by words where they are aligned: every element arrives.
#[test]
fn narrow_vectors() {
    let setup = Setup::new();
    let mut random = Random(77);
    let bytes = random.bytes(4096);
    for (element, size) in [("char", 1), ("short", 2)] {
        for lanes in [2usize, 3, 4, 8, 16] {
            // Backwards, so that lanes which change places show; `shift` elements off the alignment of the vector.
            let reverse: Vec<String> = (0..lanes).rev().map(|i| format!("v.s{i:x}")).collect();
            let reverse = reverse.join(", ");
            let program = setup.build(&format!(
                "kernel void aligned({element}{lanes} global *in, {element}{lanes} global *out) {{
                     size_t i = get_global_id(0);
                     {element}{lanes} v = in[i];
                     out[i] = ({element}{lanes})({reverse}); }}
                 kernel void packed({element} global *in, {element} global *out, int shift) {{
                     size_t i = get_global_id(0);
                     {element}{lanes} v = vload{lanes}(i, in + shift);
                     vstore{lanes}(({element}{lanes})({reverse}), i, out + shift); }}"
            ));
            let (count, vector) = (16, lanes.next_power_of_two() * size);
            let source = setup.buffer_of(&bytes);
            let target = setup.buffer(4096);
            let kernel = setup.kernel(&program, "aligned");
            kernel.set_buffer(0, &source).set_buffer(1, &target);
            setup.run(&kernel, &[count], None);
            let got: Vec<u8> = setup.read(&target, count * vector);
            for i in 0..count {
                for lane in 0..lanes {
                    let (to, from) = (
                        i * vector + lane * size,
                        i * vector + (lanes - 1 - lane) * size,
                    );
                    assert_eq!(
                        got[to..to + size],
                        bytes[from..from + size],
                        "{element}{lanes}, vector {i}, lane {lane}"
                    );
                }
            }
            for shift in 0..4 {
                let kernel = setup.kernel(&program, "packed");
                kernel.set_buffer(0, &source).set_buffer(1, &target);
                kernel.set(2, shift as i32);
                setup.run(&kernel, &[count], None);
                let got: Vec<u8> = setup.read(&target, (count * lanes + shift) * size);
                for i in 0..count {
                    for lane in 0..lanes {
                        let to = (shift + i * lanes + lane) * size;
                        let from = (shift + i * lanes + lanes - 1 - lane) * size;
                        assert_eq!(
                            got[to..to + size],
                            bytes[from..from + size],
                            "{element}{lanes} at {shift}, vector {i}, lane {lane}"
                        );
                    }
                }
            }
        }
    }
}

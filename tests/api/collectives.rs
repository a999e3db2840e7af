//! Sub-groups and the collective functions of work-groups and sub-groups; atomic functions on floats (on `half`: `halves`),
//! clocks, copies by work-groups.

use super::buffers::Random;
use super::sub_group_sizes;
use pumice_tests::sys::*;
use pumice_tests::{fails, info_value, ok, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

pub fn has_subgroups(setup: &Setup) -> bool {
    let device = setup.device;
    info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_MAX_NUM_SUB_GROUPS) > 0
}

/// Local sizes: rows, planes, boxes, and sizes that leave the last sub-group short.
const SHAPES: [[usize; 3]; 7] = [
    [1, 1, 1],
    [7, 1, 1],
    [64, 1, 1],
    [100, 1, 1],
    [3, 5, 1],
    [4, 4, 4],
    [5, 3, 7],
];

pub fn build(setup: &Setup, source: &str) -> pumice_tests::Program {
    setup
        .try_build(source, "-cl-std=CL3.0")
        .unwrap_or_else(|log| panic!("{log}"))
}

#[test]
fn work_group_functions() {
    let setup = Setup::new();
    if !has_subgroups(&setup) {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    let program = build(
        &setup,
        "size_t lid() { return get_local_linear_id(); }
         kernel void ints(global const int *in, global int *out) {
             size_t at = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
             int x = in[lid()];
             global int *o = out + at * 16;
             o[0] = work_group_reduce_add(x); o[1] = work_group_reduce_min(x); o[2] = work_group_reduce_max(x);
             o[3] = work_group_scan_inclusive_add(x); o[4] = work_group_scan_exclusive_add(x);
             o[5] = work_group_scan_exclusive_min(x); o[6] = work_group_scan_inclusive_max(x);
             o[7] = work_group_all(x > 0); o[8] = work_group_any(x > 990);
             o[9] = work_group_broadcast(x, get_local_size(0) - 1, get_local_size(1) - 1, get_local_size(2) / 2);
             o[10] = work_group_reduce_mul(x | 1); o[11] = work_group_scan_exclusive_xor(x);
             o[12] = work_group_reduce_and(x | 3); o[13] = work_group_scan_inclusive_logical_xor(x);
             o[14] = work_group_scan_exclusive_mul(x | 1); o[15] = work_group_reduce_logical_or(x < -2000);
         }
         kernel void others(global const int *in, global long *out) {
             size_t at = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
             int x = in[lid()];
             global long *o = out + at * 4;
             o[0] = work_group_scan_inclusive_add((float)x);
             o[1] = work_group_reduce_min((uint)x);
             o[2] = work_group_scan_exclusive_max((long)x << 20);
             o[3] = work_group_reduce_add((ulong)x);
         }",
    );
    let mut random = Random(5);
    let input: Vec<i32> = (0..256).map(|_| random.next(2000) as i32 - 1000).collect();
    let a = setup.buffer_of(&input);
    for shape in SHAPES {
        let items: usize = shape.iter().product();
        let global = [shape[0] * 2, shape[1], shape[2]];
        let (ints, others) = (
            setup.kernel(&program, "ints"),
            setup.kernel(&program, "others"),
        );
        let out = setup.buffer(items * 2 * 16 * 4);
        ints.set_buffer(0, &a).set_buffer(1, &out);
        setup.run(&ints, &global, Some(&shape));
        let got = setup.read::<i32>(&out, items * 2 * 16);
        let wide = setup.buffer(items * 2 * 4 * 8);
        others.set_buffer(0, &a).set_buffer(1, &wide);
        setup.run(&others, &global, Some(&shape));
        let got_wide = setup.read::<i64>(&wide, items * 2 * 4);
        let all = &input[..items];
        let sum = |v: &[i32]| v.iter().sum::<i32>();
        let product = |v: &[i32]| v.iter().fold(1i32, |p, x| p.wrapping_mul(x | 1));
        for z in 0..global[2] {
            for y in 0..global[1] {
                for x in 0..global[0] {
                    let at = x + global[0] * (y + global[1] * z);
                    let lx = x % shape[0];
                    let lid = lx + shape[0] * (y + shape[1] * z);
                    let (upto, before) = (&all[..=lid], &all[..lid]);
                    let from = shape[0] - 1 + shape[0] * (shape[1] - 1 + shape[1] * (shape[2] / 2));
                    let expected = [
                        sum(all),
                        *all.iter().min().unwrap(),
                        *all.iter().max().unwrap(),
                        sum(upto),
                        sum(before),
                        before.iter().copied().min().unwrap_or(i32::MAX),
                        *upto.iter().max().unwrap(),
                        all.iter().all(|x| *x > 0).into(),
                        all.iter().any(|x| *x > 990).into(),
                        all[from],
                        product(all),
                        before.iter().fold(0, |a, b| a ^ b),
                        all.iter().fold(-1, |a, b| a & (b | 3)),
                        (upto.iter().filter(|x| **x != 0).count() % 2) as i32,
                        product(before),
                        0,
                    ];
                    let flags = |mut v: [i32; 16]| {
                        // Any value but zero is true.
                        for i in [7, 8, 13, 15] {
                            v[i] = i32::from(v[i] != 0);
                        }
                        v
                    };
                    let mut mine = [0; 16];
                    mine.copy_from_slice(&got[at * 16..at * 16 + 16]);
                    assert_eq!(flags(mine), flags(expected), "{shape:?} {lid}");
                    let wide = |x: &i32| i64::from(*x);
                    let expected = [
                        wide(&sum(upto)),
                        all.iter().map(|x| i64::from(*x as u32)).min().unwrap(),
                        before
                            .iter()
                            .map(|x| wide(x) << 20)
                            .max()
                            .unwrap_or(i64::MIN),
                        all.iter().map(wide).sum(),
                    ];
                    assert_eq!(got_wide[at * 4..at * 4 + 4], expected, "{shape:?} {lid}");
                }
            }
        }
    }
}

#[test]
fn sub_groups_partition_the_work_group() {
    let setup = Setup::new();
    if !has_subgroups(&setup) {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    let program = build(
        &setup,
        "kernel void f(global uint *out) {
             size_t at = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
             global uint *o = out + at * 16;
             uint lid = get_local_linear_id();
             o[0] = get_sub_group_id(); o[1] = get_sub_group_local_id(); o[2] = get_sub_group_size();
             o[3] = get_max_sub_group_size(); o[4] = get_num_sub_groups(); o[5] = get_enqueued_num_sub_groups();
             o[6] = sub_group_reduce_add(lid); o[7] = sub_group_scan_exclusive_add(lid);
             o[8] = sub_group_broadcast(lid, 0); o[9] = sub_group_shuffle_xor(lid, 1);
             o[10] = sub_group_rotate(lid, 1); o[11] = sub_group_ballot_bit_count(sub_group_ballot(1));
             o[12] = sub_group_clustered_reduce_max(lid, 4);
             o[13] = sub_group_any(lid == 2);
             uint odd = 0;
             if (get_sub_group_local_id() & 1) odd = sub_group_non_uniform_scan_inclusive_add(1u);
             else odd = sub_group_non_uniform_reduce_max(lid);
             o[14] = odd;
             o[15] = sub_group_shuffle((uchar)lid, 0) + (sub_group_elect() ? 1000 : 0);
         }",
    );
    let kernel = setup.kernel(&program, "f");
    for shape in SHAPES {
        let items: usize = shape.iter().product();
        let out = setup.buffer(items * 16 * 4);
        kernel.set_buffer(0, &out);
        setup.run(&kernel, &shape, Some(&shape));
        let got = setup.read::<u32>(&out, items * 16);
        let size = got[3];
        let all = items as u32;
        for lid in 0..all {
            let o = &got[lid as usize * 16..][..16];
            let first = lid / size * size;
            let end = (first + size).min(all);
            let lane = lid - first;
            let sum = |from: u32, to: u32| (from..to).sum::<u32>();
            assert_eq!(o[..3], [lid / size, lane, end - first], "{shape:?} {lid}");
            assert_eq!(o[4..6], [all.div_ceil(size); 2], "{shape:?} {lid}");
            assert_eq!(o[6..9], [sum(first, end), sum(first, lid), first]);
            if lid ^ 1 < end {
                assert_eq!(o[9], lid ^ 1, "{shape:?} {lid}");
            }
            let next = first + (lane + 1) % size;
            if next < end {
                assert_eq!(o[10], next, "{shape:?} {lid}");
            }
            assert_eq!(o[11], end - first);
            assert_eq!(o[12], (first + lane / 4 * 4 + 3).min(end - 1));
            assert_eq!(o[13] != 0, (first..end).contains(&2));
            let expected = if lane % 2 == 1 {
                lane.div_ceil(2)
            } else {
                end - 1 - (end - 1 - first) % 2
            };
            assert_eq!(o[14], expected, "{shape:?} {lid}");
            assert_eq!(o[15] % 1000, first & 0xff);
            assert_eq!(o[15] >= 1000, lane == 0);
        }
    }
}

#[test]
fn sub_group_barriers_and_local_memory() {
    let setup = Setup::new();
    if !has_subgroups(&setup) {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    let program = build(
        &setup,
        "kernel void f(global int *out) {
             local int data[64];
             int lid = get_local_id(0);
             int sum = 0;
             // Each sub-group goes round as often as its number says.
             for (uint i = 0; i <= get_sub_group_id(); i++) {
                 data[lid] = lid + (int)i;
                 sub_group_barrier(CLK_LOCAL_MEM_FENCE);
                 int other = get_sub_group_id() * get_max_sub_group_size() + get_sub_group_size() - 1 - get_sub_group_local_id();
                 sum += data[other];
                 sub_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_sub_group);
             }
             out[lid] = sum;
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let out = setup.buffer(64 * 4);
    kernel.set_buffer(0, &out);
    setup.run(&kernel, &[64], Some(&[64]));
    let device = setup.device;
    let size = sub_group_query(
        kernel.0,
        device,
        CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
        &[64],
    ) as i32;
    for (lid, got) in (0..64).zip(setup.read::<i32>(&out, 64)) {
        let (group, lane) = (lid / size, lid % size);
        let last = (group * size + size).min(64) - 1;
        let other = last - lane;
        assert_eq!(got, (0..=group).map(|i| other + i).sum::<i32>(), "{lid}");
    }
}

pub fn sub_group_query(
    kernel: cl_kernel,
    device: cl_device_id,
    param: cl_uint,
    sizes: &[usize],
) -> usize {
    let mut value = 0usize;
    ok!(clGetKernelSubGroupInfo(
        kernel,
        device,
        param,
        size_of_val(sizes),
        sizes.as_ptr().cast::<c_void>(),
        size_of::<usize>(),
        (&raw mut value).cast::<c_void>(),
        null_mut()
    ));
    value
}

#[test]
fn sub_group_queries() {
    let setup = Setup::new();
    if !has_subgroups(&setup) {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    let kernel = setup.kernel_of("kernel void f(global int *p) { p[0] = 1; }", "f");
    let (k, d) = (kernel.0, setup.device);
    let size = sub_group_query(k, d, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, &[64, 2]);
    assert!(size.is_power_of_two());
    let count =
        |sizes: &[usize]| sub_group_query(k, d, CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, sizes);
    assert_eq!(count(&[64]), 64usize.div_ceil(size));
    assert_eq!(count(&[3, 5, 7]), 105usize.div_ceil(size));
    let most = sub_group_query(k, d, CL_KERNEL_MAX_NUM_SUB_GROUPS, &[]);
    assert!(most >= 1);
    assert_eq!(
        sub_group_query(k, d, CL_KERNEL_COMPILE_NUM_SUB_GROUPS, &[]),
        0
    );
    for (wanted, expected) in [(2usize, [size * 2, 1, 1]), (1 << 40, [0; 3])] {
        let mut sizes = [7usize; 3];
        let mut length = 0;
        ok!(clGetKernelSubGroupInfo(
            k,
            d,
            CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT,
            8,
            (&raw const wanted).cast::<c_void>(),
            24,
            sizes.as_mut_ptr().cast::<c_void>(),
            &mut length
        ));
        assert_eq!((sizes, length), (expected, 24));
    }
    fails!(
        CL_INVALID_VALUE,
        clGetKernelSubGroupInfo(
            k,
            d,
            CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE,
            0,
            null(),
            0,
            null_mut(),
            null_mut()
        )
    );
    fails!(
        CL_INVALID_VALUE,
        clGetKernelSubGroupInfo(k, d, 0x1234, 0, null(), 0, null_mut(), null_mut())
    );
}

/// cl_intel_required_subgroup_size.
#[test]
fn required_sub_group_sizes() {
    const KERNEL_SPILL_MEM_SIZE: cl_uint = 0x4109;
    const KERNEL_COMPILE_SUB_GROUP_SIZE: cl_uint = 0x410a;
    let setup = Setup::new();
    let device = setup.device;
    assert_eq!(
        setup.has_extension("cl_intel_required_subgroup_size"),
        has_subgroups(&setup)
    );
    if !has_subgroups(&setup) {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    let sizes = sub_group_sizes::sizes(&setup);
    let source = |size: usize| {
        format!(
            "#ifndef cl_intel_required_subgroup_size
             #error no macro
             #endif
             __attribute__((intel_reqd_sub_group_size({size})))
             kernel void f(global int *p) {{ p[get_global_id(0)] = get_max_sub_group_size(); }}
             kernel void g(global int *p) {{ p[0] = 1; }}
             __attribute__((intel_reqd_sub_group_size({size})))
             kernel void h(global uint *p) {{
                 p += 3 * get_global_id(0);
                 uint n = get_sub_group_size();
                 p[0] = sub_group_scan_inclusive_add((uint)get_local_id(0));
                 p[1] = sub_group_shuffle((uint)get_local_id(0), n - 1 - get_sub_group_local_id());
                 p[2] = n;
             }}"
        )
    };
    for &size in &sizes {
        let program = setup
            .try_build(&source(size), "-cl-std=CL3.0")
            .unwrap_or_else(|log| panic!("{log}"));
        let kernels = [setup.kernel(&program, "f"), setup.kernel(&program, "g")];
        let out = setup.buffer(4 * 64);
        kernels[0].set_buffer(0, &out);
        setup.run(&kernels[0], &[64], Some(&[64]));
        assert_eq!(setup.read::<i32>(&out, 64), [size as i32; 64]);
        for (kernel, expected) in kernels.iter().zip([size, 0]) {
            assert_eq!(
                sub_group_query(kernel.0, device, KERNEL_COMPILE_SUB_GROUP_SIZE, &[]),
                expected
            );
        }
        let mut spilled = u64::MAX;
        ok!(clGetKernelWorkGroupInfo(
            kernels[1].0,
            device,
            KERNEL_SPILL_MEM_SIZE,
            8,
            (&raw mut spilled).cast::<c_void>(),
            null_mut()
        ));
        assert_eq!(spilled, 0);
        assert_eq!(
            sub_group_query(
                kernels[0].0,
                device,
                CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
                &[64]
            ),
            size
        );
        // Scans and shuffles, in groups that are no multiple of it too.
        let kernel = setup.kernel(&program, "h");
        let out = setup.buffer(4 * 3 * 90);
        kernel.set_buffer(0, &out);
        for local in [90, 30, 18] {
            setup.run(&kernel, &[90], Some(&[local]));
            for (item, found) in setup.read::<u32>(&out, 270).chunks(3).enumerate() {
                let (lane, inside) = (item % local % size, item % local);
                let many = size.min(local - inside / size * size);
                let sum: usize = (inside - lane..=inside).sum();
                let other = inside - lane + (many - 1 - lane);
                let expected = [sum, other, many].map(|value| value as u32);
                assert_eq!(found, expected, "work-item {item} of {local} by {size}");
            }
        }
    }
    let most = sizes.last().expect("a size");
    match setup.try_build(&source(most * 2), "-cl-std=CL3.0") {
        Ok(_) => panic!("sub-groups of {}", most * 2),
        Err(log) => assert!(log.contains("requires sub-groups of"), "{log}"),
    }
}

#[test]
fn float_atomics() {
    let setup = Setup::new();
    if !setup.has_extension("cl_ext_float_atomics") {
        return pumice_tests::left_out("no cl_ext_float_atomics");
    }
    let program = build(
        &setup,
        "#if defined(__opencl_c_ext_fp64_global_atomic_add) && defined(__opencl_c_ext_fp64_local_atomic_min_max)
         #define real double
         #define atomic_real atomic_double
         #else
         #define real float
         #define atomic_real atomic_float
         #endif
         kernel void f(volatile global atomic_float *p, volatile global atomic_real *q) {
             local atomic_float low;
             local atomic_real high;
             if (get_local_id(0) == 0) { atomic_init(&low, 1000.0f); atomic_init(&high, (real)-1000); }
             barrier(CLK_LOCAL_MEM_FENCE);
             float x = get_global_id(0);
             atomic_fetch_add(p, x);
             atomic_fetch_sub_explicit(p + 1, 2.0f, memory_order_relaxed);
             atomic_fetch_max_explicit(p + 2, x, memory_order_relaxed, memory_scope_device);
             atomic_fetch_min(&low, x);
             atomic_fetch_max(&high, (real)x);
             atomic_fetch_add_explicit(q, (real)0.5, memory_order_relaxed);
             barrier(CLK_LOCAL_MEM_FENCE);
             if (get_local_id(0) == 0) {
                 atomic_fetch_add(p + 3, atomic_load(&low));
                 atomic_fetch_add(p + 4, (float)atomic_exchange(&high, (real)0));
                 atomic_fetch_add(p + 5, (float)sizeof(real));
             }
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let (a, b) = (setup.buffer_of(&[0f32; 6]), setup.buffer_of(&[0u64]));
    kernel.set_buffer(0, &a).set_buffer(1, &b);
    setup.run(&kernel, &[256], Some(&[64]));
    let got = setup.read::<f32>(&a, 6);
    let first = [0.0, 64.0, 128.0, 192.0];
    let sum: f32 = first.iter().sum();
    assert_eq!(
        got[..5],
        [255.0 * 128.0, -512.0, 255.0, sum, sum + 4.0 * 63.0]
    );
    let real = setup.read::<u64>(&b, 1)[0];
    let real = if got[5] == 32.0 {
        f64::from_bits(real)
    } else {
        f32::from_bits(real as u32).into()
    };
    assert_eq!(real, 128.0);
}

#[test]
fn atomics_of_computed_floats() {
    let setup = Setup::new();
    let program = build(
        &setup,
        "kernel void k(global atomic_uint *to, float x) {
             local atomic_uint near;
             uint i = get_local_id(0);
             if (i == 0) atomic_store_explicit(&near, 0x80000000, memory_order_relaxed, memory_scope_work_group);
             barrier(CLK_LOCAL_MEM_FENCE);
             atomic_fetch_max_explicit(&near, as_uint(x * i), memory_order_relaxed, memory_scope_work_group);
             barrier(CLK_LOCAL_MEM_FENCE);
             uint expected = as_uint(x * -0.0f), bits = as_uint(x + i);
             atomic_compare_exchange_strong_explicit(to + i * 8, &expected, bits,
                 memory_order_relaxed, memory_order_relaxed, memory_scope_device);
             atomic_fetch_max_explicit(to + i * 8 + 1, bits, memory_order_relaxed, memory_scope_device);
             atomic_fetch_min_explicit(to + i * 8 + 2, bits, memory_order_relaxed, memory_scope_device);
             atomic_fetch_add_explicit(to + i * 8 + 3, bits, memory_order_relaxed, memory_scope_device);
             atomic_fetch_and_explicit(to + i * 8 + 4, bits, memory_order_relaxed, memory_scope_device);
             atomic_fetch_xor_explicit(to + i * 8 + 5, as_uint((float)(int)i), memory_order_relaxed, memory_scope_device);
             expected = atomic_exchange_explicit(to + i * 8 + 6, as_uint(sqrt(x)), memory_order_relaxed, memory_scope_device);
             atomic_fetch_max_explicit(to + i * 8 + 7, i ? expected : atomic_load_explicit(&near, memory_order_relaxed,
                 memory_scope_work_group), memory_order_relaxed, memory_scope_device);
         }",
    );
    let kernel = setup.kernel(&program, "k");
    const ITEMS: u32 = 19;
    let to = setup.buffer_of(&[0x8000_0000u32; 8 * ITEMS as usize]);
    kernel.set_buffer(0, &to).set(1, 2.25f32);
    setup.run(&kernel, &[ITEMS as usize], Some(&[ITEMS as usize]));
    let wanted = (0..ITEMS).flat_map(|i| {
        let (sign, bits) = (0x8000_0000, (2.25 + i as f32).to_bits());
        let xor = sign ^ (i as f32).to_bits();
        [
            bits,
            sign,
            bits,
            sign + bits,
            0,
            xor,
            1.5f32.to_bits(),
            sign,
        ]
    });
    let got = setup.read::<u32>(&to, 8 * ITEMS as usize);
    assert_eq!(got, wanted.collect::<Vec<_>>());
}

#[test]
fn atomics_of_computed_doubles() {
    let setup = Setup::new();
    let has = |name| setup.has_extension(name);
    if !has("cl_khr_fp64") || !has("cl_khr_int64_base_atomics") {
        return pumice_tests::left_out("the device has no atomics of 64 bits");
    }
    let program = build(
        &setup,
        "kernel void k(global atomic_double *to, global atomic_ulong *bits, global double *old) {
             local atomic_double near;
             uint i = get_global_id(0), n = get_global_size(0);
             if (i == 0) atomic_store_explicit(&near, 0, memory_order_relaxed, memory_scope_work_group);
             barrier(CLK_LOCAL_MEM_FENCE);
             atomic_store_explicit(to + i, (double)(int)(i - 5), memory_order_relaxed, memory_scope_device);
             old[i] = atomic_exchange_explicit(to + i, (double)(float)i * 0.5, memory_order_relaxed, memory_scope_device);
             old[n + i] = atomic_exchange_explicit(&near, (double)(i + 1), memory_order_relaxed, memory_scope_work_group);
             ulong was = as_ulong((double)i);
             old[2 * n + i] = atomic_compare_exchange_strong_explicit(bits + i, &was, as_ulong((double)(long)i - 0.25),
                 memory_order_relaxed, memory_order_relaxed, memory_scope_device);
             barrier(CLK_LOCAL_MEM_FENCE);
             if (i == 0) old[3 * n] = atomic_load_explicit(&near, memory_order_relaxed, memory_scope_work_group);
         }",
    );
    let kernel = setup.kernel(&program, "k");
    const ITEMS: usize = 61;
    let (to, old) = (setup.buffer(ITEMS * 8), setup.buffer((3 * ITEMS + 1) * 8));
    let numbers = |f: &dyn Fn(usize) -> f64| (0..ITEMS).map(f).collect::<Vec<_>>();
    let bits = setup.buffer_of(&numbers(&|i| if i % 2 == 0 { i as f64 } else { 0.5 }));
    for (i, buffer) in [&to, &bits, &old].into_iter().enumerate() {
        kernel.set_buffer(i as u32, buffer);
    }
    setup.run(&kernel, &[ITEMS], Some(&[ITEMS]));
    assert_eq!(setup.read::<f64>(&to, ITEMS), numbers(&|i| i as f64 * 0.5));
    let expected = numbers(&|i| if i % 2 == 0 { i as f64 - 0.25 } else { 0.5 });
    assert_eq!(setup.read::<f64>(&bits, ITEMS), expected);
    let old = setup.read::<f64>(&old, 3 * ITEMS + 1);
    assert_eq!(old[..ITEMS], numbers(&|i| i as f64 - 5.0));
    // Each number has been in local memory once, and the last of them is still there.
    let mut passed = [&old[ITEMS..2 * ITEMS], &old[3 * ITEMS..]].concat();
    passed.sort_by(f64::total_cmp);
    assert_eq!(passed, (0..=ITEMS).map(|i| i as f64).collect::<Vec<_>>());
    assert_eq!(old[2 * ITEMS..3 * ITEMS], numbers(&|i| (1 - i % 2) as f64));
}

#[test]
fn clocks() {
    let setup = Setup::new();
    if !setup.has_extension("cl_khr_kernel_clock") {
        return pumice_tests::left_out("no cl_khr_kernel_clock");
    }
    let device = setup.device;
    let scopes = info_value!(
        u64,
        clGetDeviceInfo(device),
        CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR
    );
    assert!(scopes != 0 && scopes & !7 == 0);
    let program = build(
        &setup,
        "kernel void f(global ulong *out, int n) {
         #ifdef __opencl_c_kernel_clock_scope_device
             ulong a = clock_read_device();
             for (int i = 0; i < n; i++) out[8 + i] = i;
             ulong b = clock_read_device();
             uint2 c = clock_read_hilo_device();
             out[0] = a; out[1] = b; out[2] = (ulong)c.y << 32 | c.x;
         #endif
         #ifdef __opencl_c_kernel_clock_scope_sub_group
             out[3] = clock_read_sub_group(); out[4] = clock_read_sub_group();
         #endif
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let out = setup.buffer_of(&[0u64; 72]);
    kernel.set_buffer(0, &out).set(1, 64i32);
    setup.run(&kernel, &[1], None);
    let got = setup.read::<u64>(&out, 5);
    assert!(got[0] <= got[1] && got[1] <= got[2], "{got:?}");
    assert!(got[3] <= got[4], "{got:?}");
    assert!(scopes & 1 == 0 || got[1] > 0, "{got:?}");
}

#[test]
fn copies_of_planes() {
    let setup = Setup::new();
    let program = setup.build(
        "kernel void f(global const char *in, global char *out) {
             local char box[3 * 4 * 5 * 6];
             event_t e = async_work_group_copy_3D3D(box, 1, in, 2, 3, 4, 2, 3, 6, 20, 5, 17, 0);
             wait_group_events(1, &e);
             e = async_work_group_copy_2D2D(out, 3, box, 1, 3, 4, 5, 5, 7, 0);
             wait_group_events(1, &e);
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let input: Vec<u8> = (0..255).collect();
    let a = setup.buffer_of(&input);
    let out = setup.buffer_of(&[255u8; 256]);
    kernel.set_buffer(0, &a).set_buffer(1, &out);
    setup.run(&kernel, &[10], Some(&[10]));
    let got = setup.read::<u8>(&out, 256);
    let mut inner = [0u8; 360];
    let mut written = [false; 360];
    for z in 0..3 {
        for y in 0..2 {
            for b in 0..4 * 3 {
                let to = (1 + y * 5 + z * 17) * 3 + b;
                inner[to] = input[(2 + y * 6 + z * 20) * 3 + b];
                written[to] = true;
            }
        }
    }
    for y in 0..5 {
        for b in 0..4 * 3 {
            let from = (1 + y * 5) * 3 + b;
            if written[from] {
                assert_eq!(got[(3 + y * 7) * 3 + b], inner[from], "{y} {b}");
            }
        }
        let gap = (3 + y * 7 + 4) * 3;
        assert_eq!(got[gap..gap + 9], [255; 9]);
    }
}

/// A copy behind a fence reads what another copy, done by other work-items, wrote before it.
#[test]
fn a_fence_orders_copies() {
    let setup = Setup::new();
    let program = setup.build(
        "#pragma OPENCL EXTENSION cl_khr_async_work_group_copy_fence : enable
         kernel void f(global const int *in, global int *out) {
             local int box[128];
             event_t e = async_work_group_copy(box, in, 128, 0);
             async_work_group_copy_fence(CLK_LOCAL_MEM_FENCE);
             e = async_work_group_copy(out, box + 64, 64, e);
             async_work_group_copy_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
             e = async_work_group_copy(box, out + 1, 63, e);
             wait_group_events(1, &e);
             out[64 + get_local_id(0)] = box[63 - get_local_id(0)];
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let input: Vec<i32> = (0..128).map(|i| i * 3).collect();
    let a = setup.buffer_of(&input);
    let out = setup.buffer_of(&[0i32; 128]);
    kernel.set_buffer(0, &a).set_buffer(1, &out);
    setup.run(&kernel, &[64], Some(&[64]));
    let got = setup.read::<i32>(&out, 128);
    assert_eq!(got[..64], input[64..]);
    let last = (0..64).map(|i| if i == 0 { 63 } else { 128 - i });
    assert_eq!(got[64..], last.map(|i| i * 3).collect::<Vec<_>>());
}

#[test]
fn independent_sub_groups_wait_for_one_another() {
    let setup = Setup::new();
    let independent = info_value!(
        u32,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS
    ) != 0;
    // Khronos' extension demands it.
    assert_eq!(setup.has_extension("cl_khr_subgroups"), independent);
    if !independent {
        return pumice_tests::left_out("sub-groups make no progress on their own");
    }
    // The last sub-group begins; each of the others waits for its successor.
    let program = build(
        &setup,
        "kernel void chain(global uint *out) {
             local atomic_uint turn;
             if (get_local_linear_id() == 0) atomic_init(&turn, get_num_sub_groups());
             work_group_barrier(CLK_LOCAL_MEM_FENCE);
             uint me = get_sub_group_id();
             if (get_sub_group_local_id() == 0) {
                 while (atomic_load_explicit(&turn, memory_order_acquire, memory_scope_work_group) != me + 1) {}
                 out[get_group_id(0) * get_num_sub_groups() + me] = get_num_sub_groups() - me;
                 atomic_store_explicit(&turn, me, memory_order_release, memory_scope_work_group);
             }
         }",
    );
    let kernel = setup.kernel(&program, "chain");
    let size = [256usize, 1, 1];
    let count = sub_group_query(
        kernel.0,
        setup.device,
        CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE,
        &size,
    );
    let groups = 64;
    let out = setup.buffer(groups * count * 4);
    kernel.set_buffer(0, &out);
    setup.run(&kernel, &[groups * 256, 1, 1], Some(&size));
    let expected: Vec<u32> = (0..groups * count)
        .map(|at| (count - at % count) as u32)
        .collect();
    assert_eq!(setup.read::<u32>(&out, groups * count), expected);
}

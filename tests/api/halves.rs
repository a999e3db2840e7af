//! Values of `half`: conversions to it and back, and atomic functions (cl_ext_float_atomics), where two of them share a word.

use super::collectives;
use pumice_tests::{info_value, Setup};

/// A device that has them.
fn with_atomics() -> Option<Setup> {
    let setup = Setup::new();
    let has = |name| setup.has_extension(name);
    if has("cl_ext_float_atomics") && has("cl_khr_fp16") {
        return Some(setup);
    }
    pumice_tests::left_out("no atomics on half");
    None
}

/// Halves lie two in a word, of which atomics on one must leave the other as it is.
#[test]
fn half_atomics() {
    let Some(setup) = with_atomics() else {
        return;
    };
    let source =
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable
         #if !defined(__opencl_c_ext_fp16_global_atomic_load_store) || !defined(__opencl_c_ext_fp16_global_atomic_add) \\
             || !defined(__opencl_c_ext_fp16_global_atomic_min_max) || !defined(__opencl_c_ext_fp16_local_atomic_load_store) \\
             || !defined(__opencl_c_ext_fp16_local_atomic_add) || !defined(__opencl_c_ext_fp16_local_atomic_min_max)
         #error features
         #endif
         kernel void f(volatile global atomic_half *p, global float *out) {
             local atomic_half low[3];
             local atomic_half turns[2];
             uint l = get_local_id(0), g = get_global_id(0);
             if (l == 0) {
                 atomic_store(low, (half)1000); atomic_store(low + 1, (half)-1000); atomic_store(low + 2, (half)0);
                 atomic_store(turns, (half)7); atomic_store(turns + 1, (half)-7);
             }
             barrier(CLK_LOCAL_MEM_FENCE);
             half x = g;
             atomic_fetch_add(p, (half)1);
             atomic_fetch_sub_explicit(p + 1, (half)2, memory_order_relaxed);
             atomic_fetch_max_explicit(p + 2, x, memory_order_relaxed, memory_scope_device);
             atomic_fetch_min(p + 3, -x);
             atomic_fetch_min(low, x);
             atomic_fetch_max_explicit(low + 1, x, memory_order_relaxed, memory_scope_work_group);
             atomic_fetch_add(low + 2, (half)0.5);
             half before = atomic_exchange(turns, (half)l);
             barrier(CLK_LOCAL_MEM_FENCE);
             if (l == 0) {
                 uint at = get_group_id(0) * 8;
                 out[at] = atomic_load(low); out[at + 1] = atomic_load(low + 1); out[at + 2] = atomic_load(low + 2);
                 out[at + 3] = atomic_load_explicit(turns + 1, memory_order_relaxed, memory_scope_work_group);
                 float last = atomic_load(turns);
                 out[at + 4] = last >= 0 && last < 64 && last == floor(last);
                 atomic_store(p + 4, (half)-3);
                 out[at + 5] = atomic_exchange_explicit(p + 6 + get_group_id(0), (half)11, memory_order_relaxed);
             }
         }";
    let program = match setup.try_build(source, "-cl-std=CL3.0") {
        Err(log) if log.contains("AtomicFAddEXT can only be generated for f32 or f64") => {
            return pumice_tests::left_out("llvm-spirv ends itself at additions to half");
        }
        program => program.unwrap_or_else(|log| panic!("{log}")),
    };
    let device = setup.device;
    const CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT: u32 = 0x4233;
    let capabilities = info_value!(
        u64,
        clGetDeviceInfo(device),
        CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT
    );
    assert_eq!(capabilities, 0x7_0007);
    let kernel = setup.kernel(&program, "f");
    // 1, 0, -1, 1, 5, 9, and what the groups exchange.
    let start = [
        0x3c00u16, 0, 0xbc00, 0x3c00, 0x4500, 0x4880, 0x4000, 0x4200, 0x4400, 0x4500, 0x4880, 0,
    ];
    let (a, b) = (setup.buffer_of(&start), setup.buffer_of(&[0f32; 32]));
    kernel.set_buffer(0, &a).set_buffer(1, &b);
    setup.run(&kernel, &[256], Some(&[64]));
    // 257, -512, 255, -255, -3, untouched, 11 each, untouched.
    let end = [
        0x5c04u16, 0xe000, 0x5bf8, 0xdbf8, 0xc200, 0x4880, 0x4980, 0x4980, 0x4980, 0x4980, 0x4880,
        0,
    ];
    assert_eq!(setup.read::<u16>(&a, 12), end);
    let got = setup.read::<f32>(&b, 32);
    for (group, exchanged) in [2.0, 3.0, 4.0, 5.0].into_iter().enumerate() {
        let first = group as f32 * 64.0;
        let expected = [first, first + 63.0, 32.0, -7.0, 1.0, exchanged];
        assert_eq!(got[group * 8..group * 8 + 6], expected, "group {group}");
    }
}

/// Work-items that exchange the same half at once: nothing gets lost, nothing comes twice. By all of a sub-group, by some,
/// and by each another half; a half million of them on one half, which took seconds on an H100.
#[test]
fn exchanges_of_halves_lose_nothing() {
    let Some(setup) = with_atomics() else {
        return;
    };
    let program = collectives::build(
        &setup,
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable
         kernel void f(volatile global atomic_half *far, global ushort *out, uint mask, uint some, uint times) {
             local atomic_half near[16];
             uint l = get_local_id(0);
             if (l < 16) {
                 atomic_store(near + l, as_half((ushort)(1000 + l)));
             }
             barrier(CLK_LOCAL_MEM_FENCE);
             half a = as_half((ushort)l), b = a;
             for (uint i = 0; i < times; i++)
                 if ((l + i) % some == 0) {
                     a = atomic_exchange(far + ((l ^ i) & mask), a);
                     b = atomic_exchange_explicit(near + ((l + i) & mask), b, memory_order_relaxed, memory_scope_work_group);
                 }
             barrier(CLK_LOCAL_MEM_FENCE);
             out[l] = as_ushort(a);
             out[256 + l] = as_ushort(b);
             if (l < 16)
                 out[512 + l] = as_ushort(atomic_load(near + l));
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let out = setup.buffer_of(&[0u16; 528]);
    for (mask, some, times) in [
        (0, 1, 2000),
        (0, 3, 30),
        (1, 1, 30),
        (1, 2, 30),
        (15, 5, 30),
    ] {
        let start: Vec<u16> = (1000..1016).collect();
        let far = setup.buffer_of(&start);
        kernel.set_buffer(0, &far).set_buffer(1, &out);
        kernel.set(2, mask).set(3, some).set(4, times);
        setup.run(&kernel, &[256], Some(&[256]));
        let out = setup.read::<u16>(&out, 528);
        let mut expected: Vec<u16> = (0..256).collect();
        expected.extend(&start);
        let far = setup.read::<u16>(&far, 16);
        for (held, left) in [(&out[..256], &far[..]), (&out[256..512], &out[512..])] {
            let mut all = [held, left].concat();
            all.sort_unstable();
            assert_eq!(all, expected, "mask {mask}, one of {some}");
        }
    }
}

/// A number that became a half and is widened again is the half's, not what it was (quirk `forgotten-halves`).
#[test]
fn a_number_that_comes_back_was_rounded() {
    let setup = Setup::new();
    if !setup.has_extension("cl_khr_fp16") {
        return pumice_tests::left_out("no cl_khr_fp16");
    }
    let source = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable
         kernel void f(global float *out, global float *in, int n) {
             uint i = get_global_id(0);
             half plain = (half)in[i], last = 0;
             half chosen = n > 0 ? plain : -plain;
             for (int k = 0; k < n; k++) last = (half)in[i];
             out[3 * i] = plain; out[3 * i + 1] = chosen; out[3 * i + 2] = fabs(last);
         }";
    let table = [
        (1.000_244_1_f32, 1.0f32),
        (2049.0, 2048.0),
        (2051.0, 2052.0),
        (65519.0, 65504.0),
        (65520.0, f32::INFINITY),
        (0.1, 0.099_975_586),
        (3.0, 3.0),
    ];
    let input: Vec<f32> = table.iter().map(|&(x, _)| x).collect();
    let program = setup.build(source);
    let kernel = setup.kernel(&program, "f");
    let (out, from) = (
        setup.buffer_of(&[0f32; 21]),
        setup.buffer_of(input.as_slice()),
    );
    kernel.set_buffer(0, &out);
    kernel.set_buffer(1, &from);
    kernel.set(2, 2i32);
    setup.run(&kernel, &[table.len()], None);
    let expected: Vec<f32> = table.iter().flat_map(|&(_, y)| [y; 3]).collect();
    assert_eq!(setup.read::<f32>(&out, 21), expected);
}

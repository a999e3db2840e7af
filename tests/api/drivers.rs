//! Tests of known and suspected faults of drivers, each alone: see `docs/quirks.md`.

use pumice_tests::sys::*;
use pumice_tests::{info_value, Setup};

/// A fence is no barrier: work-items that meet one alone let no others through the true barrier behind it too early.
/// llvmpipe 22.3 does this right with fences, too; what it gets wrong shows in `collectives::float_atomics`.
#[test]
fn fences_in_divergent_flow() {
    let setup = Setup::new();
    let source = "
        kernel void k(global int *out, global const int *n) {
            local int shared[64];
            int l = get_local_id(0);
            shared[l] = -1;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (l < n[0]) {
                for (int i = 0; i < n[1]; i++) {
                    out[get_global_id(0)] = i;
                    ORDER;
                }
            }
            shared[l] = l;
            barrier(CLK_LOCAL_MEM_FENCE);
            out[get_global_id(0)] = shared[63 - l];
        }";
    let out = setup.buffer_of(&[0i32; 129]);
    for fence in [
        "mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
        "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device)",
        "atomic_work_item_fence(CLK_LOCAL_MEM_FENCE, memory_order_release, memory_scope_work_group)",
        "atomic_fetch_add_explicit((global atomic_int *)out + 128, 0, memory_order_acq_rel, memory_scope_device)",
    ] {
        let program = setup
            .try_build(&source.replace("ORDER", fence), "-cl-std=CL3.0")
            .expect("builds");
        let kernel = setup.kernel(&program, "k");
        for counts in [[8, 1], [8, 3], [3, 2], [40, 5]] {
            let n = setup.buffer_of::<i32>(&counts);
            kernel.set_buffer(0, &out).set_buffer(1, &n);
            setup.run(&kernel, &[128], Some(&[64]));
            let want: Vec<i32> = (0..128).map(|i| 63 - i % 64).collect();
            assert_eq!(setup.read::<i32>(&out, 128), want, "{fence}, {counts:?}");
        }
    }
}

/// Some drivers round doubles by way of single precision.
#[test]
fn doubles_are_rounded_beyond_floats() {
    let setup = Setup::new();
    if !setup.has_doubles() {
        return pumice_tests::left_out("no double precision");
    }
    let kernel = setup.kernel_of(
        "kernel void k(global const double *x, global double2 *r) {
             size_t i = get_global_id(0);
             r[i] = (double2)(trunc(x[i]), rint(x[i]));
         }",
        "k",
    );
    let values: Vec<f64> = (0..64)
        .map(|i| {
            let size = 2f64.powi(i / 2 + 18);
            let x = size + f64::from(i) + 0.75 - f64::from(i % 2) * 0.25;
            if i % 3 == 0 {
                -x
            } else {
                x
            }
        })
        .collect();
    let x = setup.buffer_of(&values);
    let r = setup.buffer(values.len() * 16);
    kernel.set_buffer(0, &x).set_buffer(1, &r);
    setup.run(&kernel, &[values.len()], None);
    let want: Vec<f64> = values
        .iter()
        .flat_map(|x| [x.trunc(), x.round_ties_even()])
        .collect();
    assert_eq!(setup.read::<f64>(&r, want.len()), want);
}

/// A device that is the processor reads and writes any memory of the process.
#[test]
fn processors_see_the_memory_of_the_host() {
    let setup = Setup::new();
    let d = setup.device;
    if info_value!(u64, clGetDeviceInfo(d), CL_DEVICE_TYPE) != CL_DEVICE_TYPE_CPU {
        return pumice_tests::left_out("not a processor");
    }
    let svm = info_value!(u64, clGetDeviceInfo(d), CL_DEVICE_SVM_CAPABILITIES);
    assert_ne!(svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM, 0);
}

/// Some drivers count the bits of narrow values together with those of their extension.
#[test]
fn bits_of_narrow_values() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global const ushort *x, global uint *r, global ushort *narrow) {
             size_t i = get_global_id(0);
             // The count has the type of the operand, and is not widened.
             narrow[i * 2] = popcount(x[i]);
             ((global uchar *)(narrow + i * 2 + 1))[0] = popcount(((global const uchar *)(x + i))[0]);
             ((global uchar *)(narrow + i * 2 + 1))[1] = popcount(((global const uchar *)(x + i))[1]);
             global const uchar *b = (global const uchar *)x;
             global const char *c = (global const char *)x;
             global const short *s = (global const short *)x;
             r[i * 5] = popcount(x[i]);
             r[i * 5 + 1] = popcount(b[i * 2]);
             r[i * 5 + 2] = (uint)popcount(c[i * 2]) + (uint)popcount(s[i]);
             r[i * 5 + 3] = popcount((uchar)(b[i * 2] * 3)) + popcount((ushort)(x[i] | 5));
             r[i * 5 + 4] = popcount((uchar2)(b[i * 2], b[i * 2 + 1])).y + clz(b[i * 2]);
         }",
        "k",
    );
    let values: Vec<u16> = (0..256u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 16) as u16 | 0x8080)
        .collect();
    let x = setup.buffer_of(&values);
    let r = setup.buffer(values.len() * 20);
    let narrow = setup.buffer(values.len() * 4);
    let arguments = kernel.set_buffer(0, &x).set_buffer(1, &r);
    arguments.set_buffer(2, &narrow);
    setup.run(&kernel, &[values.len()], None);
    let want: Vec<u32> = values
        .iter()
        .flat_map(|&x| {
            let [low, high] = x.to_le_bytes();
            [
                x.count_ones(),
                low.count_ones(),
                low.count_ones() + x.count_ones(),
                low.wrapping_mul(3).count_ones() + (x | 5).count_ones(),
                high.count_ones() + low.leading_zeros(),
            ]
        })
        .collect();
    assert_eq!(setup.read::<u32>(&r, want.len()), want);
    let want: Vec<u16> = values
        .iter()
        .flat_map(|&x| {
            let bytes = x.to_le_bytes().map(|byte| byte.count_ones() as u8);
            [x.count_ones() as u16, u16::from_le_bytes(bytes)]
        })
        .collect();
    assert_eq!(setup.read::<u16>(&narrow, want.len()), want);

    // A byte alone of a word: what an H100 miscounts.
    let kernel = setup.kernel_of(
        "kernel void k(global const ulong *x, global uchar *r) {
             size_t i = get_global_id(0);
             r[i] = popcount(*(global const uchar *)(x + i * 4));
         }",
        "k",
    );
    let words: Vec<u64> = (0..256u64)
        .map(|i| (i | 0x80).wrapping_mul(0x0101_0101_0101_0101))
        .collect();
    let x = setup.buffer_of(&words);
    let r = setup.buffer(64);
    kernel.set_buffer(0, &x).set_buffer(1, &r);
    setup.run(&kernel, &[64], None);
    let want: Vec<u8> = (words.iter().step_by(4))
        .map(|&word| (word as u8).count_ones() as u8)
        .collect();
    assert_eq!(setup.read::<u8>(&r, 64), want);
}

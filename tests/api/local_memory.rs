//! Arrays in local memory keep their sizes however kernels step through them, and integers of odd widths that compilers
//! make of counters do no harm.

use pumice_tests::sys::*;
use pumice_tests::{info_value, Setup};

#[test]
fn arrays_keep_their_sizes() {
    let setup = Setup::new();
    let program = setup.build(
        "kernel void steps(global int *p, int n) {
             local int t[256], guard[256];
             int x = get_local_id(0);
             guard[x] = -x;
             barrier(CLK_LOCAL_MEM_FENCE);
             if (x == 0) for (int i = 0; i < n; i++) t[i] = p[i];
             barrier(CLK_LOCAL_MEM_FENCE);
             int s = 0;
             for (int i = 0; i < n; i++) s += t[i];
             p[x] = s + guard[x];
         }
         kernel void choice(global int *p, int n) {
             local int t[64], u[64];
             local int *q = n ? t : u, *r = n ? u : t;
             int x = get_local_id(0);
             q[x] = p[x];
             r[x] = 1000;
             barrier(CLK_LOCAL_MEM_FENCE);
             p[x] = t[63 - x];
         }
         void add(local int *a, int n) { for (int i = 0; i < n; i++) a[i] += i; }
         kernel void function(global int *p, int n) {
             local int t[64];
             t[get_local_id(0)] = p[get_local_id(0)];
             barrier(CLK_LOCAL_MEM_FENCE);
             if (get_local_id(0) == 0) add(t, n);
             barrier(CLK_LOCAL_MEM_FENCE);
             p[get_local_id(0)] = t[get_local_id(0)];
         }
         kernel void rows(global int *p, int n) {
             local int tile[8][8];
             local int (*row)[8] = tile;
             for (int i = 0; i < n; i++, row++)
                 for (int j = 0; j < n; j++) (*row)[j] = p[i * 8 + j];
             p[1] = tile[n - 1][n - 2];
         }",
    );
    let run = |name: &str, items: usize, n: i32, bytes: u64| {
        let kernel = setup.kernel(&program, name);
        let size = info_value!(
            u64,
            clGetKernelWorkGroupInfo(kernel.0, setup.device),
            CL_KERNEL_LOCAL_MEM_SIZE
        );
        assert!(size >= bytes, "{name}: {size}");
        let data: Vec<i32> = (0..256).collect();
        let buffer = setup.buffer_of(&data);
        kernel.set_buffer(0, &buffer).set(1, n);
        setup.run(&kernel, &[items], Some(&[items]));
        setup.read::<i32>(&buffer, items.max(2))
    };
    let sums: Vec<i32> = (0..128).map(|x| 255 * 128 - x).collect();
    assert_eq!(run("steps", 128, 256, 2048), sums);
    let back: Vec<i32> = (0..64).map(|x| 63 - x).collect();
    assert_eq!(run("choice", 64, 1, 512), back);
    let doubled: Vec<i32> = (0..64).map(|x| 2 * x).collect();
    assert_eq!(run("function", 64, 64, 256), doubled);
    assert_eq!(run("rows", 1, 7, 256)[1], 6 * 8 + 5);
}

#[test]
fn addresses_of_arrays_are_numbers() {
    // Differences of truncated addresses are those of the addresses; alignments show in the low bits.
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "typedef struct { char2 v; char rest[12]; } S;
         kernel void f(global uint *p) {
             local S s; local long16 wide[2];
             p[0] = (uint)(local uchar *)&s.v & 1;
             p[1] = (uint)(local uchar *)&wide[1] - (uint)(local uchar *)&wide[0];
             p[2] = (uchar)(ulong)&wide[1] & 127;
             p[3] = (ushort)(ulong)&s.rest[3] - (ushort)(ulong)&s.v;
         }",
        "f",
    );
    let out = setup.buffer(16);
    kernel.set_buffer(0, &out);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<u32>(&out, 4), [0, 128, 0, 5]);
}

#[test]
fn atomics_of_two_widths_on_one_array() {
    let setup = Setup::new();
    if !setup.has_extension("cl_khr_int64_base_atomics") {
        return pumice_tests::left_out("no cl_khr_int64_base_atomics");
    }
    let kernel = setup.kernel_of(
        "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
         kernel void f(global uint *p) {
             local ulong t[8];
             local uint *h = (local uint *)t;
             int i = get_local_id(0);
             if (i < 8) t[i] = 0xfffffff0;
             barrier(CLK_LOCAL_MEM_FENCE);
             atomic_add(&h[i & 1], 1u);
             atom_add(&t[1], 3ul);
             atomic_max(&h[4], 0xffffff00u + i);
             atomic_min((local int *)&h[5], -i);
             if (i == 5) atomic_xchg(&h[6], 77u);
             if (i == 6) p[20] = atomic_cmpxchg(&h[7], 0u, 99u);
             if (i == 7) p[21] = atomic_cmpxchg(&h[8], 0u, 99u);
             atomic_xor(&h[9], 1u << (i & 31));
             barrier(CLK_LOCAL_MEM_FENCE);
             if (i < 16) p[i] = h[i];
         }",
        "f",
    );
    let out = setup.buffer_of(&[0u32; 32]);
    kernel.set_buffer(0, &out);
    setup.run(&kernel, &[64], Some(&[64]));
    let long = 0xffff_fff0u64 + 3 * 64;
    let low = 0xffff_fff0u32;
    let mut expected = [low, 0].repeat(8);
    // 32 of 1 to each half of the first, without a carry between them.
    expected[..2].copy_from_slice(&[low.wrapping_add(32), 32]);
    expected[2..4].copy_from_slice(&[long as u32, (long >> 32) as u32]);
    expected[4] = low.max(0xffff_ff00 + 63);
    expected[5] = -63i32 as u32;
    expected[6] = 77;
    expected[7] = 99;
    // Each bit twice.
    expected[9] = 0;
    assert_eq!(setup.read::<u32>(&out, 16), expected);
    assert_eq!(setup.read::<u32>(&out, 22)[20..], [0, low]);
}

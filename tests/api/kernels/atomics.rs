//! Atomic functions of 32 and 64 bits, through pointers to one address space and generic ones.

use super::*;

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
    if !setup.has_extension("cl_khr_int64_base_atomics") {
        return pumice_tests::left_out("no cl_khr_int64_base_atomics");
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

//! Tests of the order that atomic operations and fences establish between work-groups (OpenCL C,
//! section 6.15.12.2): outcomes of two concurrent work-items that no order of their operations has.

use pumice_tests::Setup;

/// How often both do it.
const TIMES: usize = 2000;
/// Words between two locations: a line of a cache or more each.
const STRIDE: usize = 32;

/// Two work-groups of one work-item. Each time they wait for one another for a while, not for ever: they need not run at once.
const SOURCE: &str = "
    #if !defined(__opencl_c_atomic_order_seq_cst) || !defined(__opencl_c_atomic_scope_device)
    #error orders
    #endif
    #define DEVICE memory_scope_device
    void meet(global atomic_int *met, int all) {
        atomic_fetch_add_explicit(met, 1, memory_order_relaxed, DEVICE);
        for (int k = 0; k < 20 && atomic_load_explicit(met, memory_order_relaxed, DEVICE) < all; k++);
    }
    kernel void store_and_load(global atomic_int *x, global int *seen, global atomic_int *met, int times) {
        int mine = get_group_id(0);
        for (int i = 0; i < times; i++) {
            meet(met, 2 * (i + 1));
            atomic_store_explicit(x + (i * 2 + mine) * STRIDE, 1, memory_order_seq_cst, DEVICE);
            seen[i * 2 + mine] = atomic_load_explicit(x + (i * 2 + 1 - mine) * STRIDE, memory_order_seq_cst, DEVICE);
        }
    }
    kernel void fence_between(global atomic_int *x, global int *seen, global atomic_int *met, int times) {
        int mine = get_group_id(0);
        for (int i = 0; i < times; i++) {
            meet(met, 2 * (i + 1));
            atomic_store_explicit(x + (i * 2 + mine) * STRIDE, 1, memory_order_relaxed, DEVICE);
            atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, DEVICE);
            seen[i * 2 + mine] = atomic_load_explicit(x + (i * 2 + 1 - mine) * STRIDE, memory_order_relaxed, DEVICE);
        }
    }
    // One writes and says so, the other looks whether it is said, and reads.
    kernel void message(global atomic_int *x, global int *seen, global atomic_int *met, int times) {
        int mine = get_group_id(0);
        global int *plain = (global int *)x;
        for (int i = 0; i < times; i++) {
            meet(met, 2 * (i + 1));
            if (mine == 0) {
                plain[i * 2 * STRIDE] = i + 5;
                atomic_store_explicit(x + (i * 2 + 1) * STRIDE, 1, memory_order_release, DEVICE);
            } else {
                int said = atomic_load_explicit(x + (i * 2 + 1) * STRIDE, memory_order_acquire, DEVICE);
                seen[i * 2] = said;
                seen[i * 2 + 1] = said ? plain[i * 2 * STRIDE] - i - 5 : 0;
            }
        }
    }";

/// Returns what both work-items read, each time, or `None` if the device has no such orders.
fn outcomes(kernel: &str) -> Option<Vec<[i32; 2]>> {
    let setup = Setup::new();
    let source = SOURCE.replace("STRIDE", &STRIDE.to_string());
    let program = match setup.try_build(&source, "-cl-std=CL3.0") {
        Ok(program) => program,
        Err(log) if log.contains("error: orders") => {
            pumice_tests::left_out("no sequential consistency between work-groups");
            return None;
        }
        Err(log) => panic!("{log}"),
    };
    let kernel = setup.kernel(&program, kernel);
    let places = setup.buffer_of(&vec![0i32; TIMES * 2 * STRIDE]);
    let seen = setup.buffer_of(&vec![-1i32; TIMES * 2]);
    let met = setup.buffer_of(&[0i32]);
    kernel.set_buffer(0, &places).set_buffer(1, &seen);
    kernel.set_buffer(2, &met).set(3, TIMES as i32);
    setup.run(&kernel, &[2], Some(&[1]));
    let seen = setup.read::<i32>(&seen, TIMES * 2);
    assert!(!seen.contains(&-1), "a loop has ended early");
    Some(seen.chunks_exact(2).map(|two| [two[0], two[1]]).collect())
}

/// Whoever stores first of two that each store and then load the other's is seen by the second.
#[test]
fn one_of_two_stores_is_first() {
    for kernel in ["store_and_load", "fence_between"] {
        let Some(outcomes) = outcomes(kernel) else {
            return;
        };
        let neither = outcomes.iter().filter(|two| **two == [0, 0]).count();
        assert_eq!(neither, 0, "{kernel}: of {TIMES}");
    }
}

/// Checks that a load that reads a release store makes earlier writes visible.
#[test]
fn what_was_written_before_is_seen() {
    let Some(outcomes) = outcomes("message") else {
        return;
    };
    let wrong: Vec<_> = outcomes.iter().filter(|two| two[1] != 0).collect();
    assert!(wrong.is_empty(), "{} of {TIMES}", wrong.len());
}

//! Loops in loops, of which compilers make one loop.

use super::*;

/// A loop that each work-item runs another number of times, at the very beginning of one with barriers: LLVM makes one loop of both.
#[test]
fn work_items_wait_after_the_inner_loop() {
    const LOCAL: usize = 64;
    let setup = Setup::new();
    let source = "
        kernel void rounds(global uint *out, global const volatile int *n, int last) {
            local volatile uint values[64];
            local int round;
            int l = get_local_id(0), g = get_global_id(0);
            values[l] = g;
            out[g] = 0;
            if (l == 0) round = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            do {
                int i = 0;
                do {
                    values[l] = values[l] * 1664525u + 1013904223u;
                } while (++i < n[l]);
                barrier(CLK_LOCAL_MEM_FENCE);
                out[g] = out[g] * 31u + values[(l + 1) & 63] + values[(l + 33) & 63];
                barrier(CLK_LOCAL_MEM_FENCE);
                if (l == 0) round++;
                barrier(CLK_LOCAL_MEM_FENCE);
            } while (round < last);
        }";
    let kernel = setup.kernel_of(source, "rounds");
    let (items, last) = (4 * LOCAL, 20i32);
    let turns: Vec<i32> = (0..LOCAL as i32).map(|l| l * 7 % 11 + 1).collect();
    let (out, n) = (setup.buffer(4 * items), setup.buffer_of(&turns));
    kernel.set_buffer(0, &out).set_buffer(1, &n).set(2, last);
    setup.run(&kernel, &[items], Some(&[LOCAL]));
    let mut values: Vec<u32> = (0..items as u32).collect();
    let mut wanted = vec![0u32; items];
    for _ in 0..last {
        for (g, value) in values.iter_mut().enumerate() {
            for _ in 0..turns[g % LOCAL] {
                *value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            }
        }
        for (g, sum) in wanted.iter_mut().enumerate() {
            let other = |ahead: usize| values[g / LOCAL * LOCAL + (g + ahead) % LOCAL];
            let more = other(1).wrapping_add(other(33));
            *sum = sum.wrapping_mul(31).wrapping_add(more);
        }
    }
    assert_eq!(setup.read::<u32>(&out, items), wanted);
}

//! Kernels of very long straight-line code, which some drivers are given in parts.

use pumice_tests::sys::*;
use pumice_tests::{ok, Setup};
use std::fmt::Write;

/// Each step stores vectors made of what the steps before have stored, so that no part may begin early; work-items use
/// places of their own.
#[test]
fn steps_follow_each_other() {
    const STEPS: usize = 150;
    const ITEMS: usize = 40;
    let mut source = String::from(
        "kernel void steps(global ulong16 *out, global uint *count) {
             size_t i = get_global_id(0);
             out += i * 151; out[0] = (ulong16)(i);\n",
    );
    for step in 0..STEPS {
        let (from, lane) = (step / 2, step % 16);
        writeln!(
            source,
            "out[{}] = out[{from}].s{lane:x} * 3 + (ulong16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
             atomic_add(count + {}, 1);",
            step + 1,
            step % 7
        )
        .expect("text");
    }
    source.push('}');
    for properties in [0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let setup = Setup::with_queue(properties);
        let kernel = setup.kernel_of(&source, "steps");
        let out = setup.buffer_of(&vec![0u64; ITEMS * (STEPS + 1) * 16]);
        kernel.set_buffer(0, &out);
        for local in [None, Some([8usize]), Some([5])] {
            let count = setup.buffer_of(&[0u32; 7]);
            kernel.set_buffer(1, &count);
            setup.enqueue(&kernel, &[ITEMS], local.as_ref().map(|size| &size[..]));
            ok!(clFinish(setup.queue.0));
            let seen = setup.read::<u64>(&out, ITEMS * (STEPS + 1) * 16);
            for (item, seen) in seen.chunks((STEPS + 1) * 16).enumerate() {
                let mut model = vec![[item as u64; 16]];
                for step in 0..STEPS {
                    let base = model[step / 2][step % 16].wrapping_mul(3);
                    model.push(std::array::from_fn(|lane| base.wrapping_add(lane as u64)));
                }
                assert_eq!(seen, model.concat(), "work-item {item}, {local:?}");
            }
            let count = setup.read::<u32>(&count, 7);
            let expected: Vec<u32> = (0..7)
                .map(|n| ((STEPS - n).div_ceil(7) * ITEMS) as u32)
                .collect();
            assert_eq!(count, expected, "each step runs once for each work-item");
        }
    }
}

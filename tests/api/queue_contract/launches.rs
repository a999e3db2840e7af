//! Launches that need more memory than others.

use super::fill;
use pumice_tests::sys::*;
use pumice_tests::{call, ok, Setup};
use std::ptr::null_mut;

/// A kernel with much private memory runs in work-groups of the size that CL_KERNEL_WORK_GROUP_SIZE says. Where that fails
/// the launch does, too, and no other command.
#[test]
fn kernels_run_in_the_largest_groups_reported() {
    let setup = Setup::new();
    for words in [1 << 12, 1 << 18] {
        let source = format!(
            "kernel void large(global int *p, int step) {{
                int own[{words}];
                for (int i = 0; i < {words}; i++) own[i] = i;
                barrier(CLK_GLOBAL_MEM_FENCE);
                int sum = 0;
                for (int i = 0; i < {words}; i += 7) sum += own[i * step % {words}];
                barrier(CLK_GLOBAL_MEM_FENCE);
                p[get_global_id(0)] = sum;
            }}"
        );
        let kernel = setup.kernel_of(&source, "large");
        let mut size = 0usize;
        let said = call!(clGetKernelWorkGroupInfo(
            kernel.0,
            setup.device,
            CL_KERNEL_WORK_GROUP_SIZE,
            size_of::<usize>(),
            (&raw mut size).cast(),
            null_mut()
        ));
        let count = size.max(1);
        let (buffer, other) = (setup.buffer(count * 4), setup.buffer_of(&[0u32; 64]));
        kernel.set_buffer(0, &buffer).set(1, 1i32);
        let before = fill(&setup.queue, &other, 1, 128, &[]);
        let launched = setup.queue.try_enqueue(&kernel, &[count], Some(&[count]));
        assert_eq!(launched, said, "{words} words, groups of {count}");
        let after = fill(&setup.queue, &other, 2, 4, &[]);
        ok!(clFinish(setup.queue.0));
        assert_eq!(
            (before.status(), after.status()),
            (CL_COMPLETE, CL_COMPLETE)
        );
        assert_eq!(setup.read::<u32>(&other, 2), [2, 1]);
        if launched == CL_SUCCESS {
            let sum = (0..words).step_by(7).fold(0, i32::wrapping_add);
            let got = setup.read::<i32>(&buffer, count);
            assert!(got.iter().all(|&word| word == sum), "{words} words");
        }
    }
}

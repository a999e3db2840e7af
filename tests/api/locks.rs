//! The lock of programs for GPUs: taken in one work-item after the other, and released before the next one goes on.

use pumice_tests::Setup;

const SOURCE: &str = "
    kernel void global_lock(global uint *x) {
        size_t g = get_global_id(0);
        volatile global uint *y = x;
        bool done = false;
        while (!done)
            if (atomic_cmpxchg(y, 0u, 1u) == 0u) {
                mem_fence(CLK_GLOBAL_MEM_FENCE);
                y[1] = y[1] + (uint)g;
                mem_fence(CLK_GLOBAL_MEM_FENCE);
                atomic_xchg(y, 0u);
                done = true;
            }
    }
    kernel void local_lock(global uint *x) {
        local uint lock, sum;
        if (get_local_id(0) == 0) lock = sum = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        bool done = false;
        while (!done)
            if (atomic_xchg(&lock, 1u) == 0u) {
                mem_fence(CLK_LOCAL_MEM_FENCE);
                sum += (uint)get_global_id(0);
                mem_fence(CLK_LOCAL_MEM_FENCE);
                atomic_xchg(&lock, 0u);
                done = true;
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) == 0) atomic_add(x + 1, sum);
    }
    kernel void turns(global uint *x) {
        volatile global uint *turn = x;
        uint g = get_global_id(0);
        bool done = false;
        while (!done)
            if (*turn == g) {
                if (g & 1) x[1] += g; else x[1] = x[1] + g;
                mem_fence(CLK_GLOBAL_MEM_FENCE);
                *turn = g + 1;
                done = true;
            }
    }";

/// Work-items of a group that run in step wait for one that has the lock, which LLVM's passes put after the loop.
#[test]
fn locks_are_released_before_others_go_on() {
    let setup = Setup::new();
    for options in ["-cl-std=CL3.0", "-cl-std=CL3.0 -cl-opt-disable"] {
        let built = setup.try_build(SOURCE, options);
        let program = built.unwrap_or_else(|log| panic!("{options}: {log}"));
        for (name, items, group) in [
            ("global_lock", 1, 1),
            ("global_lock", 200, 20),
            ("global_lock", 192, 64),
            ("local_lock", 200, 20),
            ("turns", 33, 33),
        ] {
            let kernel = setup.kernel(&program, name);
            let memory = setup.buffer_of(&[0u32; 2]);
            kernel.set_buffer(0, &memory);
            setup.enqueue(&kernel, &[items], Some(&[group]));
            let sum = (items * (items - 1) / 2) as u32;
            let got = setup.read::<u32>(&memory, 2);
            assert_eq!(got[1], sum, "{name} {items} {group} {options}");
        }
    }
}

// Work-items that wait for one another: what one wrote, the next one reads, though only `volatile` says so.

kernel void locked(global int *lock, global int *count) {
    bool done = false;
    while (!done)
        if (atomic_cmpxchg(lock, 0, 1) == 0) {
            count[0] = ((volatile global int *)count)[0] + 1;
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            atomic_xchg(lock, 0);
            done = true;
        }
}

kernel void waits(volatile global int *flag, global int *out) {
    while (flag[0] == 0)
        ;
    flag[1] = 1;
    out[0] = 1;
}

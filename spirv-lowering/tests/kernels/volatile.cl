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

// Work-items that are taken to run in step, as programs for one vendor's devices do.
kernel void in_step(global int *out) {
    volatile local int sums[16];
    int l = get_local_id(0);
    sums[l & 15] = l;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 8) {
        sums[l] += sums[l + 8];
        sums[l] += sums[l + 4];
    }
    out[l] = sums[0];
}

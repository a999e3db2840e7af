// What PUMICE_CHECK finds. The line of each fault bears a mark.

kernel void outside(global int *p, int n) {
    int i = get_global_id(0);
    p[i + n] = i;  // outside
}

kernel void behind(global const int *p, global int *out) {
    int i = get_global_id(0);
    out[i] = p[i + 1];  // behind
}

kernel void before(global int *p) {
    p[(int)get_global_id(0) - 1] = 3;  // before
}

kernel void null_pointer(global int *p, global int *none) {
    if (get_global_id(0) == 5)
        p[5] = *none;  // null_pointer
}

kernel void misaligned(global int *p) {
    global char *bytes = (global char *)p + 1;
    *(global int *)(bytes + 8 * get_global_id(0)) = 1;  // misaligned
}

kernel void local_outside(global int *p, local int *t) {
    int i = get_local_id(0);
    t[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    t[i + 1] = i;  // local_outside
    barrier(CLK_LOCAL_MEM_FENCE);
    p[get_global_id(0)] = t[i];
}

kernel void local_unwritten(global int *p) {
    local int t[64];
    int i = get_local_id(0);
    if (i < 32)
        t[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    p[get_global_id(0)] = t[63 - i] + 1;  // local_unwritten
}

kernel void private_unwritten(global int *p, int n) {
    int a[16];
    for (int i = 0; i < n; i++)
        a[i] = i * n;
    p[get_global_id(0)] = a[p[get_global_id(0)] & 15] + 1;  // private_unwritten
}

kernel void local_race(global int *p) {
    local int t[64];
    int i = get_local_id(0);
    t[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    t[i] = i + 1;
    p[get_global_id(0)] = t[63 - i];  // local_race
}

kernel void group_race(global int *p) {
    if (get_local_id(0) == 0)
        p[0] += 1 + (int)get_group_id(0);  // group_race
}

kernel void wrong_fence(global int *p) {
    int i = get_local_id(0);
    p[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    p[64 + i] = p[63 - i];  // wrong_fence
}

kernel void divergent(global int *p) {
    local int t[64];
    int i = get_local_id(0);
    t[i] = i;
    if (i < 40)
        barrier(CLK_LOCAL_MEM_FENCE);  // divergent
    p[get_global_id(0)] = i;
}

constant int table[4] = {1, 2, 3, 4};

kernel void constants(global int *p) {
    int i = get_global_id(0);
    p[i] = table[p[i]];  // constants
}

// Nothing is wrong here: barriers, atomics, flags that all set to the same, copies of structures with room between members.
struct pair {
    char a;
    int b;
};

kernel void right(global int *p, global struct pair *pairs, global int *flag, local int *t) {
    int i = get_local_id(0), g = get_global_id(0);
    struct pair mine;
    mine.a = i;
    mine.b = g;
    pairs[g] = mine;
    *flag = 7;
    t[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 32; step > 0; step /= 2) {
        if (i < step)
            t[i] += t[i + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i == 0)
        atomic_add(p, t[0]);
    p[1 + g] = sub_group_reduce_add(1) > 0;
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (i > 0)
        p[g] |= 2;
}

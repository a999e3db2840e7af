kernel void reduce_static(global const float *in, global float *out, uint n)
{
    local float scratch[256];
    uint l = get_local_id(0);
    float sum = 0;
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        sum += in[i];
    scratch[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint s = get_local_size(0) / 2; s > 0; s /= 2) {
        if (l < s)
            scratch[l] += scratch[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        out[get_group_id(0)] = scratch[0];
}

kernel void reduce_argument(global const int *in, global int *out, local int *scratch)
{
    uint l = get_local_id(0);
    scratch[l] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint s = 1; s < get_local_size(0); s *= 2) {
        int other = l + s < get_local_size(0) ? scratch[l + s] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        scratch[l] += other;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        atomic_add(out, scratch[0]);
}

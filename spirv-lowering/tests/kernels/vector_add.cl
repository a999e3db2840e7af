kernel void vector_add(global const float *a, global const float *b, global float *c, uint n)
{
    size_t i = get_global_id(0);
    if (i < n)
        c[i] = a[i] + b[i];
}

kernel void vector_add4(global const float4 *a, global const float4 *b, global float4 *c, float3 s)
{
    size_t i = get_global_id(0);
    c[i] = a[i] + b[i] * s.xyzx;
}

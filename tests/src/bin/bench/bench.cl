// Kernels of the bench. What each computes can be checked on the host.

__kernel void nothing(__global int *p) {}

__kernel void bump(__global int *p) { p[get_global_id(0)] += 1; }

// One work-group of 64 work-items works on `count` words: `rounds` times on the first of 64 of a
// work-item, once on the others. The loop is long, so that it takes the same time whether or not
// the processor predicts its end: it does after some launches in a row, not beside other work.
__kernel void grind(__global uint *p, uint count, uint rounds)
{
    for (uint i = get_local_id(0); i < count; i += get_local_size(0)) {
        uint x = p[i];
        uint times = i / 64 % 64 == 0 ? rounds : 1;
        for (uint k = 0; k < times; k++) x = x * 1664525u + 1013904223u;
        p[i] = x;
    }
}

__kernel void triad(__global float *a, __global const float *b, __global const float *c, float s)
{
    size_t i = get_global_id(0);
    a[i] = b[i] + s * c[i];
}

__kernel void triad4(__global float4 *a, __global const float4 *b, __global const float4 *c, float s)
{
    size_t i = get_global_id(0);
    a[i] = b[i] + s * c[i];
}

// Tiles of 64 x 64, each work-item 4 x 4 of them; n is a multiple of 64.
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void sgemm(__global const float *a, __global const float *b, __global float *c, int n)
{
    __local float as[16][64], bs[16][64];
    int lx = get_local_id(0), ly = get_local_id(1), item = ly * 16 + lx;
    int column = get_group_id(0) * 64, row = get_group_id(1) * 64;
    float sum[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sum[i][j] = 0.0f;
    for (int k = 0; k < n; k += 16) {
        for (int i = 0; i < 4; i++) {
            int e = item + 256 * i;
            as[e & 15][e >> 4] = a[(row + (e >> 4)) * n + k + (e & 15)];
            bs[e >> 6][e & 63] = b[(k + (e >> 6)) * n + column + (e & 63)];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < 16; p++) {
            float4 u = vload4(ly, as[p]), v = vload4(lx, bs[p]);
            float x[4] = {u.x, u.y, u.z, u.w}, y[4] = {v.x, v.y, v.z, v.w};
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] = mad(x[i], y[j], sum[i][j]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < 4; i++)
        vstore4((float4)(sum[i][0], sum[i][1], sum[i][2], sum[i][3]), 0, c + (row + 4 * ly + i) * n + column + 4 * lx);
}

// Four chains a work-item, 256 rounds: 2048 operations.
#define CHAINS(name, type, factor, term)                                                     \
    __kernel void name(__global type *out)                                                   \
    {                                                                                        \
        type start = (type)get_global_id(0), a = start, b = start + 1, c = start + 2, d = start + 3; \
        for (int i = 0; i < 256; i++) {                                                      \
            a = a * (type)(factor) + (type)(term);                                           \
            b = b * (type)(factor) + (type)(term);                                           \
            c = c * (type)(factor) + (type)(term);                                           \
            d = d * (type)(factor) + (type)(term);                                           \
        }                                                                                    \
        out[get_global_id(0)] = a + b + c + d;                                               \
    }

CHAINS(chains_float, float, 0.5f, 3.0f)
CHAINS(chains_int, uint, 1664525u, 1013904223u)
#ifdef WITH_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
CHAINS(chains_double, double, 0.5, 3.0)
#endif

// Each group sums 4096 numbers.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void reduce(__global const uint *in, __global uint *out)
{
    __local uint part[256];
    uint item = get_local_id(0), sum = 0;
    __global const uint *mine = in + get_group_id(0) * 4096;
    for (int i = 0; i < 16; i++) sum += mine[item + 256 * i];
    part[item] = sum;
    for (uint half_way = 128; half_way > 0; half_way >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_way) part[item] += part[item + half_way];
    }
    if (item == 0) out[get_group_id(0)] = part[0];
}

__kernel void contend(__global int *counters, int mask) { atomic_add(&counters[get_global_id(0) & mask], 1); }

// Kernels of the kind that applications spend their time in. What each computes can be checked on the host.

__kernel void bytes(__global uchar *out, __global const uchar *in)
{
    size_t i = get_global_id(0);
    out[i] = (uchar)(in[i] * 3 + 1);
}

// Few groups, much of it before the tree: 64 groups of 256, 256 loads an item.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void tree(__global const float *in, __global float *out)
{
    __local float part[256];
    uint item = get_local_id(0), group = get_group_id(0);
    float sum = 0.0f;
    for (uint i = 0; i < 256; i++) sum += in[(group * 256 + i) * 256 + item];
    part[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_way = 128; half_way > 0; half_way >>= 1) {
        if (item < half_way) part[item] += part[item + half_way];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) out[group] = part[0];
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bodies(__global const float4 *at, __global float4 *force, uint count)
{
    __local float4 tile[256];
    uint item = get_local_id(0);
    float4 me = at[get_global_id(0)];
    float3 sum = (float3)(0.0f);
    for (uint first = 0; first < count; first += 256) {
        tile[item] = at[first + item];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < 256; i++) {
            float3 d = tile[i].xyz - me.xyz;
            float r = rsqrt(d.x * d.x + d.y * d.y + d.z * d.z + 0.01f);
            sum += d * (tile[i].w * r * r * r);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    force[get_global_id(0)] = (float4)(sum, 0.0f);
}

#define MANDELBROT(name, type)                                                               \
    __kernel void name(__global uint *out, uint width, uint most)                            \
    {                                                                                        \
        uint x = get_global_id(0), y = get_global_id(1);                                     \
        type cx = (type)x * (type)(3.0) / (type)width - (type)2.0;                           \
        type cy = (type)y * (type)(2.0) / (type)get_global_size(1) - (type)1.0;              \
        type zx = 0, zy = 0;                                                                 \
        uint n = 0;                                                                          \
        while (n < most && zx * zx + zy * zy < (type)4.0) {                                  \
            type next = zx * zx - zy * zy + cx;                                              \
            zy = (type)2.0 * zx * zy + cy;                                                   \
            zx = next;                                                                       \
            n++;                                                                             \
        }                                                                                    \
        out[y * width + x] = n;                                                              \
    }
MANDELBROT(mandelbrot_float, float)
#ifdef WITH_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
MANDELBROT(mandelbrot_double, double)
#endif

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void histogram(__global const uchar *in, __global uint *out)
{
    __local uint bins[256];
    uint item = get_local_id(0);
    bins[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    __global const uchar *mine = in + get_group_id(0) * 16384;
    for (uint i = 0; i < 64; i++) atomic_inc(&bins[mine[i * 256 + item]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&out[item], bins[item]);
}

#define ROTATE(x, n) rotate((uint)(x), (uint)(32 - n))
__constant uint rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// The digest's first word of the eight bytes of a number, little-endian.
__kernel void sha256(__global uint *out)
{
    uint number = get_global_id(0);
    uint w[16] = {0};
    w[0] = as_uint(as_uchar4(number).wzyx);
    w[2] = 0x80000000;
    w[15] = 64;
    uint a = 0x6a09e667, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a;
    uint e = 0x510e527f, f = 0x9b05688c, g = 0x1f83d9ab, h = 0x5be0cd19;
    for (int i = 0; i < 64; i++) {
        if (i >= 16) {
            uint s0 = w[(i + 1) & 15], s1 = w[(i + 14) & 15];
            s0 = ROTATE(s0, 7) ^ ROTATE(s0, 18) ^ (s0 >> 3);
            s1 = ROTATE(s1, 17) ^ ROTATE(s1, 19) ^ (s1 >> 10);
            w[i & 15] += s0 + w[(i + 9) & 15] + s1;
        }
        uint t = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + bitselect(g, f, e) + rounds[i] + w[i & 15];
        uint u = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + bitselect(a, b, a ^ c);
        h = g; g = f; f = e; e = d + t;
        d = c; c = b; b = a; a = t + u;
    }
    out[number] = a + 0x6a09e667;
}

// A 5 x 5 filter with repeated edges.
__kernel void convolve(read_only image2d_t in, write_only image2d_t out, __constant float *weights)
{
    const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    int x = get_global_id(0), y = get_global_id(1);
    float4 sum = (float4)(0.0f);
    for (int j = -2; j <= 2; j++)
        for (int i = -2; i <= 2; i++)
            sum += weights[(j + 2) * 5 + i + 2] * read_imagef(in, sampler, (int2)(x + i, y + j));
    write_imagef(out, (int2)(x, y), sum);
}

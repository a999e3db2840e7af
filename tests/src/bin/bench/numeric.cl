// Linear algebra, sorting, transforms: what moves data about as much as it computes.

__kernel void gemm(__global const float *a, __global const float *b, __global float *c, uint n)
{
    uint x = get_global_id(0), y = get_global_id(1);
    float sum = 0.0f;
    for (uint k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}

// Tiles of 32 x 32 by groups of 32 x 8.
__kernel __attribute__((reqd_work_group_size(32, 8, 1)))
void transpose(__global const float *in, __global float *out, uint n)
{
    __local float tile[32][33];
    uint x = get_local_id(0), y = get_local_id(1), left = get_group_id(0) * 32, top = get_group_id(1) * 32;
    for (uint i = 0; i < 32; i += 8) tile[y + i][x] = in[(top + y + i) * n + left + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < 32; i += 8) out[(left + y + i) * n + top + x] = tile[x][y + i];
}

// A row each.
__kernel void spmv(__global const uint *starts, __global const uint *columns, __global const float *values,
                   __global const float *x, __global float *y)
{
    uint row = get_global_id(0);
    float sum = 0.0f;
    for (uint i = starts[row], end = starts[row + 1]; i < end; i++) sum += values[i] * x[columns[i]];
    y[row] = sum;
}

// Sorting by four bits at a time: groups of 256 have blocks of 1024 keys.
#define BLOCK 1024
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void sort_count(__global const uint *keys, __global uint *counts, uint shift)
{
    __local uint bins[16];
    uint item = get_local_id(0), group = get_group_id(0);
    if (item < 16) bins[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < BLOCK; i += 256) atomic_inc(&bins[keys[group * BLOCK + i] >> shift & 15]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < 16) counts[item * get_num_groups(0) + group] = bins[item];
}

// Sums of all before, by one group.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void sort_scan(__global uint *counts, uint total)
{
    __local uint sums[256];
    uint item = get_local_id(0), each = total / 256, first = item * each, sum = 0;
    for (uint i = 0; i < each; i++) sum += counts[first + i];
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < 256; step *= 2) {
        uint before = item >= step ? sums[item - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = sums[item] - sum;
    for (uint i = 0; i < each; i++) {
        uint here = counts[first + i];
        counts[first + i] = sum;
        sum += here;
    }
}

// Each digit's keys keep their order: the items' keys are neighbours, and items come one after the other.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void sort_move(__global const uint *keys, __global uint *sorted, __global const uint *counts, uint shift)
{
    __local ushort places[16 * 256];
    __local ushort sums[256];
    uint item = get_local_id(0), group = get_group_id(0);
    uint mine[BLOCK / 256];
    for (uint digit = 0; digit < 16; digit++) places[digit * 256 + item] = 0;
    for (uint i = 0; i < BLOCK / 256; i++) {
        mine[i] = keys[group * BLOCK + item * (BLOCK / 256) + i];
        places[(mine[i] >> shift & 15) * 256 + item]++;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Sums over all digits and items: 16 of them an item.
    ushort sum = 0;
    for (uint i = 0; i < 16; i++) sum += places[item * 16 + i];
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < 256; step *= 2) {
        ushort before = item >= step ? sums[item - step] : (ushort)0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = sums[item] - sum;
    for (uint i = 0; i < 16; i++) {
        ushort here = places[item * 16 + i];
        places[item * 16 + i] = sum;
        sum += here;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < BLOCK / 256; i++) {
        uint digit = mine[i] >> shift & 15;
        uint before = places[digit * 256];
        // Those of the same digit that this item has moved already count too.
        uint place = places[digit * 256 + item];
        for (uint j = 0; j < i; j++) place += (mine[j] >> shift & 15) == digit;
        sorted[counts[digit * get_num_groups(0) + group] + place - before] = mine[i];
    }
}

// 1024 points by a group of 256, radix 4.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void fft(__global const float2 *in, __global float2 *out, __global const float2 *turns)
{
    __local float2 data[1024];
    uint item = get_local_id(0), first = get_group_id(0) * 1024;
    float2 v[4];
    for (uint i = 0; i < 4; i++) v[i] = in[first + item + i * 256];
    for (uint size = 1; size < 1024; size *= 4) {
        uint at = item & (size - 1);
        for (uint i = 1; i < 4; i++) {
            float2 t = turns[i * at * (256 / size)];
            v[i] = (float2)(v[i].x * t.x - v[i].y * t.y, v[i].x * t.y + v[i].y * t.x);
        }
        float2 a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
        d = (float2)(d.y, -d.x);
        uint place = (item - at) * 4 + at;
        data[place] = a + c;
        data[place + size] = b + d;
        data[place + 2 * size] = a - c;
        data[place + 3 * size] = b - d;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < 4; i++) v[i] = data[item + i * 256];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = 0; i < 4; i++) out[first + item + i * 256] = v[i];
}

// Steps until 1: neighbours take very different numbers of them.
__kernel void collatz(__global uint *out)
{
    uint n = get_global_id(0) + 1, steps = 0;
    while (n != 1) {
        n = n & 1 ? n * 3 + 1 : n >> 1;
        steps++;
    }
    out[get_global_id(0)] = steps;
}

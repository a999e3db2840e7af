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

kernel void scalar_unwritten(global int *p) {
    int x;
    if (p[128] == 99)
        x = 1;
    p[get_global_id(0)] = x;  // scalar_unwritten
}

kernel void pointee_unwritten(global int *p) {
    int x;
    int *to = &x;
    if (p[128] == 99)
        *to = 1;
    p[get_global_id(0)] = *to + 1;  // pointee_unwritten
}

kernel void member_unwritten(global int *p) {
    struct {
        char a;
        int b;
    } s;
    s.a = 1;
    if (p[128] == 99)
        s.b = 2;
    p[get_global_id(0)] = s.a + s.b;  // member_unwritten
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
    int own = t[i];
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
        p[g] |= own == i ? 2 : 4;
}

// Images. The image of each is 128 x 2 texels.

kernel void image_write(write_only image2d_t im) {
    int i = get_global_id(0);
    write_imagef(im, (int2)(i + 1, 1), (float4)(i));  // image_write
}

kernel void image_read(read_only image2d_t im, global int *p) {
    int i = get_global_id(0);
    p[i] = (int)read_imagef(im, (int2)(i, -1)).x;  // image_read
}

constant sampler_t none = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
constant sampler_t linear = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_LINEAR;
constant sampler_t edge = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
constant sampler_t border = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR;
constant sampler_t repeat = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_NEAREST;

kernel void image_none(read_only image2d_t im, global int *p) {
    int i = get_global_id(0);
    p[i] = (int)read_imagef(im, none, (int2)(2 * i, 0)).x;  // image_none
}

kernel void image_none_float(read_only image2d_t im, global int *p) {
    int i = get_global_id(0);
    p[i] = (int)read_imagef(im, none, (float2)(i - 0.5f, 0.5f)).x;  // image_none_float
}

kernel void image_sampler(read_only image2d_t im, global int *p, sampler_t sampler) {
    int i = get_global_id(0);
    p[i] = (int)read_imagef(im, sampler, (float2)(i + 0.5f, 2.5f)).x;  // image_sampler
}

kernel void image_layers(write_only image2d_array_t im) {
    int i = get_global_id(0);
    write_imagef(im, (int4)(i & 7, i >> 3 & 1, i >> 4, 0), (float4)(i));  // image_layers
}

kernel void image_race(write_only image2d_t im) {
    int i = get_global_id(0);
    write_imagef(im, (int2)(i / 2, 0), (float4)(i + 1));  // image_race
}

kernel void image_fence(read_write image2d_t im, global int *p) {
    int i = get_global_id(0), group = i - get_local_id(0);
    write_imagef(im, (int2)(i, 0), (float4)(i + 1));
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    p[i] = (int)read_imagef(im, (int2)(group + 63 - get_local_id(0), 0)).x;  // image_fence
}

kernel void image_unwritten(write_only image2d_t im, int n) {
    float a[16];
    for (int i = 0; i < n; i++)
        a[i] = i * n;
    write_imagef(im, (int2)(get_global_id(0), 0), (float4)(a[get_global_id(0) & 15]));  // image_unwritten
}

// Nothing is wrong here: samplers bring coordinates into the image, linear filters reach over its edge, barriers order.
kernel void image_right(read_write image2d_t im, read_only image2d_t from, global int *p, sampler_t sampler) {
    int i = get_global_id(0), group = i - get_local_id(0);
    float4 sum = read_imagef(from, edge, (int2)(i - 5, 9)) + read_imagef(from, border, (float2)(i + 100.0f, -3.0f)) +
                 read_imagef(from, repeat, (float2)(i - 0.25f, 7.25f)) + read_imagef(from, linear, (float2)(i, 0.25f)) +
                 read_imagef(from, sampler, (float2)(i - 300.0f, 1.5f)) + read_imagef(from, (int2)(i, 1));
    write_imagef(im, (int2)(i, 0), (float4)(i + (sum.x < 0)));
    write_imagef(im, (int2)(0, 1), (float4)(get_image_width(im)));
    barrier(CLK_IMAGE_MEM_FENCE);
    p[i] = (int)read_imagef(im, (int2)(group + 63 - get_local_id(0), 0)).x;
}

// The same kernel with several buffers and sub-buffers.
kernel void sub_buffer(global int *p, global int *q) {
    int i = get_global_id(0);
    if (i == 5)
        p[i + 64] = q[0];  // sub_buffer
}

kernel void sub_before(global int *p) {
    if (get_global_id(0) == 5)
        p[-2] = 1;  // sub_before
}

// The last group reads what the others have written: `order` and `scope` of the counter decide whether it may.
#define LAST_GROUP(name, order, scope) \
    kernel void name(global int *p) { \
        local int last; \
        if (get_local_id(0) == 0) { \
            p[1 + get_group_id(0)] = get_group_id(0) + 5; \
            volatile global atomic_int *done = (volatile global atomic_int *)p; \
            last = atomic_fetch_add_explicit(done, 1, order, scope) == get_num_groups(0) - 1; \
        } \
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); \
        if (last && get_local_id(0) == 1) { \
            int sum = 0; \
            for (int i = 0; i < get_num_groups(0); i++) \
                sum += p[1 + i]; \
            p[64] = sum; \
        } \
    }

LAST_GROUP(last_group, memory_order_acq_rel, memory_scope_device)
LAST_GROUP(last_group_relaxed, memory_order_relaxed, memory_scope_device)  // last_group_relaxed
LAST_GROUP(last_group_narrow, memory_order_acq_rel, memory_scope_work_group)  // last_group_narrow

// One work-item hands a word in local memory to the others of its group.
kernel void handed_over(global int *p) {
    local atomic_int flag;
    local int word;
    if (get_local_id(0) == 0)
        atomic_init(&flag, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        word = p[128];
        atomic_store_explicit(&flag, 1, memory_order_release, memory_scope_work_group);
    } else if (atomic_load_explicit(&flag, memory_order_acquire, memory_scope_work_group)) {
        p[get_global_id(0)] = word;
    }
}

// The same with fences around operations that order nothing themselves. (clang 22 makes every atomic load and store of a source
// one that orders, whatever it asks for.)
kernel void handed_over_by_fences(global int *p) {
    local atomic_int flag;
    local int word;
    if (get_local_id(0) == 0)
        atomic_init(&flag, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        word = p[128];
        atomic_work_item_fence(CLK_LOCAL_MEM_FENCE, memory_order_release, memory_scope_work_group);
        atomic_fetch_add_explicit(&flag, 1, memory_order_relaxed, memory_scope_work_group);
    } else if (atomic_fetch_add_explicit(&flag, 0, memory_order_relaxed, memory_scope_work_group)) {
        atomic_work_item_fence(CLK_LOCAL_MEM_FENCE, memory_order_acquire, memory_scope_work_group);
        p[get_global_id(0)] = word;
    }
}

kernel void handed_over_relaxed(global int *p) {
    local atomic_int flag;
    local int word;
    if (get_local_id(0) == 0)
        atomic_init(&flag, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        word = p[128];
        atomic_fetch_add_explicit(&flag, 1, memory_order_relaxed, memory_scope_work_group);
    } else if (atomic_fetch_add_explicit(&flag, 0, memory_order_relaxed, memory_scope_work_group)) {
        p[get_global_id(0)] = word;  // handed_over_relaxed
    }
}

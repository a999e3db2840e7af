// Kernels that count what is not zero, and leave other values for the next; see `initialize_memory.rs`.

#ifndef cl_khr_initialize_memory
#error no macro
#endif

typedef struct { char tag; long wide; float4 vector; short tail; } mixed;

// Fills what the device has of local memory with ones, for others to find.
kernel void fill(local uint *all, uint count, global uint *to)
{
    for (uint i = get_local_id(0); i < count; i += get_local_size(0))
        all[i] = ~0u - i;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint own[64];
    for (uint i = 0; i < 64; i++)
        own[i] = ~all[(i * 7 + to[0]) % count];
    to[1 + get_global_id(0)] = own[to[0] & 63] | 1;
}

kernel void variables(global uint *wrong, int where)
{
    local uchar bytes[301];
    local uint words[64];
    local float4 vectors[9];
    local ulong wide[5];
    local mixed structure;
    local int one;
    uint id = (get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0);
    uint size = get_local_size(0) * get_local_size(1) * get_local_size(2);
    uint found = one;
    for (uint i = id; i < 301; i += size) found |= bytes[i];
    for (uint i = id; i < 64; i += size) found |= words[i];
    for (uint i = id; i < 9; i += size) found |= any(as_uint4(vectors[i]) != 0);
    for (uint i = id; i < 5; i += size) found |= wide[i] != 0;
    found |= structure.tag | (structure.wide != 0) | structure.tail | any(as_uint4(structure.vector) != 0);
    if (found) atomic_inc(&wrong[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < 301; i += size) bytes[i] = 0x55;
    for (uint i = id; i < 64; i += size) words[i] = ~i;
    for (uint i = id; i < 9; i += size) vectors[i] = (float4)(i + 1);
    for (uint i = id; i < 5; i += size) wide[i] = ~0ul;
    if (id == 0) { structure.tag = 1; structure.wide = 2; structure.vector = (float4)(3.0f); structure.tail = 4; one = -1; }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (where >= 0) wrong[1] = bytes[where] + words[where & 63] + one + structure.tail;
}

kernel void arguments(global uint *wrong, local uchar *bytes, uint byte_count, local uint *words, uint word_count, local ulong *unused)
{
    local ushort fixed[17];
    uint id = get_local_id(0), size = get_local_size(0);
    uint found = 0;
    for (uint i = id; i < byte_count; i += size) found |= bytes[i];
    for (uint i = id; i < word_count; i += size) found |= words[i];
    for (uint i = id; i < 17; i += size) found |= fixed[i];
    if (found) atomic_inc(&wrong[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < byte_count; i += size) bytes[i] = ~i;
    for (uint i = id; i < word_count; i += size) atomic_or(&words[i], 0x80000001u);
    for (uint i = id; i < 17; i += size) fixed[i] = 99;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id == 0) wrong[1] = bytes[byte_count / 2] + words[word_count / 2] + fixed[byte_count % 17];
}

// Only one store, which a compiler may take for the value at any time.
kernel void stored_once(global uint *wrong)
{
    local uint once;
    if (once) atomic_inc(&wrong[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) once = 7;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (once != 7) atomic_inc(&wrong[0]);
}

__attribute__((noinline)) void change(uint *values, uint count, uint by)
{
    for (uint i = 0; i < count; i++) values[i] += by + i;
}

uint in_function(uint way)
{
    uint own[20];
    int kept;
    if (way > 1000) { own[way % 20] = 3; kept = 5; }
    return own[way % 7] | kept;
}

// `way` is 0, which no compiler knows.
kernel void privates(global uint *wrong, uint way)
{
    uint id = get_global_id(0);
    int scalar; float real; long wide; char8 vector; mixed structure; global uint *pointer;
    uint table[100]; uchar bytes[333]; ushort few[3]; ulong large[700];
    if (way) { scalar = 3; real = 2.0f; wide = 4; vector.s3 = 7; structure.tail = 9; pointer = wrong; table[way % 100] = 1; }
    uint found = scalar | as_uint(real) | wide | any(vector != (char8)0) | structure.tail
               | (structure.wide != 0) | structure.tag | any(as_uint4(structure.vector) != 0) | (pointer != 0);
    for (uint i = 0; i < 100; i++) found |= table[(i + way) % 100];
    for (uint i = 0; i < 333; i++) found |= bytes[(i * 2 + way) % 333];
    for (uint i = 0; i < 3; i++) found |= few[(i + way) % 3];
    for (uint i = 0; i < 700; i++) found |= large[(i * 3 + way) % 700] != 0;
    found |= in_function(id + way);
    change(table, 100, id + way);
    for (uint i = 0; i < 100; i++) found |= table[(i + way) % 100] != (i + way) % 100 + id;
    for (uint i = 0; i < 333; i++) bytes[(i * 2 + way) % 333] = ~i;
    for (uint i = 0; i < 700; i++) large[(i * 3 + way) % 700] = ~0ul;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (found) atomic_inc(&wrong[0]);
    wrong[1] = bytes[way] + (uint)large[way];
}

#ifdef ENQUEUES
kernel void enqueues(queue_t queue, global uint *wrong, uint bytes)
{
    wrong[2] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(64, 16), ^(local void *memory) {
        local uchar *all = memory;
        uint found = 0;
        for (uint i = get_local_id(0); i < bytes; i += get_local_size(0)) found |= all[i];
        if (found) atomic_inc(&wrong[0]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = get_local_id(0); i < bytes; i += get_local_size(0)) all[i] = 1 + i;
        barrier(CLK_LOCAL_MEM_FENCE);
        wrong[1] = all[bytes / 2];
    }, bytes);
}
#endif

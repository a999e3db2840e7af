// Work-groups of one work-item, as programs take them that ask for a processor.

// Looks for keys with zeros in their digest, as password crackers do: what is found is noted behind its number.
__kernel void search(__global uint *found, uint keys, uint mask)
{
    uint first = get_global_id(0) * keys;
    for (uint i = 0; i < keys; i++) {
        uint a = 0x67452301u ^ (first + i), b = 0xefcdab89u, c = 0x98badcfeu, d = 0x10325476u;
        for (uint round = 1; round <= 32; round++) {
            uint mixed = a + ((b & c) | (~b & d)) + round * 0x9e3779b9u + first + i;
            a = d; d = c; c = b;
            b += rotate(mixed, 7u);
        }
        if ((b & mask) == 0) {
            uint at = atomic_inc(found);
            if (at < 1023) found[at + 1] = first + i;
        }
    }
}

// Sorts rows of 64 keys in local memory.
__kernel void sort_rows(__global const uint *in, __global uint *out)
{
    __local uint row[64];
    size_t first = get_group_id(0) * 64;
    for (uint i = 0; i < 64; i++) row[i] = in[first + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint size = 2; size <= 64; size *= 2)
        for (uint step = size / 2; step > 0; step /= 2)
            for (uint i = 0; i < 64; i++) {
                uint other = i ^ step;
                if (other > i && (row[i] > row[other]) == ((i & size) == 0)) {
                    uint kept = row[i];
                    row[i] = row[other];
                    row[other] = kept;
                }
            }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < 64; i++) out[first + i] = row[i];
}

//! options -cl-std=CL3.0
//! range 1 2 1 1 2 1 1 0 0 0
//! buffer 00000000000000000000000000000000
//! buffer 0000000000000000
//! buffer 0000000000000000000000000000000000000000000000000000000000000000
//! value 00000000
//! expect 0
//! result 00000000000000000000000000000000
//! result 0000000003000000
//! result 0000000000000000000000000000000000000000000000000000000000000000
// A lock that work-items of a group wait for; behind it a loop that has two entries.
kernel void k(global ulong *out, volatile global uint *lock, global const uint *in, uint n)
{
    uint i = get_global_id(0);
    bool done = false;
    while (!done) {
        if (atomic_cmpxchg(lock, 0u, 1u) == 0u) {
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            lock[1] += i + 1;
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            atomic_xchg(lock, 0u);
            done = true;
        }
    }
    int fuel = 3;
    if ((n & 3u) == 1u)
        goto inner;
    while (fuel > 0 && (in[0] & 3u) == 1u) {
        fuel--;
inner:
        if ((in[0] & 1u) != 0u && fuel > 0) {
            fuel--;
            goto inner;
        }
    }
    out[i] = 0;
}

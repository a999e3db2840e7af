//! seed 2779088158806, program 87
//! options -cl-std=CL2.0
//! range 1 1 1 1 1 1 1 0 0 0
//! value 40000000
//! buffer 00000000000000000000000000000000
//! buffer 0000000000000000
//! expect 0
//! result 00000000000000000000000000000000
//! result 0000000000000000
// What a branch computes that leads out of a loop, and is needed after it.
kernel void k(uint v2, global ulong *v4, volatile global uint *v5)
{
    ulong v6 = get_global_id(0);
    int v9 = 0;
    ulong v11 = 0UL;
    long v12 = (0L);
    for (int v10 = 0; ((int)((v2 * ((uint)get_num_groups(2))) & 1u)); v10 += 0) {
        v12 = ((long)(((int)((uint)(v11))) ? 1 : 0));
        {
            uint value = 0u;
            bool done = false;
            while (!done) {
                if (atomic_cmpxchg(v5, 0u, 1u) == 0u) {
                    mem_fence(CLK_GLOBAL_MEM_FENCE);
                    v5[0] += value;
                    mem_fence(CLK_GLOBAL_MEM_FENCE);
                    atomic_xchg(v5, 0u);
                    done = true;
                }
            }
        }
        v9 = ((int)((uint)(v12)));
        v11 += 1UL;
    }
    (*v4) += ((ulong)(v9));
}

//! options -cl-std=CL1.2 -cl-opt-disable
//! range 1 3 1 1 3 1 1 0 0 0
//! buffer 000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
//! value 40000000
//! expect 0
//! result 010000000000000001000000000000000100000000000000000000000000000000000000000000000000000000000000
typedef union { int4 f0; int f1[4]; } S0;
typedef struct { short f0; ulong f1; ulong f2; S0 f3; } S1;
kernel void k(global ulong *v0, uint v2)
{
    ulong v6 = get_global_id(0);
    ulong v9 = 0UL;
    v9 = (((ulong)(0u < ((uint)((uchar)((int)(v6)))))) & (((ulong)(v2)) << ((int)(v6))));
    v9 = ((v9 * 31UL) + 1UL);
    v9 = (1UL / (v9 | 1UL));
    v0[v6] = v9;
}

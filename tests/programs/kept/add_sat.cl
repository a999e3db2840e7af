//! options -cl-std=CL2.0
//! range 1 1 1 1 1 1 1 0 0 0
//! buffer 00000000000000000000000000000000
//! expect 0
//! result feffffffffffffff0000000000000000
kernel void k(global ulong *v0)
{
    ulong v4 = (0UL - get_global_offset(0));
    ulong v7 = 0UL;
    v7 ^= add_sat((v4 % (v4 | 1UL)), (~1UL));
    (*v0) = v7;
}

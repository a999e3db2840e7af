//! options -cl-std=CL1.2
//! range 1 2 1 1 2 1 1 0 0 0
//! buffer 00000000000000000000000000000000
//! buffer 00000000000000000000000000000000
//! expect 0
//! result ffffffffffffffffffffffffffffffff
//! result 00000000000000000000000000000000
constant uint g0[16] = { 0u, 4294967294u, 4294967284u, 8u, 1839963366u, 11u, 2147483647u, 12u, 2147483648u, 13u, 16u, 7u, 2147483646u, 0u, 13u, 4294967284u };
constant int g1[8] = { 15, 14, 15, 16384, (int)0x80000000u, 5, 1396386597, 10 };
kernel void k(global ulong *v0, global int *v5)
{
    ulong v7 = get_global_id(0);
    ulong v9 = 0UL;
    v9 = abs_diff(((ulong)(((uint)get_global_offset(0)) >= ((uint)(g1[((uint)(v5[v7]))])))), (~((ulong)(g0[((uint)get_group_id(0))]))));
    v0[v7] = v9;
}

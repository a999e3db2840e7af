//! options -cl-std=CL3.0 -cl-opt-disable
//! range 3 1 1 1 1 1 1 0 0 2147483648
//! buffer 00000000000000000000000000000000
//! buffer 00000000000000000000000000000000
//! expect 0
//! result 01000000000000000000000000000000
//! result 00000000000000000000000000000000
typedef struct { ushort f0; uint f1; int f2; uint f3[2]; int f4[2]; } S0;
constant int g0 = 0;
global float g1[16] = { (10.0f), (-15.0f), (-2.0f), (-16.0f), (-16.0f), (-8.0f), (1.0f), (-12.0f), (6.0f), (-1.0f), (-11.0f), (-7.0f), (9.0f), (9.0f), (-4.0f), (-4.0f) };
kernel void k(global ulong *v0, global uchar *v5)
{
    ulong v6 = (get_global_id(1) + 0UL);
    ulong v8 = 7UL;
    switch (0) {
    case 0: {
    }
    case 6: {
        v8 = (((ulong)(((((int)((*v5))) ? 0u : 1u) & 1u) != 0u)) & ((ulong4)(v6)).w);
        v8 &= 1UL;
    }
    case 1: {
        uint v12 = 0u;
        v8 = ((v8 * 31UL) + 0UL);
    }
    }
    char v16 = (char)(0);
    ulong v15 = 0UL;
    v8 = (v8 + ((ulong)((uchar)get_num_groups(0))));
    long v17 = (0L);
    uint v19 = 0u;
    v0[v6] = v8;
}

//! options -cl-std=CL3.0
//! range 1 1 1 1 1 1 1 0 0 0
//! buffer 00000000000000000000000000000000
//! buffer 00000000000000000000000000000000
//! expect 0
//! result 00000000000000000000000000000000
//! result 00000000000000000000000000000000
typedef struct { ushort f0; uchar f1[4]; uint f2; uint f3[2]; } S0;
kernel void k(global S0 *v4, global int *v5)
{
    ulong v8 = 0UL;
    v8 = (1UL + 1UL);
    v4->f0 = (ushort)1;
    v8 = (((ulong)((*v5))) % (v8 | 1UL));
    S0 *v14 = ((S0 *)(v4));
    (v14 + (((uint)(v8)) % 2u))->f0 = (ushort)0;
}

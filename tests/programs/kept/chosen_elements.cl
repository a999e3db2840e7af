//! options -cl-std=CL3.0
//! range 1 3 1 1 3 1 1 0 0 0
//! buffer 0000000000000000000000000000000000000000000000000000000000000000
//! buffer 000080bfffff0000000000400000c0c0
//! buffer 000080400f000000000070c1000080bf
//! expect 0
//! result 0200000000000000020000000000000002000000000000000000000000000000
//! result 000080bfffff0000000000400000c0c0
//! result 000080400f000000000070c1000080bf
typedef struct { int f0; } S0;
typedef struct { float f0; ushort f1; float f2; } S1;
kernel void k(global ulong *v0, global S1 *v4, global S1 *v5)
{
    local uint v8[28];
    local S0 v14[7];
    ulong v6 = get_global_id(0);
    uint v7 = ((uint)get_local_id(0));
    (&v8[0])[v7] = 0u;
    ulong v9 = 1UL;
    uint *v10 = ((uint *)0);
    if (((0.0f) >= ((float)((int)((uint)((long)(get_local_id(0) + 1UL))))))) {
        v10 = ((uint *)(&v8[0]));
    }
    if ((v10 != ((uint *)0))) {
        v9 *= (((ulong)((int)((uint)((int)((*v10)))))) / ((ulong)((*v10))));
    }
    S1 v11 = (*v5);
    S0 v15 = { ((int)((uint)((int)(v6)))) };
    v14[v7] = v15;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    uint v16 = (((uint)((int)((v4 + (rotate(1UL, ((ulong)((int)(v11.f2)))) % 2UL))->f0))) & 1u);
    v9 = (v9 + ((ulong)(v14[v16].f0)));
    v0[v6] = v9;
}

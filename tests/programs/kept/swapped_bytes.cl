//! options -cl-std=CL3.0
//! range 1 8 1 1 8 1 1 0 0 0
//! buffer 00000000000000000000000000000000
//! expect 0
//! result 00000001000200030004000500060007
kernel void k(global ushort *v4)
{
    ulong v6 = get_global_id(0);
    v4[v6] = rotate(((ushort)(v6)), ((ushort)get_local_size(0)));
}

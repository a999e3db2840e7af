//! options -cl-std=CL3.0
//! range 3 1 1 1 1 1 1 0 0 0
//! buffer 00000000000000000000000000000000
//! expect 0
//! result 5e000000000000000000000000000000
kernel void k(global ulong *v0)
{
    ulong v9 = 0UL;
    v9 = get_global_id(0);
    ulong v11 = ((ulong)((char)((int)32u)));
    for (long v10 = (2L); ((int)(v10)); v10 -= (1L)) {
        v9 = (18446744073709551602UL % (v9 | 1UL));
        v9 = ((v9 * 31UL) + v11);
    }
    (*v0) = v9;
}

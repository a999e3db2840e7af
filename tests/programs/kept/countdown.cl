//! options -cl-std=CL3.0
//! range 1 4 1 1 4 1 1 0 0 0
//! buffer ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
//! value 00000000
//! expect 0
//! result 0000000000000000000000000000000000000000000000000000000000000000
// A value that lanes take out of a loop is counted down by the lane that stays.
kernel void k(global ulong *out, uint zero)
{
    ulong id = get_global_id(0);
    ulong n = get_local_size(0) | zero;
    int left = 6;
again:
    if ((convert_uint(id) == 8u || convert_uint(id) == 8u || convert_uint(id) == 2u || convert_uint(id) == 8u) && left > 0) {
        left -= 1;
        goto again;
    }
    do {
        if (n != id && left > 0)
            left -= 1;
    } while ((n & 12) != 0 && left > 0);
    out[id] = left;
}

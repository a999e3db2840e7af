// Correctly rounded division in integers, for devices whose own is not (lower_builtins calls these).

#define DIVIDE(type, uint_type, bits, fraction, biggest, chunk)                                                        \
    type OVERLOAD __pumice_divide(type x, type y)                                                                      \
    {                                                                                                                  \
        const uint_type hidden = (uint_type)1 << fraction, infinity = (uint_type)biggest << fraction;                  \
        const uint_type magnitude = ((uint_type)1 << (bits - 1)) - 1, quiet = hidden >> 1;                             \
        uint_type ux = AS(uint_type, x), uy = AS(uint_type, y), ax = ux & magnitude, ay = uy & magnitude;              \
        uint_type sign = (ux ^ uy) & ~magnitude;                                                                       \
        if (ax > infinity || ay > infinity)                                                                            \
            return AS(type, (ax > infinity ? ux : uy) | quiet);                                                        \
        if (ax == infinity || ay == 0)                                                                                 \
            return AS(type, (ax == infinity ? ay == infinity : ax == 0) ? infinity | quiet : sign | infinity);         \
        if (ay == infinity || ax == 0)                                                                                 \
            return AS(type, sign);                                                                                     \
        int ex = (int)(ax >> fraction), ey = (int)(ay >> fraction);                                                    \
        uint_type mx = ax & (hidden - 1), my = ay & (hidden - 1);                                                      \
        if (ex == 0) {                                                                                                 \
            int lead = (int)clz((ulong)mx) - (63 - fraction);                                                          \
            mx <<= lead;                                                                                               \
            ex = 1 - lead;                                                                                             \
        }                                                                                                              \
        if (ey == 0) {                                                                                                 \
            int lead = (int)clz((ulong)my) - (63 - fraction);                                                          \
            my <<= lead;                                                                                               \
            ey = 1 - lead;                                                                                             \
        }                                                                                                              \
        mx |= hidden;                                                                                                  \
        my |= hidden;                                                                                                  \
        int e = ex - ey + biggest / 2;                                                                                 \
        if (mx < my) {                                                                                                 \
            mx <<= 1;                                                                                                  \
            e -= 1;                                                                                                    \
        }                                                                                                              \
        /* Three bits more than the result has, the last of them for all that follow. */                               \
        uint_type q = 1, r = mx - my;                                                                                  \
        for (int left = fraction + 3; left > 0; left -= chunk) {                                                       \
            int by = left < chunk ? left : chunk;                                                                      \
            uint_type wide = r << by, part = wide / my;                                                                \
            q = (q << by) + part;                                                                                      \
            r = wide - part * my;                                                                                      \
        }                                                                                                              \
        q |= r != 0;                                                                                                   \
        if (e >= biggest)                                                                                              \
            return AS(type, sign | infinity);                                                                          \
        int drop = e >= 1 ? 3 : 4 - e > fraction + 5 ? fraction + 5 : 4 - e;                                           \
        uint_type kept = q >> drop, rest = q & (((uint_type)1 << drop) - 1), half_bit = (uint_type)1 << (drop - 1);    \
        kept += rest > half_bit || (rest == half_bit && (kept & 1));                                                   \
        return AS(type, sign | (kept + (e >= 1 ? (uint_type)(e - 1) << fraction : 0)));                                \
    }

DIVIDE(float, uint, 32, 23, 255, 8)
DIVIDE(double, ulong, 64, 52, 2047, 11)

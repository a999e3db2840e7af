// Fused multiply-add for devices that do not have it.

// The product of two floats is exact in double precision; the sum is rounded to odd, so that the rounding to single
// precision gives the right result.
float OVERLOAD fma(float x, float y, float z)
{
    double p = (double)x * (double)y, c = (double)z;
    double s = p + c;
    double t = s - p;
    double e = (p - (s - t)) + (c - t);
    ulong u = AS(ulong, s);
    if ((u & 1) == 0 && (e > 0.0 || e < 0.0))
        u += (e > 0.0) == (s > 0.0) ? 1 : -1;
    return (float)AS(double, u);
}

// Halves of a significand: 26 bits each, so that their products are exact.
static double upper(double x)
{
    return AS(double, (AS(ulong, x) + 0x4000000) & ~0x7ffffffUL);
}

// x * y - p, p the rounded product: exact where that neither overflows nor is smaller than 2^-968 (Dekker, 1971).
static double product_error(double x, double y, double p)
{
    double xh = upper(x), xl = x - xh, yh = upper(y), yl = y - yh;
    return ((xh * yh - p) + xh * yl + xl * yh) + xl * yl;
}

// For the functions of libclc: exact where the result is a double, otherwise it can be wrong by 2^-52 of an ulp more than
// half of one. Where the product is tiny or the operands huge, it is a product and a sum.
double OVERLOAD __pumice_fma_near(double x, double y, double z)
{
    double p = x * y, s = p + z, t = s - p;
    double rest = (p - (s - t)) + (z - t);
    double r = s + (rest + product_error(x, y, p));
    return r == r ? r : s;
}

// The significand moved by one unit, away from zero if rest has the sign of x, else towards it.
static double moved(double x, double rest)
{
    return AS(double, AS(ulong, x) + (ulong)((AS(long, x) ^ AS(long, rest)) >> 63 | 1));
}

// Of operands scaled by powers of two the product in two parts, the addend to the first of them, and both rests summed and
// rounded to odd: then the last sum is rounded as the exact one (Boldo and Melquiond, "Emulation of a FMA and correctly
// rounded sums", 2008). No branches and no integers of 128 bits: on llvmpipe all of it is compiled at each call.
double OVERLOAD fma(double x, double y, double z)
{
    const ulong fourth_exponents = 0x7fc0000000000000UL, top = 0x7fd0000000000000UL, one = 0x0010000000000000UL;
    // Factors are brought to 0.5 to 8, subnormal ones to multiples of 2^-52; `down` is the root of what does that.
    ulong ex = AS(ulong, x) & fourth_exponents, ey = AS(ulong, y) & fourth_exponents, middle = (ex + ey) >> 1;
    double down = AS(double, top - middle), up = AS(double, middle + one);
    double sx = x * AS(double, top - ex), sy = y * AS(double, top - ey), sz = z * down * down;
    // What is far below the last bit of the product counts by its sign only.
    sz = (fabs(sz) < 0x1p-300) & (z != 0.0) ? copysign(0x1p-300, z) : sz;

    double p = sx * sy, high = p + sz, t = high - p;
    double a = (p - (high - t)) + (sz - t), b = product_error(sx, sy, p);
    double low = a + b;
    t = low - a;
    double rest = (a - (low - t)) + (b - t), odd = moved(low, rest);
    low = (rest != 0.0) & ((AS(ulong, low) & 1) == 0) ? odd : low;
    // Not where low is zero, which could change the sign of a zero, or NaN since an operand is infinite.
    double r = (low < 0.0) | (low > 0.0) ? high + low : high;

    // Scaling back rounds a subnormal result for the second time. If it loses one bit, that must be zero unless the exact
    // result has it; if more, the last one stands for all that was lost.
    double lost = low - (r - high), size = fabs(r * up);
    bool loses_one = size >= down * 0x1p-1023, last = (AS(ulong, r) & 1) != 0;
    double fitting = moved(r, lost);
    r = (size < down * 0x1p-1022) & (lost != 0.0) & (last == loses_one) ? fitting : r;
    r = r * up * up;
    // An addend that the product cannot change; it may be infinite here where the sum is not.
    return fabs(sz) > fabs(p) * 0x1p130 ? z : r;
}

// Single precision where there is no double: the same in 64 bits.
float OVERLOAD __pumice_fma(float x, float y, float z)
{
    uint ux = AS(uint, x), uy = AS(uint, y), uz = AS(uint, z);
    uint ax = ux & 0x7fffffff, ay = uy & 0x7fffffff, az = uz & 0x7fffffff;
    if (ax >= 0x7f800000u || ay >= 0x7f800000u || ax == 0 || ay == 0)
        return x * y + z;
    if (az >= 0x7f800000u)
        return z;
    if (az == 0)
        return x * y;
    int ex = (int)(ax >> 23), ey = (int)(ay >> 23), ez = (int)(az >> 23);
    uint mx = ax & 0x7fffff, my = ay & 0x7fffff, mz = az & 0x7fffff;
    int nx = ex ? 0 : (int)clz((ulong)mx) - 40, ny = ey ? 0 : (int)clz((ulong)my) - 40;
    int nz = ez ? 0 : (int)clz((ulong)mz) - 40;
    mx = (mx << nx) | 0x800000;
    my = (my << ny) | 0x800000;
    mz = (mz << nz) | 0x800000;
    ex = ex ? ex : 1 - nx;
    ey = ey ? ey : 1 - ny;
    ez = ez ? ez : 1 - nz;

    // Leading bits at 60 or 61 of 64; what is shifted out of the smaller goes into its last bit.
    ulong p = ((ulong)mx * my) << 14, a = (ulong)mz << 38;
    int pe = ex + ey - 314, ae = ez - 188;
    int e = pe > ae ? pe : ae, shift = e - (pe > ae ? ae : pe);
    ulong small = pe > ae ? a : p;
    small = shift > 63 ? 1 : (small >> shift) | ((small & (((ulong)1 << shift) - 1)) != 0);
    p = pe > ae ? p : small;
    a = pe > ae ? small : a;
    uint sign = (ux ^ uy) & 0x80000000u, other = uz & 0x80000000u;
    ulong sum;
    if (sign == other)
        sum = p + a;
    else {
        sum = p >= a ? p - a : a - p;
        sign = p >= a ? sign : other;
    }
    if (sum == 0)
        return 0.0f;

    // sum * 2^e with the leading bit at 63: the exponent of the result, biased.
    int lead = (int)clz(sum);
    sum <<= lead;
    int biased = e - lead + 63 + 127;
    if (biased > 254)
        return AS(float, sign | 0x7f800000u);
    int drop = biased >= 1 ? 40 : 41 - biased;
    ulong kept, half_bit = (ulong)1 << 63;
    if (drop > 63)
        kept = drop == 64 && sum > half_bit;
    else {
        ulong rest = sum << (64 - drop);
        kept = sum >> drop;
        kept += rest > half_bit || (rest == half_bit && (kept & 1));
    }
    return AS(float, sign | ((uint)kept + (biased >= 1 ? (uint)(biased - 1) << 23 : 0)));
}

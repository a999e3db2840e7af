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

// Integer arithmetic in 128 bits.
double OVERLOAD fma(double x, double y, double z)
{
    const ulong magnitude = 0x7fffffffffffffffUL, infinity = 0x7ff0000000000000UL, hidden = 1UL << 52;
    ulong ux = AS(ulong, x), uy = AS(ulong, y), uz = AS(ulong, z);
    ulong ax = ux & magnitude, ay = uy & magnitude, az = uz & magnitude;
    if (ax >= infinity || ay >= infinity || ax == 0 || ay == 0)
        return x * y + z;
    if (az >= infinity)
        return z;
    if (az == 0)
        return x * y;

    // Significands of 53 bits, and the exponents of their last bits.
    int ex = (int)(ax >> 52), ey = (int)(ay >> 52), ez = (int)(az >> 52);
    ulong mx = ax & (hidden - 1), my = ay & (hidden - 1), mz = az & (hidden - 1);
    if (ex == 0) {
        int n = (int)clz(mx) - 11;
        mx <<= n;
        ex = 1 - n;
    } else
        mx |= hidden;
    if (ey == 0) {
        int n = (int)clz(my) - 11;
        my <<= n;
        ey = 1 - n;
    } else
        my |= hidden;
    if (ez == 0) {
        int n = (int)clz(mz) - 11;
        mz <<= n;
        ez = 1 - n;
    } else
        mz |= hidden;
    ex -= 1075;
    ey -= 1075;
    ez -= 1075;

    // Product and addend with their leading bits at 125 to 126 of 128, as hi:lo * 2^e.
    mx <<= 10;
    my <<= 11;
    ulong phi = mul_hi(mx, my), plo = mx * my;
    int pe = ex + ey - 21;
    ulong zhi = mz << 10, zlo = 0;
    int ze = ez - 74;
    int e = pe > ze ? pe : ze;
    int shift = e - (pe > ze ? ze : pe);
    ulong hi = pe > ze ? zhi : phi, lo = pe > ze ? zlo : plo;
    ulong lost = 0;
    if (shift >= 128) {
        lost = hi | lo;
        hi = lo = 0;
    } else if (shift >= 64) {
        int n = shift - 64;
        lost = lo | (n ? hi << (64 - n) : 0);
        lo = hi >> n;
        hi = 0;
    } else if (shift > 0) {
        lost = lo << (64 - shift);
        lo = (lo >> shift) | (hi << (64 - shift));
        hi >>= shift;
    }
    lo |= lost != 0;
    if (pe > ze) {
        zhi = hi;
        zlo = lo;
    } else {
        phi = hi;
        plo = lo;
    }

    ulong sign = (ux ^ uy) & ~magnitude, zsign = uz & ~magnitude;
    if (sign == zsign) {
        lo = plo + zlo;
        hi = phi + zhi + (lo < plo);
    } else if (phi > zhi || (phi == zhi && plo >= zlo)) {
        lo = plo - zlo;
        hi = phi - zhi - (plo < zlo);
    } else {
        lo = zlo - plo;
        hi = zhi - phi - (zlo < plo);
        sign = zsign;
    }
    if ((hi | lo) == 0)
        return 0.0;

    // Leading bit to 127, the rest of lo into a sticky bit.
    if (hi == 0) {
        hi = lo;
        lo = 0;
        e -= 64;
    }
    int n = (int)clz(hi);
    if (n > 0) {
        hi = (hi << n) | (lo >> (64 - n));
        lo <<= n;
        e -= n;
    }
    hi |= lo != 0;
    int biased = e + 75 + 52 + 1023;
    if (biased < 1) {
        int by = 1 - biased;
        hi = by > 63 ? (ulong)1 : (hi >> by) | ((hi << (64 - by)) != 0);
    }
    ulong rest = hi & 0x7ff;
    hi >>= 11;
    hi += rest > 0x400 || (rest == 0x400 && (hi & 1));
    ulong bits = biased < 1 ? hi : ((ulong)(biased - 1) << 52) + hi;
    if (biased > 2046 || bits > infinity)
        bits = infinity;
    return AS(double, sign | bits);
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

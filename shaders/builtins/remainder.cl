// fmod, remainder and remquo in single precision: long division of the significands, exact whatever a device does
// with subnormals. (libclc's flushes them.)

// Remainder of |x| / |y|, both finite, y not zero, as a multiple of 2^(*exponent - 150); the low bits of the quotient go
// to *quotient, and y in the same unit to *scaled_y (where it does not fit, a number that is far from the remainder).
static uint divide_bits(uint x, uint y, uint *scaled_y, int *exponent, uint *quotient)
{
    int ex = (int)(x >> 23), ey = (int)(y >> 23);
    uint mx = (x & 0x7fffff) | (ex ? 0x800000 : 0), my = (y & 0x7fffff) | (ey ? 0x800000 : 0);
    ex = ex ? ex : 1;
    ey = ey ? ey : 1;
    int diff = ex - ey;
    *quotient = 0;
    if (diff < 0) {
        // Less than y; where it can be half of it or more, in units of x.
        int near_half = diff == -1;
        *scaled_y = near_half ? my << 1 : 0xffffffffu;
        *exponent = ex;
        return mx;
    }
    uint q = mx / my, r = mx - q * my;
    while (diff > 0) {
        // The remainder has 24 bits, so that eight more fit.
        int by = diff < 8 ? diff : 8;
        uint wide = r << by, part = wide / my;
        q = (q << by) + part;
        r = wide - part * my;
        diff -= by;
    }
    *quotient = q;
    *scaled_y = my;
    *exponent = ey;
    return r;
}

// r * 2^(exponent - 150); r has at most 24 bits, the exponent is that of a float.
static float compose(uint r, int exponent)
{
    if (r == 0)
        return 0.0f;
    int lead = (int)clz((ulong)r) - 40;
    if (exponent - lead >= 1)
        return AS(float, ((uint)(exponent - lead - 1) << 23) + (r << lead));
    return AS(float, r << (exponent - 1));
}

static bool special(uint ax, uint ay)
{
    return ax >= 0x7f800000u || ay > 0x7f800000u || ay == 0;
}

float OVERLOAD fmod(float x, float y)
{
    uint ax = AS(uint, x) & 0x7fffffff, ay = AS(uint, y) & 0x7fffffff;
    if (special(ax, ay))
        return AS(float, 0x7fc00000u);
    if (ax < ay)
        return x;
    uint scaled_y, quotient;
    int exponent;
    uint r = divide_bits(ax, ay, &scaled_y, &exponent, &quotient);
    return copysign(compose(r, exponent), x);
}

static float nearest_remainder(float x, float y, int *low_bits)
{
    uint ux = AS(uint, x), uy = AS(uint, y), ax = ux & 0x7fffffff, ay = uy & 0x7fffffff;
    *low_bits = 0;
    if (special(ax, ay))
        return AS(float, 0x7fc00000u);
    if (ay == 0x7f800000u || ax == 0)
        return x;
    uint scaled_y, quotient;
    int exponent;
    uint r = divide_bits(ax, ay, &scaled_y, &exponent, &quotient);
    uint other = scaled_y - r;
    uint sign = ux & 0x80000000u;
    if (r > other || (r == other && (quotient & 1))) {
        r = other;
        sign ^= 0x80000000u;
        quotient++;
    }
    int bits = (int)(quotient & 0x7f);
    *low_bits = ((ux ^ uy) >> 31) ? -bits : bits;
    return AS(float, AS(uint, compose(r, exponent)) | sign);
}

float OVERLOAD remainder(float x, float y)
{
    int bits;
    return nearest_remainder(x, y, &bits);
}

#define REMQUO(space)                                                                                                  \
    float OVERLOAD remquo(float x, float y, space int *quotient)                                                       \
    {                                                                                                                  \
        int bits;                                                                                                      \
        float r = nearest_remainder(x, y, &bits);                                                                      \
        *quotient = bits;                                                                                              \
        return r;                                                                                                      \
    }
REMQUO(__private)
REMQUO(__global)
REMQUO(__local)

// sinpi, cospi and tanpi with the signs of zero that the specification asks for, and atanpi of a double's minus zero.
//
// The polynomials interpolate sin(pi r) / r and (cos(pi r) - 1) / r^2 at the Chebyshev points of |r| <= 1/4.

static float OVERLOAD sin_part(float r)
{
    float t = r * r, p = 0x1.4bc85cp-4f;
    p = p * t - 0x1.32ca9ep-1f;
    p = p * t + 0x1.466bbap+1f;
    p = p * t - 0x1.4abbcep+2f;
    return p * t * r + 0x1.921fb6p+1f * r;
}

static float OVERLOAD cos_part(float r)
{
    float t = r * r, p = -0x1.a1e852p-6f;
    p = p * t + 0x1.e1ec72p-3f;
    p = p * t - 0x1.55d3c2p+0f;
    p = p * t + 0x1.03c1f0p+2f;
    p = p * t - 0x1.3bd3ccp+2f;
    return p * t + 1.0f;
}

static double OVERLOAD sin_part(double r)
{
    double t = r * r, p = -0x1.6c5b875d4e739p-16;
    p = p * t + 0x1.e8eed12ee00a3p-12;
    p = p * t - 0x1.e3074b4ff3058p-8;
    p = p * t + 0x1.50783485cbd83p-4;
    p = p * t - 0x1.32d2cce62ac22p-1;
    p = p * t + 0x1.466bc6775aad9p+1;
    p = p * t - 0x1.4abbce625be53p+2;
    return p * t * r + 0x1.921fb54442d18p+1 * r;
}

static double OVERLOAD cos_part(double r)
{
    double t = r * r, p = 0x1.1e745e5e09f6dp-18;
    p = p * t - 0x1.b6de8b8e9ba08p-14;
    p = p * t + 0x1.f9d3870871194p-10;
    p = p * t - 0x1.a6d1f2a086c90p-6;
    p = p * t + 0x1.e1f506891ae95p-3;
    p = p * t - 0x1.55d3c7e3cbff7p+0;
    p = p * t + 0x1.03c1f081b5ac4p+2;
    p = p * t - 0x1.3bd3cc9be45dep+2;
    return p * t + 1.0;
}

// |x| = quarter / 2 + r with |r| <= 1/4; the quarter modulo 4 counts half turns' halves. Numbers of 2^53 and above are
// even.
#define TRIGPI(type, huge, nan_bits, uint_type)                                                                        \
    static type OVERLOAD reduce_pi(type a, int *quarter)                                                               \
    {                                                                                                                  \
        type turns = a < (type)huge ? a - (type)2 * floor(a * (type)0.5) : (type)0;                                    \
        type q = rint(turns * (type)2);                                                                                \
        *quarter = (int)q & 3;                                                                                         \
        return turns - q * (type)0.5;                                                                                  \
    }                                                                                                                  \
    type OVERLOAD sinpi(type x)                                                                                        \
    {                                                                                                                  \
        type a = fabs(x);                                                                                              \
        if (!(a < (type)INFINITY))                                                                                     \
            return AS(type, (uint_type)nan_bits);                                                                      \
        int quarter;                                                                                                   \
        type r = reduce_pi(a, &quarter);                                                                               \
        type y = (quarter & 1) ? cos_part(r) : sin_part(r);                                                            \
        y = (quarter & 2) ? -y : y;                                                                                    \
        y = a == trunc(a) ? (type)0 : y;                                                                               \
        return AS(type, AS(uint_type, y) ^ (AS(uint_type, x) ^ AS(uint_type, a)));                                     \
    }                                                                                                                  \
    type OVERLOAD cospi(type x)                                                                                        \
    {                                                                                                                  \
        type a = fabs(x);                                                                                              \
        if (!(a < (type)INFINITY))                                                                                     \
            return AS(type, (uint_type)nan_bits);                                                                      \
        int quarter;                                                                                                   \
        type r = reduce_pi(a, &quarter);                                                                               \
        type y = (quarter & 1) ? -sin_part(r) : cos_part(r);                                                           \
        y = (quarter & 2) ? -y : y;                                                                                    \
        return y == (type)0 ? (type)0 : y;                                                                             \
    }                                                                                                                  \
    type OVERLOAD tanpi(type x)                                                                                        \
    {                                                                                                                  \
        type a = fabs(x);                                                                                              \
        if (!(a < (type)INFINITY))                                                                                     \
            return AS(type, (uint_type)nan_bits);                                                                      \
        int quarter;                                                                                                   \
        type r = reduce_pi(a, &quarter);                                                                               \
        type s = sin_part(r), c = cos_part(r), y = (quarter & 1) ? -c / s : s / c;                                     \
        /* Zero at whole numbers, infinite halfway between; negative where the whole number is odd. */                 \
        y = r != (type)0 ? y : (quarter & 1) ? (type)INFINITY : (type)0;                                               \
        y = r == (type)0 && (quarter & 2) ? -y : y;                                                                    \
        return AS(type, AS(uint_type, y) ^ (AS(uint_type, x) ^ AS(uint_type, a)));                                     \
    }

TRIGPI(float, 0x1p24f, 0x7fc00000u, uint)
TRIGPI(double, 0x1p53, 0x7ff8000000000000UL, ulong)

// libclc's compares x with |x| to find its sign, and takes minus zero for positive.
double OVERLOAD atan(double x);
double OVERLOAD atanpi(double x)
{
    return copysign(atan(fabs(x)) / 0x1.921fb54442d18p+1, x);
}

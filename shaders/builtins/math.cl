// Single and double precision functions that libclc does not define as functions.

// libclc asks: without this it flushes subnormal operands in its software routines.
bool __clc_fp16_subnormals_supported(void)
{
    return true;
}
bool __clc_fp32_subnormals_supported(void)
{
    return true;
}
bool __clc_fp64_subnormals_supported(void)
{
    return true;
}

#define COMMON(type, uint_type, int_type, bits_inf, sign)                                                              \
    type OVERLOAD fdim(type x, type y)                                                                                 \
    {                                                                                                                  \
        return x <= y ? (type)0 : x - y;                                                                               \
    }                                                                                                                  \
    /* Compared as integers: a device may take subnormal numbers for zero. */                                          \
    type OVERLOAD maxmag(type x, type y)                                                                               \
    {                                                                                                                  \
        uint_type a = AS(uint_type, x) & ~(uint_type)(sign), b = AS(uint_type, y) & ~(uint_type)(sign);                \
        if (a > (uint_type)(bits_inf) || b > (uint_type)(bits_inf))                                                    \
            return fmax(x, y);                                                                                         \
        return a > b || (a == b && AS(int_type, y) < 0) ? x : y;                                                       \
    }                                                                                                                  \
    type OVERLOAD minmag(type x, type y)                                                                               \
    {                                                                                                                  \
        uint_type a = AS(uint_type, x) & ~(uint_type)(sign), b = AS(uint_type, y) & ~(uint_type)(sign);                \
        if (a > (uint_type)(bits_inf) || b > (uint_type)(bits_inf))                                                    \
            return fmin(x, y);                                                                                         \
        return a < b || (a == b && AS(int_type, x) < 0) ? x : y;                                                       \
    }                                                                                                                  \
    type OVERLOAD round(type x)                                                                                        \
    {                                                                                                                  \
        type t = trunc(x);                                                                                             \
        type away = fabs(x - t) >= (type)0.5 ? (type)1 : (type)0;                                                      \
        return copysign(t + copysign(away, x), x);                                                                     \
    }                                                                                                                  \
    type OVERLOAD nextafter(type x, type y)                                                                            \
    {                                                                                                                  \
        int_type a = AS(int_type, x), b = AS(int_type, y);                                                             \
        int_type ma = a & ~(int_type)(sign), mb = b & ~(int_type)(sign);                                               \
        if (ma > (int_type)(bits_inf))                                                                                 \
            return x;                                                                                                  \
        if (mb > (int_type)(bits_inf))                                                                                 \
            return y;                                                                                                  \
        int_type i = a < 0 ? -ma : ma, j = b < 0 ? -mb : mb;                                                           \
        if (i == j)                                                                                                    \
            return y;                                                                                                  \
        i += j > i ? 1 : -1;                                                                                           \
        uint_type r = i < 0 ? (uint_type)(sign) | (uint_type)-i : (uint_type)i;                                        \
        if (i == 0)                                                                                                    \
            r = (uint_type)a & (uint_type)(sign);                                                                      \
        return AS(type, r);                                                                                            \
    }

COMMON(float, uint, int, 0x7f800000, 0x80000000)
COMMON(double, ulong, long, 0x7ff0000000000000L, 0x8000000000000000UL)

float OVERLOAD nan(uint code)
{
    return AS(float, 0x7fc00000u | (code & 0x3fffff));
}
double OVERLOAD nan(ulong code)
{
    return AS(double, 0x7ff8000000000000UL | (code & 0x7ffffffffffffUL));
}

// Correctly rounded square roots, one bit at a time: only for devices whose own are not.
float OVERLOAD sqrt(float x)
{
    uint u = AS(uint, x);
    if (u == 0x80000000u || u == 0 || u == 0x7f800000u || (u & 0x7fffffff) > 0x7f800000u)
        return x;
    if (u >> 31)
        return AS(float, 0x7fc00000u);
    int e = (int)(u >> 23);
    uint m = u & 0x7fffff;
    if (e == 0) {
        int n = (int)clz((ulong)m) - 40;
        m <<= n;
        e = 1 - n;
    } else
        m |= 0x800000;
    // An even exponent, and 25 or 26 bits of root: one or two more than the result has.
    e -= 150;
    ulong v = (ulong)m << ((e & 1) ? 27 : 26);
    e -= (e & 1) ? 27 : 26;
    ulong root = 0, bit = 1UL << 25;
    for (; bit; bit >>= 1) {
        ulong next = root | bit;
        if (next * next <= v)
            root = next;
    }
    // The root is never halfway: 2 * root + 1 squared is odd.
    int drop = 63 - (int)clz(root) - 23;
    ulong half_bit = 1UL << (drop - 1);
    uint r = (uint)((root + half_bit) >> drop);
    return AS(float, (uint)((e / 2 + drop + 150 - 1) << 23) + r);
}

double OVERLOAD sqrt(double x)
{
    ulong u = AS(ulong, x);
    const ulong infinity = 0x7ff0000000000000UL;
    if ((u << 1) == 0 || u == infinity || (u & 0x7fffffffffffffffUL) > infinity)
        return x;
    if (u >> 63)
        return AS(double, 0x7ff8000000000000UL);
    int e = (int)(u >> 52);
    ulong m = u & 0xfffffffffffffUL;
    if (e == 0) {
        int n = (int)clz(m) - 11;
        m <<= n;
        e = 1 - n;
    } else
        m |= 1UL << 52;
    e -= 1075;
    if (e & 1) {
        m <<= 1;
        e -= 1;
    }
    // Digit by digit: 54 bits of root, the last for rounding, of m * 2^54.
    ulong root = 0, rest = 0;
    for (int i = 0; i < 54; i++) {
        // The next two bits of m from bit 53 down; zeros after it.
        ulong two = i < 27 ? (m >> (52 - 2 * i)) & 3 : 0;
        rest = (rest << 2) | two;
        ulong trial = (root << 2) | 1;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1;
        }
    }
    ulong r = (root >> 1) + (root & 1);
    return AS(double, ((ulong)(e / 2 + 1075 - 27 + 1 - 1) << 52) + r);
}

float OVERLOAD rsqrt(float x)
{
    return 1.0f / sqrt(x);
}
double OVERLOAD rsqrt(double x)
{
    return 1.0 / sqrt(x);
}

// What is left of a number below it: less than one, and a zero of the number's sign.
#define FRACT(type, below_one, space)                                                                                  \
    type OVERLOAD fract(type x, space type *p)                                                                         \
    {                                                                                                                  \
        type n = floor(x), r = fmin(x - n, (type)below_one);                                                           \
        *p = n;                                                                                                        \
        if (__builtin_isnan(x))                                                                                        \
            return x;                                                                                                  \
        bool zero = x == (type)0 || __builtin_isinf(x);                                                                \
        return zero ? copysign((type)0, x) : r;                                                                        \
    }
FRACT(float, 0x1.fffffep-1f, __private)
FRACT(float, 0x1.fffffep-1f, __global)
FRACT(float, 0x1.fffffep-1f, __local)
FRACT(double, 0x1.fffffffffffffp-1, __private)
FRACT(double, 0x1.fffffffffffffp-1, __global)
FRACT(double, 0x1.fffffffffffffp-1, __local)

float OVERLOAD normalize(float x)
{
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}
double OVERLOAD normalize(double x)
{
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}

// half_ and native_ functions: the full ones meet their bounds. Those of native_ are for processors.
#define FORWARD1(prefix, name)                                                                                         \
    float OVERLOAD prefix##name(float x)                                                                               \
    {                                                                                                                  \
        return name(x);                                                                                                \
    }
float OVERLOAD powr(float, float);
#define FULL(name) float OVERLOAD name(float);
FULL(cos)
FULL(exp)
FULL(exp2)
FULL(exp10)
FULL(log)
FULL(log2)
FULL(log10)
FULL(sin)
FULL(tan)
FORWARD1(half_, cos)
FORWARD1(half_, exp)
FORWARD1(half_, exp2)
FORWARD1(half_, exp10)
FORWARD1(half_, log)
FORWARD1(half_, log2)
FORWARD1(half_, log10)
FORWARD1(half_, sin)
FORWARD1(half_, tan)
FORWARD1(half_, sqrt)
FORWARD1(half_, rsqrt)
float OVERLOAD half_powr(float x, float y)
{
    return powr(x, y);
}
FORWARD1(native_, cos)
FORWARD1(native_, exp)
FORWARD1(native_, exp2)
FORWARD1(native_, exp10)
FORWARD1(native_, log)
FORWARD1(native_, log2)
FORWARD1(native_, log10)
FORWARD1(native_, sin)
FORWARD1(native_, tan)
float OVERLOAD native_powr(float x, float y)
{
    return exp2(y * log2(x));
}
float OVERLOAD half_divide(float x, float y)
{
    return x / y;
}
float OVERLOAD half_recip(float x)
{
    return 1.0f / x;
}

// Pointers to generic memory: by way of a private copy, as libclc has the other spaces.
#define GENERIC(type)                                                                                                  \
    type OVERLOAD modf(type, __private type *);                                                                        \
    type OVERLOAD sin(type);                                                                                           \
    type OVERLOAD cos(type);                                                                                           \
    type OVERLOAD frexp(type, __private int *);                                                                        \
    type OVERLOAD lgamma_r(type, __private int *);                                                                     \
    type OVERLOAD remquo(type, type, __private int *);                                                                 \
    type OVERLOAD fract(type x, __generic type *p)                                                                     \
    {                                                                                                                  \
        type n, r = fract(x, &n);                                                                                      \
        *p = n;                                                                                                        \
        return r;                                                                                                      \
    }                                                                                                                  \
    type OVERLOAD modf(type x, __generic type *p)                                                                      \
    {                                                                                                                  \
        type n, r = modf(x, &n);                                                                                       \
        *p = n;                                                                                                        \
        return r;                                                                                                      \
    }                                                                                                                  \
    type OVERLOAD sincos(type x, __generic type *p)                                                                    \
    {                                                                                                                  \
        *p = cos(x);                                                                                                   \
        return sin(x);                                                                                                 \
    }                                                                                                                  \
    type OVERLOAD frexp(type x, __generic int *p)                                                                      \
    {                                                                                                                  \
        int n;                                                                                                         \
        type r = frexp(x, &n);                                                                                         \
        *p = n;                                                                                                        \
        return r;                                                                                                      \
    }                                                                                                                  \
    type OVERLOAD lgamma_r(type x, __generic int *p)                                                                   \
    {                                                                                                                  \
        int n;                                                                                                         \
        type r = lgamma_r(x, &n);                                                                                      \
        *p = n;                                                                                                        \
        return r;                                                                                                      \
    }                                                                                                                  \
    type OVERLOAD remquo(type x, type y, __generic int *p)                                                             \
    {                                                                                                                  \
        int n;                                                                                                         \
        type r = remquo(x, y, &n);                                                                                     \
        *p = n;                                                                                                        \
        return r;                                                                                                      \
    }

GENERIC(float)
GENERIC(double)

// Half precision: computed in single precision, which has more than twice the bits, and rounded once more.

#define HALF1(name)                                                                                                    \
    float OVERLOAD name(float);                                                                                        \
    half OVERLOAD name(half x)                                                                                         \
    {                                                                                                                  \
        return (half)name((float)x);                                                                                   \
    }
#define HALF2(name)                                                                                                    \
    float OVERLOAD name(float, float);                                                                                 \
    half OVERLOAD name(half x, half y)                                                                                 \
    {                                                                                                                  \
        return (half)name((float)x, (float)y);                                                                         \
    }
#define HALF_INT(name)                                                                                                 \
    float OVERLOAD name(float, int);                                                                                   \
    half OVERLOAD name(half x, int n)                                                                                  \
    {                                                                                                                  \
        return (half)name((float)x, n);                                                                                \
    }

HALF1(acos)
HALF1(acosh)
HALF1(acospi)
HALF1(asin)
HALF1(asinh)
HALF1(asinpi)
HALF1(atan)
HALF1(atanh)
HALF1(atanpi)
HALF1(cbrt)
HALF1(cos)
HALF1(cosh)
HALF1(cospi)
HALF1(erf)
HALF1(erfc)
HALF1(exp)
HALF1(exp2)
HALF1(exp10)
HALF1(expm1)
HALF1(log)
HALF1(log2)
HALF1(log10)
HALF1(log1p)
HALF1(logb)
HALF1(sin)
HALF1(sinh)
HALF1(sinpi)
HALF1(tan)
HALF1(tanh)
HALF1(tanpi)
HALF1(tgamma)
HALF1(sqrt)
HALF1(degrees)
HALF1(radians)
HALF2(atan2)
HALF2(atan2pi)
HALF2(fmod)
HALF2(hypot)
HALF2(pow)
HALF2(powr)
HALF2(remainder)
HALF_INT(pown)
HALF_INT(rootn)
HALF_INT(ldexp)

// Stated here, since the functions themselves are in half precision.
float OVERLOAD lgamma(float);
half OVERLOAD lgamma(half x)
{
    return __builtin_isinf((float)x) ? (half)INFINITY : (half)lgamma((float)x);
}

half OVERLOAD rsqrt(half x)
{
    return (half)(1.0f / sqrt((float)x));
}

half OVERLOAD fdim(half x, half y)
{
    // The difference of two halves is exact in single precision.
    float d = (float)x - (float)y;
    return d <= 0.0f ? (half)0.0f : (half)d;
}

// 22 bits of product are exact; the sum is rounded to odd, so that the second rounding is right.
half OVERLOAD fma(half x, half y, half z)
{
    float p = (float)x * (float)y, c = (float)z;
    float s = p + c;
    float t = s - p;
    float e = (p - (s - t)) + (c - t);
    uint u = AS(uint, s);
    if ((u & 1) == 0 && (e > 0.0f || e < 0.0f))
        u += (e > 0.0f) == (s > 0.0f) ? 1 : -1;
    return (half)AS(float, u);
}

half OVERLOAD mad(half x, half y, half z)
{
    return x * y + z;
}

half OVERLOAD nan(ushort code)
{
    return AS(half, (ushort)(0x7e00 | (code & 0x1ff)));
}

int OVERLOAD ilogb(float);
int OVERLOAD ilogb(half x)
{
    return ilogb((float)x);
}

half OVERLOAD nextafter(half x, half y)
{
    ushort a = AS(ushort, x), b = AS(ushort, y);
    if ((a & 0x7fff) > 0x7c00 || (b & 0x7fff) > 0x7c00)
        return AS(half, (ushort)0x7e00);
    // Zero of either sign is between the two smallest numbers.
    int i = (a & 0x8000) ? -(int)(a & 0x7fff) : (int)a;
    int j = (b & 0x8000) ? -(int)(b & 0x7fff) : (int)b;
    if (i == j)
        return y;
    i += j > i ? 1 : -1;
    ushort r = i < 0 ? (ushort)(0x8000 | -i) : (ushort)i;
    if (i == 0)
        r = a & 0x8000;
    return AS(half, r);
}

half OVERLOAD maxmag(half x, half y)
{
    float a = fabs((float)x), b = fabs((float)y);
    return a > b ? x : b > a ? y : (half)fmax((float)x, (float)y);
}

half OVERLOAD minmag(half x, half y)
{
    float a = fabs((float)x), b = fabs((float)y);
    return a < b ? x : b < a ? y : (half)fmin((float)x, (float)y);
}

half OVERLOAD round(half x)
{
    float f = (float)x, t = trunc(f);
    float away = fabs(f - t) >= 0.5f ? 1.0f : 0.0f;
    return (half)copysign(t + copysign(away, f), f);
}

#define HALF_POINTERS(space)                                                                                           \
    half OVERLOAD sincos(half x, space half *cosine)                                                                   \
    {                                                                                                                  \
        *cosine = cos(x);                                                                                              \
        return sin(x);                                                                                                 \
    }                                                                                                                  \
    half OVERLOAD fract(half x, space half *whole)                                                                     \
    {                                                                                                                  \
        float f = (float)x, n = floor(f);                                                                              \
        *whole = (half)n;                                                                                              \
        float r = fmin(f - n, 0x1.ffcp-1f);                                                                            \
        r = __builtin_isnan(f) ? f : __builtin_isinf(f) ? 0.0f : r;                                                    \
        return (half)copysign(r, f == 0.0f || __builtin_isinf(f) ? f : r);                                             \
    }                                                                                                                  \
    half OVERLOAD modf(half x, space half *whole)                                                                      \
    {                                                                                                                  \
        float f = (float)x, t = trunc(f);                                                                              \
        *whole = (half)t;                                                                                              \
        return (half)copysign(__builtin_isinf(f) ? 0.0f : f - t, f);                                                   \
    }                                                                                                                  \
    half OVERLOAD frexp(half x, space int *exponent)                                                                   \
    {                                                                                                                  \
        int n;                                                                                                         \
        float m = frexp((float)x, &n);                                                                                 \
        *exponent = n;                                                                                                 \
        return (half)m;                                                                                                \
    }                                                                                                                  \
    half OVERLOAD lgamma_r(half x, space int *sign)                                                                    \
    {                                                                                                                  \
        int n;                                                                                                         \
        float y = lgamma_r((float)x, &n);                                                                              \
        *sign = n;                                                                                                     \
        return (half)y;                                                                                                \
    }                                                                                                                  \
    half OVERLOAD remquo(half x, half y, space int *quotient)                                                          \
    {                                                                                                                  \
        int n;                                                                                                         \
        float r = remquo((float)x, (float)y, &n);                                                                      \
        *quotient = n;                                                                                                 \
        return (half)r;                                                                                                \
    }

float OVERLOAD frexp(float, __private int *);
float OVERLOAD lgamma_r(float, __private int *);
float OVERLOAD remquo(float, float, __private int *);
HALF_POINTERS(__private)
HALF_POINTERS(__global)
HALF_POINTERS(__local)
HALF_POINTERS(__generic)

// Geometric functions of half vectors. The squares of halves do not overflow in single precision.
half OVERLOAD normalize(half x)
{
    float f = (float)x;
    return (half)(f > 0.0f ? 1.0f : f < 0.0f ? -1.0f : f);
}
#define HALF_GEOMETRY(n, type, ftype, sum)                                                                             \
    half OVERLOAD length(type x)                                                                                       \
    {                                                                                                                  \
        ftype f = __builtin_convertvector(x, ftype);                                                                   \
        ftype q = f * f;                                                                                               \
        return (half)sqrt(sum);                                                                                        \
    }                                                                                                                  \
    type OVERLOAD normalize(type x)                                                                                    \
    {                                                                                                                  \
        ftype f = __builtin_convertvector(x, ftype);                                                                   \
        ftype q = f * f;                                                                                               \
        float s = sum;                                                                                                 \
        /* Infinite components point the way; a NaN makes the sum one. */                                              \
        if (__builtin_isinf(s)) {                                                                                      \
            for (int i = 0; i < n; i++)                                                                                \
                f[i] = copysign(__builtin_isinf(f[i]) ? 1.0f : 0.0f, f[i]);                                            \
            q = f * f;                                                                                                 \
            s = sum;                                                                                                   \
        }                                                                                                              \
        if (s == 0.0f)                                                                                                 \
            return x;                                                                                                  \
        return __builtin_convertvector(f / sqrt(s), type);                                                             \
    }
HALF_GEOMETRY(2, half2, float2, q.x + q.y)
HALF_GEOMETRY(3, half3, float3, q.x + q.y + q.z)
HALF_GEOMETRY(4, half4, float4, q.x + q.y + q.z + q.w)

half3 OVERLOAD cross(half3 a, half3 b)
{
    float3 x = __builtin_convertvector(a, float3), y = __builtin_convertvector(b, float3);
    return __builtin_convertvector(x.yzx * y.zxy - x.zxy * y.yzx, half3);
}
half4 OVERLOAD cross(half4 a, half4 b)
{
    half3 r = cross(a.xyz, b.xyz);
    return (half4)(r.x, r.y, r.z, (half)0.0f);
}

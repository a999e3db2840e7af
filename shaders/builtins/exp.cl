// Powers of two: ldexp, and the exponential functions whose results libclc loses among the subnormals.
//
// ldexp works on the bits, so that it rounds once and does not depend on how a device treats subnormals.

#define LDEXP(type, bits, uint_type, int_type, fraction, biggest)                                                      \
    type OVERLOAD ldexp(type x, int n)                                                                                 \
    {                                                                                                                  \
        const uint_type hidden = (uint_type)1 << fraction, sign_bit = (uint_type)1 << (bits - 1);                      \
        uint_type u = AS(uint_type, x), sign = u & sign_bit, m = u & (hidden - 1);                                     \
        int e = (int)(u >> fraction) & biggest;                                                                        \
        if (e == biggest || (u ^ sign) == 0)                                                                           \
            return x;                                                                                                  \
        if (e == 0) {                                                                                                  \
            int lead = (int)clz((ulong)m) - (63 - fraction);                                                           \
            m <<= lead;                                                                                                \
            e = 1 - lead;                                                                                              \
        }                                                                                                              \
        m |= hidden;                                                                                                   \
        n = n > 4 * biggest ? 4 * biggest : n < -4 * biggest ? -4 * biggest : n;                                       \
        e += n;                                                                                                        \
        if (e >= biggest)                                                                                              \
            return AS(type, sign | ((uint_type)biggest << fraction));                                                  \
        if (e > 0)                                                                                                     \
            return AS(type, sign | (((uint_type)e << fraction) + (m - hidden)));                                       \
        /* Subnormal: what is shifted out rounds to nearest even. */                                                   \
        int by = 1 - e > fraction + 2 ? fraction + 2 : 1 - e;                                                          \
        uint_type kept = m >> by, rest = m & (((uint_type)1 << by) - 1), half_bit = (uint_type)1 << (by - 1);          \
        kept += rest > half_bit || (rest == half_bit && (kept & 1));                                                   \
        return AS(type, sign | kept);                                                                                  \
    }

LDEXP(float, 32, uint, int, 23, 255)
LDEXP(double, 64, ulong, long, 52, 2047)

// y * 2^n for y near 1 and n in [-200, 200]: the first product is exact, so the second rounds once.
static float scale(float y, int n)
{
    int first = n >> 1;
    return y * AS(float, (first + 127) << 23) * AS(float, (n - first + 127) << 23);
}

// e^r for |r| <= ln(2) / 2.
static float exp_near(float r)
{
    float p = 0x1.6d75e6p-10f;
    p = mad(p, r, 0x1.12705ap-7f);
    p = mad(p, r, 0x1.5554acp-5f);
    p = mad(p, r, 0x1.555402p-3f);
    p = mad(p, r, 0.5f);
    return mad(p, r * r, r) + 1.0f;
}

// e^x as y * 2^n with y in about [0.7, 1.42], for |x| up to 120. The polynomial interpolates e^r at the Chebyshev
// points of |r| <= ln(2) / 2; its error is 2^-28.5.
static float exp_parts(float x, int *n)
{
    float whole = rint(x * 0x1.715476p+0f);
    float r = (x - whole * 0x1.62ep-1f) - whole * 0x1.0bfbe8p-15f;
    *n = (int)whole;
    return exp_near(r);
}

float OVERLOAD exp(float x)
{
    int n;
    float y = exp_parts(fmin(fmax(x, -110.0f), 100.0f), &n);
    y = scale(y, n);
    return x == x ? y : x;
}

// 2^r for |r| <= 1/2.
static float exp2_near(float r)
{
    float p = 0x1.00c0e4p-16f;
    p = mad(p, r, 0x1.446c7ap-13f);
    p = mad(p, r, 0x1.5d8776p-10f);
    p = mad(p, r, 0x1.3b29d8p-7f);
    p = mad(p, r, 0x1.c6b08ep-5f);
    p = mad(p, r, 0x1.ebfbe0p-3f);
    p = mad(p, r, 0x1.62e430p-1f);
    return mad(p, r, 1.0f);
}

float OVERLOAD exp2(float x)
{
    float in_range = fmin(fmax(x, -160.0f), 140.0f);
    float whole = rint(in_range), r = in_range - whole;
    float y = scale(exp2_near(r), (int)whole);
    return x == x ? y : x;
}

double OVERLOAD exp(double);
double OVERLOAD expm1(double);

// libclc's own read a table at an index made from the operand, NaN and infinity included.
double OVERLOAD cosh(double x)
{
    double a = fabs(x);
    if (a < 1.0) {
        double t = expm1(a);
        return 1.0 + t * t / (2.0 * (1.0 + t));
    }
    // Beyond 709 e^a alone is infinite where half of it is not.
    double t = exp(a > 700.0 ? 0.5 * a : a);
    return a > 700.0 ? 0.5 * t * t : 0.5 * t + 0.5 / t;
}

double OVERLOAD sinh(double x)
{
    double a = fabs(x), y;
    if (a < 22.0) {
        double t = expm1(a);
        y = 0.5 * (t + t / (t + 1.0));
    } else {
        double t = exp(a > 700.0 ? 0.5 * a : a);
        y = a > 700.0 ? 0.5 * t * t : 0.5 * t;
    }
    return a < 0x1p-28 ? x : copysign(y, x);
}

// erfc(x) = e^(-x^2) * w(x), and (1 + 2x) w(x) is smooth in t = (x - 3) / (x + 3) (after Shepherd and Laframboise,
// "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981). Error of the polynomial: 2^-28.
float OVERLOAD erfc(float x)
{
    float a = fmin(fabs(x), 11.0f);
    float t = (a - 3.0f) / (a + 3.0f);
    float p = -0x1.20d62ap-12f;
    p = p * t - 0x1.9fdb2ap-11f;
    p = p * t + 0x1.05e94ep-9f;
    p = p * t + 0x1.51eea4p-9f;
    p = p * t - 0x1.85d0cep-6f;
    p = p * t + 0x1.17baa8p-4f;
    p = p * t - 0x1.e88a10p-4f;
    p = p * t + 0x1.09842ep-3f;
    p = p * t - 0x1.85a15ep-5f;
    p = p * t - 0x1.15c08ap-3f;
    p = (p * t + 0x1.40c522p+0f) / (1.0f + 2.0f * a);
    // The square in two parts: its rounding alone would cost dozens of ulp.
    float square = a * a, high = AS(float, AS(uint, a) & 0xfffff000u), low = a - high;
    float rest = ((high * high - square) + 2.0f * high * low) + low * low;
    int n;
    float y = exp_parts(-square, &n);
    y = scale((y - y * rest) * p, n);
    y = x < 0.0f ? 2.0f - y : y;
    return x == x ? y : x;
}

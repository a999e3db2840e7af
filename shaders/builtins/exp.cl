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

// x - n * ln(2), and n in the lowest bits of `t`.
static float OVERLOAD exp_rest(float x, float *t)
{
    *t = mad(x, 0x1.715476p+0f, 0x1.8p+23f);
    float whole = *t - 0x1.8p+23f;
    return mad(whole, -0x1.0bfbe8p-15f, mad(whole, -0x1.62ep-1f, x));
}

// y * 2^n for y near 1 and the n in the lowest bits of `t`, in [-180, 180] and of the sign of x: first in the middle of
// the numbers, so that the product rounds once, to a subnormal number or to an infinite one where it must. There is no
// branch for those: it costs a driver that runs both sides of branches more. x where that is NaN.
static float scale_by_sign(float y, float t, float x)
{
    bool down = x < 0.0f;
    int by = (AS(int, t) << 23) + (down ? 64 << 23 : -(64 << 23));
    y = AS(float, AS(int, y) + by) * (down ? 0x1p-64f : 0x1p+64f);
    return x == x ? y : x;
}

float OVERLOAD exp(float x)
{
    x = x < -110.0f ? -110.0f : x;
    x = x > 100.0f ? 100.0f : x;
    float t, r = exp_rest(x, &t);
    return scale_by_sign(exp_near(r), t, x);
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
    x = x < -160.0f ? -160.0f : x;
    x = x > 140.0f ? 140.0f : x;
    float t = x + 0x1.8p+23f, whole = t - 0x1.8p+23f;
    return scale_by_sign(exp2_near(x - whole), t, x);
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2: error 2^-55 of e^r - 1.
static double exp_curve(double r)
{
    double p = 0x1.af6c28b9be7bep-26;
    p = mad(p, r, 0x1.28a3820c09130p-22);
    p = mad(p, r, 0x1.71ddf06fa7b0ap-19);
    p = mad(p, r, 0x1.a019a5b076d64p-16);
    p = mad(p, r, 0x1.a01a01b31b9c3p-13);
    p = mad(p, r, 0x1.6c16c17f7e50ap-10);
    p = mad(p, r, 0x1.111111110ee5ep-7);
    p = mad(p, r, 0x1.5555555551fd8p-5);
    p = mad(p, r, 0x1.555555555555bp-3);
    return mad(p, r, 0.5);
}

// The same.
static double OVERLOAD exp_rest(double x, double *t)
{
    *t = mad(x, 0x1.71547652b82fep+0, 0x1.8p+52);
    double whole = *t - 0x1.8p+52;
    return mad(whole, -0x1.a39ef35793c76p-33, mad(whole, -0x1.62e42feep-1, x));
}

// e^x where that is a normal number.
static double exp_plain(double x)
{
    double t, r = exp_rest(x, &t);
    double y = mad(exp_curve(r), r * r, r) + 1.0;
    return AS(double, AS(long, y) + (AS(long, t) << 52));
}

static double exp_edges(double x)
{
    double t, r = exp_rest(fmin(fmax(x, -800.0), 800.0), &t);
    double y = ldexp(mad(exp_curve(r), r * r, r) + 1.0, (int)AS(long, t));
    return x == x ? y : x;
}

double OVERLOAD exp(double x)
{
    double y = exp_plain(x);
    if (!(fabs(x) < 708.0))
        y = exp_edges(x);
    return y;
}

// By t = e^2|x| - 1: t / (t + 2), without loss where x is small.
float OVERLOAD tanh(float x)
{
    float a = 2.0f * fmin(fabs(x), 10.0f);
    float t, r = exp_rest(a, &t);
    float p = 0x1.6d9878p-10f;
    p = mad(p, r, 0x1.1228eap-7f);
    p = mad(p, r, 0x1.555488p-5f);
    p = mad(p, r, 0x1.5554aep-3f);
    p = mad(p, r, 0.5f);
    float s = AS(float, (AS(int, t) << 23) + 0x3f800000);
    float y = mad(s, mad(p, r * r, r), s - 1.0f);
    y = copysign(y / (y + 2.0f), x);
    return x == x ? y : x;
}

double OVERLOAD tanh(double x)
{
    double a = 2.0 * fmin(fabs(x), 22.0), t, r = exp_rest(a, &t);
    double s = AS(double, (AS(long, t) << 52) + 0x3ff0000000000000);
    double y = mad(s, mad(exp_curve(r), r * r, r), s - 1.0);
    y = copysign(y / (y + 2.0), x);
    return x == x ? y : x;
}

// erf(x) / x for x^2 = z <= 1: error 2^-24 and 2^-51.
static float OVERLOAD erf_near(float z)
{
    float p = -0x1.28bcf2p-11f;
    p = mad(p, z, 0x1.42beeep-8f);
    p = mad(p, z, -0x1.b5bde0p-6f);
    p = mad(p, z, 0x1.ce0baap-4f);
    p = mad(p, z, -0x1.812688p-2f);
    return mad(p, z, 0x1.20dd74p+0f);
}

static double OVERLOAD erf_near(double z)
{
    double p = 0x1.433e1a1896e50p-27;
    p = mad(p, z, -0x1.45f0676c7e43fp-23);
    p = mad(p, z, 0x1.b5c465660941ep-20);
    p = mad(p, z, -0x1.f465faf41d177p-17);
    p = mad(p, z, 0x1.f99bf49bc419bp-14);
    p = mad(p, z, -0x1.c02d64f5d2362p-11);
    p = mad(p, z, 0x1.565bcaeecc787p-8);
    p = mad(p, z, -0x1.b82ce3016d95ap-6);
    p = mad(p, z, 0x1.ce2f219ffbce2p-4);
    p = mad(p, z, -0x1.812746b0372b3p-2);
    return mad(p, z, 0x1.20dd750429b6bp+0);
}

// The 16th root of erfc(a) for a between 1 and 4, between 1 and 6: errors 2^-27 and 2^-50 of erf(a).
static float OVERLOAD erf_far(float a)
{
    float t = mad(a, 0x1.555556p-1f, -0x1.aaaaaap+0f);
    float p = 0x1.cee17cp-14f;
    p = mad(p, t, -0x1.c7e6e2p-10f);
    p = mad(p, t, -0x1.2b1194p-9f);
    p = mad(p, t, 0x1.b24828p-6f);
    p = mad(p, t, -0x1.12785ap-8f);
    p = mad(p, t, -0x1.3b73e4p-2f);
    return mad(p, t, 0x1.3a50eep-1f);
}

static double OVERLOAD erf_far(double a)
{
    double t = mad(a, 0.4, -1.4);
    double p = -0x1.3566288267da6p-20;
    p = mad(p, t, 0x1.5f9aa69132134p-18);
    p = mad(p, t, 0x1.bf873bc028bdep-16);
    p = mad(p, t, 0x1.c467c1d00a351p-15);
    p = mad(p, t, 0x1.dc7c335430c26p-14);
    p = mad(p, t, 0x1.5144d6adb788ep-13);
    p = mad(p, t, -0x1.af04dccf4dd3ap-12);
    p = mad(p, t, -0x1.651a9f24a4680p-11);
    p = mad(p, t, 0x1.929d8a75593f4p-8);
    p = mad(p, t, -0x1.f604c40cd81fcp-9);
    p = mad(p, t, -0x1.41e38212a2affp-5);
    p = mad(p, t, 0x1.30bfd61819616p-4);
    p = mad(p, t, 0x1.c471154652fdap-4);
    p = mad(p, t, -0x1.e13d70f70dd70p-2);
    return mad(p, t, 0x1.a7e0a2fefc243p-2);
}

// NaN goes the way of what is near to 0.
#define ERF(type, most)                                                                                                \
    type OVERLOAD erf(type x)                                                                                          \
    {                                                                                                                  \
        type a = fabs(x), root = erf_far(fmin(fmax(a, (type)1), (type)most));                                          \
        type r2 = root * root, r4 = r2 * r2, r8 = r4 * r4, far = mad(-r8, r8, (type)1);                                \
        return a >= (type)1 ? copysign(far, x) : x * erf_near(a * a);                                                  \
    }
ERF(float, 4)
ERF(double, 6)

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

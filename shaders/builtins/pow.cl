// Powers of single precision: 2^(y * log2(x)) with the logarithm in two parts. Errors are below 9 ulp; what the
// specification allows is 16.

// The upper half of a number's bits: products of such are exact.
static float pow_upper(float x)
{
    return AS(float, AS(uint, x) & 0xfffff000u);
}

// log((1 + s) / (1 - s)) - 2s for (1 + s) / (1 - s) in [sqrt(1/2), sqrt(2)]. Error 2^-35 of the logarithm.
static float log_curve(float s)
{
    float z = s * s;
    float q = 0x1.ddd4dap-3f;
    q = mad(q, z, 0x1.245c28p-2f);
    q = mad(q, z, 0x1.9999ecp-2f);
    q = mad(q, z, 0x1.555556p-1f);
    return q * (z * s);
}

// |x|^y for x neither 0 nor infinite nor NaN, y not NaN.
static float pow_size(float x, float y)
{
    int n;
    float m = log_parts(fabs(x), &n), e = (float)n;
    // log(m) = 2 (s + s^3 / 3 + ...) with s = (m - 1) / (m + 1), in two parts.
    float f = m - 1.0f, t = m + 1.0f, t_low = m - (t - 1.0f);
    float over = 1.0f / t;
    float s = f * over, s_high = pow_upper(s), t_high = pow_upper(t);
    float s_low = ((f - s_high * t_high) - s_high * ((t - t_high) + t_low)) * over;
    float low = 2.0f * s_low + log_curve(s), high = 2.0f * s_high;
    // Times log2(e), and the exponent.
    float rest = low * 0x1.715476p+0f + high * 0x1.47652cp-12f;
    high = high * 0x1.714p+0f;
    float sum = e + high;
    rest += high - (sum - e);
    high = pow_upper(sum + rest);
    low = (sum - high) + rest;
    // Beyond that every result is 0, 1 or infinite.
    y = fmin(fmax(y, -0x1p34f), 0x1p34f);
    float y_high = pow_upper(y);
    float p_high = y_high * high, p_low = (y - y_high) * high + y * low;
    // Where the first part is that large the second does not matter.
    p_low = fabs(p_high) < 300.0f ? p_low : 0.0f;
    p_high = fmin(fmax(p_high, -200.0f), 200.0f);
    float whole = rint(p_high + p_low), r = (p_high - whole) + p_low;
    return scale(exp2_near(r), (int)whole);
}

// The same for all numbers but NaN. Subnormal ones count as they are, whatever the device does with them.
static float OVERLOAD pow_of_size(float x, float y)
{
    float v = pow_size(x, y);
    uint u = AS(uint, x) & 0x7fffffffu;
    bool down = y < 0.0f;
    v = u == 0 ? (down ? INFINITY : 0.0f) : v;
    v = u == 0x7f800000u ? (down ? 0.0f : INFINITY) : v;
    v = u == 0x3f800000u || y == 0.0f ? 1.0f : v;
    return v;
}

// The result for a size, where y is an integer or not, odd or not.
static float OVERLOAD pow_sign(float x, float y, float v, bool whole, bool odd)
{
    uint u = AS(uint, x);
    bool negative = u >> 31;
    v = negative && odd ? -v : v;
    // Negative, neither 0 nor infinite.
    v = negative && !whole && u != 0x80000000u && u != 0xff800000u ? AS(float, 0x7fc00000u) : v;
    return v;
}

// x^y for a normal number x > 0, where y * log(x), whose size is returned, is below 87 in size. By true fused multiply-adds:
// log(x) and its product with y are in two parts. Errors are below 9 ulp.
static float OVERLOAD pow_fused(float x, float y, float *size)
{
    float e, f = log_parts_plain(x, &e) - 1.0f;
    float z = f * f, z_low = __pumice_fused(f, f, -z);
    float c = f * z, c_low = mad(f, z_low, __pumice_fused(f, z, -c));
    float p = 0x1.145882p-4f;
    p = mad(p, f, -0x1.de38bep-4f);
    p = mad(p, f, 0x1.e6ed34p-4f);
    p = mad(p, f, -0x1.fc21d6p-4f);
    p = mad(p, f, 0x1.23379ep-3f);
    p = mad(p, f, -0x1.555c56p-3f);
    p = mad(p, f, 0x1.99a4b4p-3f);
    p = mad(p, f, -0x1.000006p-2f);
    // log(1 + f) = f - z / 2 + c (1/3 + f p), of which the first three in two parts.
    const float third = 0x1.555548p-2f;
    float v = c * third, v_low = mad(c_low, third, __pumice_fused(c, third, -v));
    float u = __pumice_fused(-0.5f, z, f), u_low = mad(-0.5f, z_low, __pumice_fused(-0.5f, z, f - u));
    float h = u + v;
    float low = mad(c, f * p, v_low) + (u_low + (v - (h - u)));
    // The first part of ln(2) has so few bits that its product is exact.
    float first = e * 0x1.62ep-1f, sum = first + h;
    low += mad(e, 0x1.0bfbe8p-15f, h - (sum - first));
    float all = sum + low;
    low -= all - sum;
    float high = y * all;
    low = mad(y, low, __pumice_fused(y, all, -high));
    *size = fabs(high);
    float t = mad(high, 0x1.715476p+0f, 0x1.8p+23f), whole = t - 0x1.8p+23f;
    float r = __pumice_fused(whole, -0x1.0bfbe8p-15f, __pumice_fused(whole, -0x1.62ep-1f, high)) + low;
    return AS(float, AS(int, exp_near(r)) + (AS(int, t) << 23));
}

static float OVERLOAD pow_edges(float x, float y)
{
    float v = pow_of_size(x, y);
    float size = fabs(y);
    bool whole = size >= 0x1p24f || trunc(y) == y;
    bool odd = size < 0x1p24f && whole && ((int)y & 1);
    v = pow_sign(x, y, v, whole, odd);
    v = x != x || y != y ? x + y : v;
    // 1 to any power, anything to the power 0.
    return x == 1.0f || (AS(uint, y) & 0x7fffffffu) == 0 ? 1.0f : v;
}

float OVERLOAD pow(float x, float y)
{
    if (!__pumice_has_fma(x))
        return pow_edges(x, y);
    float size, v = pow_fused(x, y, &size);
    if (!(is_plain(x) && size < 87.0f))
        v = pow_edges(x, y);
    return v;
}

static float OVERLOAD powr_edges(float x, float y)
{
    float v = pow_of_size(x, y);
    uint u = AS(uint, x) & 0x7fffffffu;
    uint w = AS(uint, y) & 0x7fffffffu;
    // 0 or infinity to the power 0, 1 to an infinite power, negative numbers.
    bool open = ((u == 0 || u == 0x7f800000u) && w == 0) || (u == 0x3f800000u && w == 0x7f800000u);
    bool negative = AS(uint, x) >> 31 && u != 0;
    v = open || negative ? AS(float, 0x7fc00000u) : v;
    return x != x || y != y ? x + y : v;
}

float OVERLOAD powr(float x, float y)
{
    if (!__pumice_has_fma(x))
        return powr_edges(x, y);
    float size, v = pow_fused(x, y, &size);
    if (!(is_plain(x) && size < 87.0f))
        v = powr_edges(x, y);
    return v;
}

float OVERLOAD pown(float x, int n)
{
    // The exponent in two parts of the same sign, of which the second is small.
    int rest = n % 256;
    float high = (float)(n - rest), low = (float)rest;
    float v = pow_of_size(x, (float)n);
    if (n > 0xffffff || n < -0xffffff) {
        // Too long for a float: only bases next to 1 have such powers.
        v = pow_of_size(x, high) * pow_of_size(x, low);
    }
    v = pow_sign(x, 0.0f, v, true, n & 1);
    v = x != x ? x : v;
    return n == 0 ? 1.0f : v;
}

// Double precision: the same, with the errors of products by fused multiply-adds or by halves.
static double product_rest(double x, double y, double p)
{
    return __pumice_has_fma(x) ? __pumice_fused(x, y, -p) : product_error(x, y, p);
}

// y * (log(x) + more * log(2)) in two parts for a normal number x > 0. Errors are below 2^-59 of it, most of which is that of
// z and c: beyond 700 in size, 12 ulp of a power, where 16 are allowed. Polynomials go by pairs: what is long here is the way
// from the operand to the result. `steps`: half of the same in powers of two, within 0.001 while
// that is below 600; y log2(e) may be too large for a double, half of it is not.
static double pow_exponent(double x, double more, double y, double *low_part, double *steps)
{
    double e, m = log_parts_plain(x, &e), f = m - 1.0;
    e = more == 0.0 ? e : e + more;
    // s = f / (2 + f), and its error times 2 + f, of which f - 2s is exact.
    double s = f / (m + 1.0), q = s * f;
    double rest = __pumice_has_fma(x) ? __pumice_fused(-s, f, mad(-2.0, s, f))
                                      : (mad(-2.0, s, f) - q) - product_error(s, f, q);
    double z = s * s, c = s * z, w = z * z;
    // log(1 + f) = 2s + c (2/3 + z p), and the error of s times 2 + 2z: with 1 / (2 + f) = (1 - s) / 2 what `rest` is
    // multiplied by is 1 - s + z - s z, which this is within 0.0013 of.
    const double two_thirds = 0x1.5555555555555p-1;
    double twice = s + s, h, low;
    if (__pumice_has_fma(x)) {
        h = __pumice_fused(c, two_thirds, twice);
        low = __pumice_fused(c, two_thirds, twice - h);
    } else {
        double third = c * two_thirds;
        h = twice + third;
        low = product_error(c, two_thirds, third) + (third + (twice - h));
    }
    low = mad(rest, mad(s, s - 1.02209, 1.0), low);
    // The first part of log(2) has so few bits that its product is exact.
    double sum = mad(e, 0x1.62e42feep-1, h);
    low += mad(e, 0x1.a39ef35793c76p-33, h - mad(e, -0x1.62e42feep-1, sum));
    // What comes last from the operand is added last.
    double p = mad(0x1.0f7ed6327d469p-3, z, 0x1.3b1ef78d41c01p-3);
    double p2 = mad(0x1.745ce9a5d7cb6p-3, z, 0x1.c71c722e107b6p-3);
    double p1 = mad(0x1.2492492457658p-2, z, 0x1.9999999999b33p-2);
    p = mad(0x1.0e4cda59d8cacp-3, w, p);
    p = mad(p, w, p2);
    p = mad(p, w, p1);
    low = mad(c, mad(z, p, 0x1.5555555555555p-55), low);
    // The lower part reaches 0.1: nine tenths of it are the first of the higher terms.
    *steps = mad(c * z, 0.404, sum) * (y * 0x1.71547652b82fep-1);
    double high = y * sum;
    *low_part = mad(y, low, product_rest(y, sum, high));
    return high;
}

// e^(high + low) for a sum below 800 in size, of which twice `steps` is about that many powers of two: what is returned times 2
// to the lowest bits of `n`. Error 2^-51. `steps` is known long before `low`.
static double pow_parts(double high, double low, double steps, double *n)
{
    *n = mad(steps, 2.0, 0x1.8p+52);
    double whole = *n - 0x1.8p+52;
    double r = mad(whole, -0x1.62e42feep-1, high) + mad(whole, -0x1.a39ef35793c76p-33, low);
    // As `exp_curve` with one term less, by pairs.
    double z = r * r, w = z * z;
    double a = mad(0x1.55555555507b4p-3, r, 0x1.ffffffffffed2p-2), b = mad(0x1.11111125b7393p-7, r, 0x1.55555555891c7p-5);
    double c = mad(0x1.a0198d4bf2481p-13, r, 0x1.6c16c0c8083d2p-10);
    double d = mad(0x1.72e9291b5ab72p-19, r, 0x1.a01b7c983a751p-16);
    double p = mad(w, mad(z, 0x1.2707817725540p-22, d), mad(z, c, b));
    return mad(mad(z, p, a), z, r) + 1.0;
}

// x^y for a normal number x > 0, where y * log(x), whose size is returned, is below 708 in size.
static double OVERLOAD pow_plain(double x, double y, double *size)
{
    double n, low, steps, high = pow_exponent(x, 0.0, y, &low, &steps), v = pow_parts(high, low, steps, &n);
    *size = fabs(high);
    return AS(double, AS(long, v) + (AS(long, n) << 52));
}

// |x|^y for all numbers but NaN.
static double OVERLOAD pow_of_size(double x, double y)
{
    ulong u = AS(ulong, x) & 0x7ffffffffffffffful;
    bool tiny = u < 0x0010000000000000ul, down = y < 0.0;
    // Subnormal numbers are scaled as integers, so that it does not matter whether the device has them.
    double size = tiny ? (double)u : AS(double, u);
    // Beyond that every result is 0, 1 or infinite.
    double n, low, steps, high = pow_exponent(size, tiny ? -1074.0 : 0.0, fmin(fmax(y, -0x1p70), 0x1p70), &low, &steps);
    if (!(fabs(high) < 800.0)) {
        high = high < 0.0 ? -800.0 : 800.0;
        low = 0.0;
        steps = high * 0x1.71547652b82fep-1;
    }
    double v = pow_parts(high, low, steps, &n);
    v = ldexp(v, (int)AS(long, n));
    v = u == 0 ? (down ? INFINITY : 0.0) : v;
    v = u == 0x7ff0000000000000ul ? (down ? 0.0 : INFINITY) : v;
    return u == 0x3ff0000000000000ul || y == 0.0 ? 1.0 : v;
}

static double OVERLOAD pow_sign(double x, double v, bool whole, bool odd)
{
    bool negative = AS(long, x) < 0, inside = x < 0.0 && x != -INFINITY;
    v = negative && odd ? -v : v;
    return inside && !whole ? AS(double, 0x7ff8000000000000ul) : v;
}

static double OVERLOAD pow_edges(double x, double y)
{
    double size = fabs(y);
    bool whole = size >= 0x1p53 || trunc(y) == y;
    bool odd = size < 0x1p53 && whole && ((long)y & 1);
    double v = pow_sign(x, pow_of_size(x, y), whole, odd);
    v = x != x || y != y ? x + y : v;
    return x == 1.0 || y == 0.0 ? 1.0 : v;
}

double OVERLOAD pow(double x, double y)
{
    if (!__pumice_has_fma(x))
        return pow_edges(x, y);
    double size, v = pow_plain(x, y, &size);
    if (!(is_plain(x) && size < 708.0))
        v = pow_edges(x, y);
    return v;
}

static double OVERLOAD powr_edges(double x, double y)
{
    double v = pow_of_size(x, y), size = fabs(x);
    // 0 or infinity to the power 0, 1 to an infinite power, negative numbers.
    bool open = ((size == 0.0 || size == INFINITY) && y == 0.0) || (x == 1.0 && fabs(y) == INFINITY);
    v = open || x < 0.0 ? AS(double, 0x7ff8000000000000ul) : v;
    return x != x || y != y ? x + y : v;
}

double OVERLOAD powr(double x, double y)
{
    if (!__pumice_has_fma(x))
        return powr_edges(x, y);
    double size, v = pow_plain(x, y, &size);
    if (!(is_plain(x) && size < 708.0))
        v = powr_edges(x, y);
    return v;
}

static double OVERLOAD pown_edges(double x, int n)
{
    double v = pow_sign(x, pow_of_size(x, (double)n), true, n & 1);
    v = x != x ? x : v;
    return n == 0 ? 1.0 : v;
}

double OVERLOAD pown(double x, int n)
{
    if (!__pumice_has_fma(x))
        return pown_edges(x, n);
    double size, v = pow_plain(x, (double)n, &size);
    if (!(is_plain(x) && size < 708.0))
        v = pown_edges(x, n);
    return v;
}

// Powers of single precision: 2^(y * log2(x)) with the logarithm in two parts. Errors are below 4 ulp; what the
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
static float pow_of_size(float x, float y)
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
static float pow_sign(float x, float y, float v, bool whole, bool odd)
{
    uint u = AS(uint, x);
    bool negative = u >> 31;
    v = negative && odd ? -v : v;
    // Negative, neither 0 nor infinite.
    v = negative && !whole && u != 0x80000000u && u != 0xff800000u ? AS(float, 0x7fc00000u) : v;
    return v;
}

float OVERLOAD pow(float x, float y)
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

float OVERLOAD powr(float x, float y)
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

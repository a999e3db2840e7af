// Logarithms of single precision, without tables and without branches: what reads a table at an index of its own in each
// work-item is slow on vectors. Errors are below 2 ulp.

// m * 2^e with m in [sqrt(1/2), sqrt(2)), for x > 0. Subnormal numbers are read as integers, so that it does not matter
// whether the device has them.
static float log_parts(float x, int *e)
{
    uint u = AS(uint, x);
    bool small = u < 0x00800000u;
    u = small ? AS(uint, (float)u) : u;
    // So that the carry into the exponent is at sqrt(1/2).
    uint v = u - 0x3f3504f3u;
    int n = (int)v >> 23;
    *e = small ? n - 149 : n;
    return AS(float, (v & 0x007fffffu) + 0x3f3504f3u);
}

// log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)]. The polynomial is (log(1 + f) - f + f^2 / 2) / f^3; its error is
// 2^-27 of the logarithm.
static float log_rest(float f)
{
    float p = -0x1.389614p-4f;
    p = mad(p, f, 0x1.054d3ep-3f);
    p = mad(p, f, -0x1.0d8440p-3f);
    p = mad(p, f, 0x1.22dc16p-3f);
    p = mad(p, f, -0x1.5472a0p-3f);
    p = mad(p, f, 0x1.999ff6p-3f);
    p = mad(p, f, -0x1.000226p-2f);
    p = mad(p, f, 0x1.555554p-2f);
    return f * f * mad(p, f, -0.5f);
}

// What the logarithm of 0, infinity, negative numbers and NaN is, else y.
static float log_edges(float x, float y)
{
    y = x == 0.0f ? -INFINITY : y;
    y = x == INFINITY ? x : y;
    return x >= 0.0f ? y : AS(float, 0x7fc00000u);
}

// m * 2^e with m in [sqrt(1/2), sqrt(2)), for a normal number above 0.
static float OVERLOAD log_parts_plain(float x, float *e)
{
    uint v = AS(uint, x) - 0x3f3504f3u;
    *e = (float)((int)v >> 23);
    return AS(float, (v & 0x007fffffu) + 0x3f3504f3u);
}

// A normal number above 0.
static bool OVERLOAD is_plain(float x)
{
    return AS(uint, x) - 0x00800000u < 0x7f000000u;
}

static float OVERLOAD log_edge_cases(float x)
{
    int n;
    float f = log_parts(x, &n) - 1.0f, e = (float)n;
    // The first part of ln(2) has so few bits that its product is exact.
    float y = (log_rest(f) + e * 0x1.0bfbe8p-15f) + f;
    return log_edges(x, y + e * 0x1.62ep-1f);
}

float OVERLOAD log(float x)
{
    float e, f = log_parts_plain(x, &e) - 1.0f;
    float y = mad(e, 0x1.62ep-1f, f + mad(e, 0x1.0bfbe8p-15f, log_rest(f)));
    if (!is_plain(x))
        y = log_edge_cases(x);
    return y;
}

float OVERLOAD log2(float x)
{
    int n;
    float f = log_parts(x, &n) - 1.0f, rest = log_rest(f);
    // log2(e) in two parts, and f in two, so that the large product is exact.
    float high = AS(float, AS(uint, f) & 0xfffff000u), low = (f - high) + rest;
    float y = (low * 0x1.715476p+0f + high * 0x1.47652cp-12f) + high * 0x1.714p+0f;
    return log_edges(x, y + (float)n);
}

float OVERLOAD log10(float x)
{
    int n;
    float f = log_parts(x, &n) - 1.0f, e = (float)n, rest = log_rest(f);
    float high = AS(float, AS(uint, f) & 0xfffff000u), low = (f - high) + rest;
    float y = (low * 0x1.bcb7b2p-2f - high * 0x1.09d5b2p-15f) + e * 0x1.3509f8p-18f;
    return log_edges(x, (y + high * 0x1.bccp-2f) + e * 0x1.344p-2f);
}

// m * 2^e with m in [sqrt(1/2), sqrt(2)), for a normal number above 0. The biased exponent becomes a double as its lowest bits.
static double OVERLOAD log_parts_plain(double x, double *e)
{
    ulong v = AS(ulong, x) + 0x00095f619980c433ul;
    *e = AS(double, v >> 52 | 0x4330000000000000ul) - 0x1.00000000003ffp+52;
    return AS(double, (v & 0x000ffffffffffffful) + 0x3fe6a09e667f3bcdul);
}

static bool OVERLOAD is_plain(double x)
{
    return AS(ulong, x) - 0x0010000000000000ul < 0x7fe0000000000000ul;
}

// log of a normal number above 0, and `more` times ln(2). With s = f / (2 + f), log(1 + f) = 2s + s^3 (2/3 + ...), of which
// the polynomial has the rest of the parenthesis; 2s = f - f^2 / 2 + s f^2 / 2. Error below 1 ulp.
static double log_plain(double x, double more)
{
    double e, f = log_parts_plain(x, &e) - 1.0;
    e += more;
    double s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
    double p = 0x1.2f0d6b5e2b41bp-3;
    p = mad(p, z, 0x1.39a0f8e3795b4p-3);
    p = mad(p, z, 0x1.746646009f6d8p-3);
    p = mad(p, z, 0x1.c71c51e8edb0ep-3);
    p = mad(p, z, 0x1.249249421649ep-2);
    p = mad(p, z, 0x1.999999997fb4dp-2);
    p = mad(p, z, 0x1.5555555555593p-1);
    double low = mad(s, mad(p, z, half_square), e * 0x1.a39ef35793c76p-33);
    return mad(e, 0x1.62e42feep-1, f - (half_square - low));
}

static double OVERLOAD log_edge_cases(double x)
{
    ulong u = AS(ulong, x);
    // Subnormal numbers are scaled as integers, so that it does not matter whether the device has them.
    double y = log_plain((double)u, -1074.0);
    y = x == INFINITY ? x : y;
    y = u << 1 == 0 ? -INFINITY : y;
    return u << 1 == 0 || x > 0.0 || u < 0x0010000000000000ul ? y : AS(double, 0x7ff8000000000000ul);
}

double OVERLOAD log(double x)
{
    double y = log_plain(x, 0.0);
    if (!is_plain(x))
        y = log_edge_cases(x);
    return y;
}

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

// log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)]. The polynomial interpolates (log(1 + f) - f + f^2 / 2) / f^3 at the
// Chebyshev points; its error is 2^-28 of the logarithm.
static float log_rest(float f)
{
    float p = 0x1.1d8ea6p-4f;
    p = mad(p, f, -0x1.d635bcp-4f);
    p = mad(p, f, 0x1.dea282p-4f);
    p = mad(p, f, -0x1.fcf4c6p-4f);
    p = mad(p, f, 0x1.23d21ap-3f);
    p = mad(p, f, -0x1.555b4ap-3f);
    p = mad(p, f, 0x1.999d5ap-3f);
    p = mad(p, f, -0x1.fffffcp-3f);
    p = mad(p, f, 0x1.555554p-2f);
    float z = f * f;
    return mad(p * f, z, -0.5f * z);
}

// What the logarithm of 0, infinity, negative numbers and NaN is, else y.
static float log_edges(float x, float y)
{
    y = x == 0.0f ? -INFINITY : y;
    y = x == INFINITY ? x : y;
    return x >= 0.0f ? y : AS(float, 0x7fc00000u);
}

float OVERLOAD log(float x)
{
    int n;
    float f = log_parts(x, &n) - 1.0f, e = (float)n;
    // The first part of ln(2) has so few bits that its product is exact.
    float y = (log_rest(f) + e * 0x1.0bfbe8p-15f) + f;
    return log_edges(x, y + e * 0x1.62ep-1f);
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

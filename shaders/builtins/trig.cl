// Sine and cosine of single precision. Errors are below 3 ulp.

// 2 / pi behind 32 zeros.
static __constant uint two_over_pi[10] = {
    0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
    0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au,
};

// What is left of a large number, between -pi/4 and pi/4, and how many times pi/2 were taken, modulo 4. Infinite ones give
// anything. By whole numbers (Payne and Hanek, "Radian reduction for trigonometric functions", 1983).
static float reduce_large(float x, int *q)
{
    uint u = AS(uint, x);
    int e = (int)(u >> 23 & 255) - 150;
    uint m = (u & 0x007fffffu) | 0x00800000u;
    // The first bit of 2 / pi that is not a multiple of 4 with the number.
    int at = e + 30;
    at = at < 0 ? 0 : at > 159 ? 159 : at;
    int word = at >> 5, by = at & 31;
    ulong a = (ulong)two_over_pi[word] << 32 | two_over_pi[word + 1];
    ulong b = (ulong)two_over_pi[word + 1] << 32 | two_over_pi[word + 2];
    ulong c = (ulong)two_over_pi[word + 2] << 32 | two_over_pi[word + 3];
    uint p0 = (uint)(a << by >> 32), p1 = (uint)(b << by >> 32), p2 = (uint)(c << by >> 32);
    // The lowest 96 bits of the product without the last 32.
    ulong top = ((ulong)(m * p0) << 32) + (ulong)m * p1 + ((ulong)m * p2 >> 32);
    ulong fraction = top << 2;
    uint quarter = (uint)(top >> 62) + (uint)(fraction >> 63);
    float r = (float)(long)fraction * 0x1.921fb6p-64f;
    bool negative = u >> 31;
    *q = negative ? -(int)quarter : (int)quarter;
    return negative ? -r : r;
}

static float reduce_angle(float x, int *q)
{
    // pi/2 in parts whose products with up to 4096 are exact.
    float n = rint(x * 0x1.45f306p-1f);
    float r = x - n * 0x1.922p+0f;
    r = r + n * 0x1.2aep-18f;
    r = r + n * 0x1.deap-31f;
    r = r - n * 0x1.184698p-44f;
    *q = (int)n;
    // (NaN stays what it is.)
    if (fabs(x) > 6400.0f)
        r = reduce_large(x, q);
    return r;
}

// Sine and cosine between -pi/4 and pi/4: interpolated at the Chebyshev points, errors of 2^-26 and 2^-30.
static float sine(float r)
{
    float z = r * r;
    float p = -0x1.9ac856p-13f;
    p = mad(p, z, 0x1.110c26p-7f);
    p = mad(p, z, -0x1.555552p-3f);
    return mad(r, z * p, r);
}

static float cosine(float r)
{
    float z = r * r;
    float p = 0x1.9bd786p-16f;
    p = mad(p, z, -0x1.6c12d0p-10f);
    p = mad(p, z, 0x1.555554p-5f);
    return mad(z * z, p, mad(-0.5f, z, 1.0f));
}

// The sine of a quarter later for odd q, of two quarters later where bit 1 is set.
static float quarter(float x, float r, int q)
{
    float v = q & 1 ? cosine(r) : sine(r);
    v = AS(float, AS(uint, v) ^ ((uint)q & 2) << 30);
    return fabs(x) < INFINITY ? v : AS(float, 0x7fc00000u);
}

float OVERLOAD sin(float x)
{
    int q;
    float r = reduce_angle(x, &q);
    float v = quarter(x, r, q);
    // Zeros keep their sign.
    return x == 0.0f ? x : v;
}

float OVERLOAD cos(float x)
{
    int q;
    float r = reduce_angle(x, &q);
    return quarter(x, r, q + 1);
}

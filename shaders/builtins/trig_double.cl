// Sine and cosine of double precision. Errors are below 2 ulp.
//
// Both are, but for the sign, the sine of what is left of the angle between -pi/2 and pi/2: so one curve serves all lanes.

// 2 / pi behind 64 zeros.
static __constant ulong two_over_pi_long[21] = {
    0,
    0xa2f9836e4e441529ul, 0xfc2757d1f534ddc0ul, 0xdb6295993c439041ul, 0xfe5163abdebbc561ul, 0xb7246e3a424dd2e0ul,
    0x06492eea09d1921cul, 0xfe1deb1cb129a73eul, 0xe88235f52ebb4484ul, 0xe99c7026b45f7e41ul, 0x3991d639835339f4ul,
    0x9c845f8bbdf9283bul, 0x1ff897ffde05980ful, 0xef2f118b5a0a6d1ful, 0x6d367ecf27cb09b7ul, 0x4f463f669e5fea2dul,
    0x7527bac7ebe5f17bul, 0x3d0739f78a5292eaul, 0x6bfb5fb11f8d5d08ul, 0x56033046fc7b6babul, 0xf0cfbc209af4361dul,
};

// 64 bits of a number of 128, from bit `by` on, which is below 64.
static ulong window(ulong high, ulong low, int by)
{
    return high << by | low >> 1 >> (63 - by);
}

// What is left of a large number that is not negative, or of that less pi/2, between -pi/2 and pi/2, and whether pi was taken
// an odd number of times. Infinite ones give anything. By whole numbers (Payne and Hanek, "Radian reduction for
// trigonometric functions", 1983).
static double reduce_large_long(double x, bool cosine, bool *odd)
{
    ulong u = AS(ulong, x);
    int e = (int)(u >> 52) - 1075;
    ulong m = (u & 0x000ffffffffffffful) | 0x0010000000000000ul;
    // The first bit of 2 / pi that is not a multiple of 4 with the number.
    int at = e + 62;
    at = at < 0 ? 0 : at > 1087 ? 1087 : at;
    int word = at >> 6, by = at & 63;
    ulong a = two_over_pi_long[word], b = two_over_pi_long[word + 1];
    ulong c = two_over_pi_long[word + 2], d = two_over_pi_long[word + 3];
    ulong p0 = window(a, b, by), p1 = window(b, c, by), p2 = window(c, d, by);
    // The lowest 192 bits of the product without the last 64: quarters of a turn modulo 4.
    ulong low_part = m * p1, low = low_part + mul_hi(m, p2);
    ulong high = m * p0 + mul_hi(m, p1) + (low < low_part ? 1 : 0);
    high -= cosine ? 0x4000000000000000ul : 0;
    // In halves of a turn, between -1/2 and 1/2.
    bool turned = high >> 63;
    high = window(high, low, 1);
    low <<= 1;
    *odd = turned != (bool)(high >> 63);
    double rest = mad((double)low, 0x1p-64, (double)(long)high) * 0x1p-64;
    return rest * 0x1.921fb54442d18p+1;
}

// A number less so many times pi, exactly but for the last rounding. By multiples below 2^19.
static double less_turns(double x, double n)
{
    if (__pumice_has_fma(x)) {
        double r = __pumice_fused(-n, 0x1.921fb54442d18p+1, x);
        r = __pumice_fused(-n, 0x1.1a62633145c07p-53, r);
        return __pumice_fused(n, 0x1.f1976b7ed8fbcp-109, r);
    }
    // Parts whose products are exact.
    double r = x - n * 0x1.921fb544p+1;
    r = r - n * 0x1.0b4611a6p-33;
    r = r - n * 0x1.3198a2ep-68;
    return r - n * 0x1.b839a252049c1p-103;
}

// Sine between -pi/2 and pi/2: interpolated at the Chebyshev points, error 2^-54.
static double sine_long(double r)
{
    double z = r * r;
    double p = 0x1.89a311d705ceep-49;
    p = mad(p, z, -0x1.ae512d142fbafp-41);
    p = mad(p, z, 0x1.61240136cad4cp-33);
    p = mad(p, z, -0x1.ae6455a1662bap-26);
    p = mad(p, z, 0x1.71de3a5455c01p-19);
    p = mad(p, z, -0x1.a01a01a018a9cp-13);
    p = mad(p, z, 0x1.1111111111107p-7);
    p = mad(p, z, -0x1.5555555555555p-3);
    return mad(r, z * p, r);
}

// The sine of what is left, with the sign it has after an odd or even number of half turns.
static double half_turns(double x, double r, bool negative)
{
    double v = AS(double, AS(ulong, sine_long(r)) ^ (ulong)negative << 63);
    return fabs(x) < INFINITY ? v : AS(double, 0x7ff8000000000000ul);
}

double OVERLOAD sin(double x)
{
    double n = rint(x * 0x1.45f306dc9c883p-2), r = less_turns(x, n);
    bool odd = (int)n & 1;
    if (fabs(x) > 1e6) {
        r = reduce_large_long(fabs(x), false, &odd);
        odd = odd != (bool)(AS(ulong, x) >> 63);
    }
    double v = half_turns(x, r, odd);
    // Zeros keep their sign.
    return x == 0.0 ? x : v;
}

double OVERLOAD cos(double x)
{
    double a = fabs(x), n = rint(mad(a, 0x1.45f306dc9c883p-2, -0.5)), r = less_turns(a, n + 0.5);
    bool odd = (int)n & 1;
    if (a > 1e6)
        r = reduce_large_long(a, true, &odd);
    return half_turns(x, r, !odd);
}

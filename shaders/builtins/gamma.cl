// The gamma function. With n the whole number nearest to x and t = x - n:
//
//   gamma(x) = gamma(1 + t) (x - 1) (x - 2) ... (x - n + 1)       n >= 1
//   gamma(x) = gamma(1 + t) / (x (x + 1) ... (x - n))             n <= 0
//
// All factors are exact; their product is kept as the sum of two numbers (Dekker, "A floating-point technique for
// extending the available precision", 1971), so that its error does not grow with n. 1 / gamma(1 + t) is entire:
// a short polynomial serves for |t| <= 1/2. The long product carries a power of two, against overflow.

static float OVERLOAD reciprocal_gamma(float t)
{
    float p = -0x1.daa500p-13f;
    p = p * t - 0x1.1ea1f4p-10f;
    p = p * t + 0x1.d93c68p-8f;
    p = p * t - 0x1.3bbbaap-7f;
    p = p * t - 0x1.59af5cp-5f;
    p = p * t + 0x1.5512b0p-3f;
    p = p * t - 0x1.5815e8p-5f;
    p = p * t - 0x1.4fcf40p-1f;
    p = p * t + 0x1.2788d0p-1f;
    return p * t + 1.0f;
}

static double OVERLOAD reciprocal_gamma(double t)
{
    double p = 0x1.b88c4b4dd77b8p-34;
    p = p * t - 0x1.42325eabf5d31p-30;
    p = p * t + 0x1.57deb4ae31c5bp-28;
    p = p * t + 0x1.a3ff2ef43665cp-28;
    p = p * t - 0x1.b998ac1e7b676p-23;
    p = p * t + 0x1.30251d452a251p-20;
    p = p * t - 0x1.4fad40b36f0d0p-20;
    p = p * t - 0x1.51ce8b226bb1bp-16;
    p = p * t + 0x1.0c8a78cd66b31p-13;
    p = p * t - 0x1.c364fe6e95eafp-13;
    p = p * t - 0x1.317112ce39d1fp-10;
    p = p * t + 0x1.d919c527f5d97p-8;
    p = p * t - 0x1.3b4af28483e26p-7;
    p = p * t - 0x1.59af103c34090p-5;
    p = p * t + 0x1.5512320b43fbep-3;
    p = p * t - 0x1.5815e8fa27048p-5;
    p = p * t - 0x1.4fcf4026afa2ep-1;
    p = p * t + 0x1.2788cfc6fb619p-1;
    return p * t + 1.0;
}

#define TGAMMA(type, uint_type, upper, lower, bits_nan, scale_from, down, splitter)                                    \
    type OVERLOAD tgamma(type x)                                                                                       \
    {                                                                                                                  \
        if (x != x || x == (type)INFINITY)                                                                             \
            return x;                                                                                                  \
        type whole = rint(x);                                                                                          \
        if (x < (type)0 && whole == x)                                                                                 \
            return AS(type, (uint_type)bits_nan);                                                                      \
        if (x > (type)upper)                                                                                           \
            return (type)INFINITY;                                                                                     \
        /* Zero, of the sign that the poles on both sides leave. */                                                    \
        if (x < (type)lower)                                                                                           \
            return floor(x) * (type)0.5 == floor(floor(x) * (type)0.5) ? (type)0 : (type)-0.0;                         \
        int n = (int)whole, count = n >= 1 ? n - 1 : 1 - n;                                                            \
        type unit = (type)1, step = n >= 1 ? (type)-1 : (type)1, factor = n >= 1 ? x - unit : x;                       \
        type scaling = count > scale_from ? (type)down : unit;                                                         \
        type high = scaling, low = (type)0;                                                                            \
        for (int i = 0; i < count; i++) {                                                                              \
            type product = high * factor;                                                                              \
            type c = high * (type)splitter, high1 = c - (c - high), high2 = high - high1;                              \
            type d = factor * (type)splitter, factor1 = d - (d - factor), factor2 = factor - factor1;                  \
            type error = high1 * factor1 - product;                                                                    \
            error = ((error + high1 * factor2) + high2 * factor1) + high2 * factor2;                                   \
            low = low * factor + error;                                                                                \
            high = product;                                                                                            \
            factor += step;                                                                                            \
        }                                                                                                              \
        type g = reciprocal_gamma(x - whole);                                                                          \
        if (n >= 1)                                                                                                    \
            return (high + low) / g / scaling;                                                                         \
        /* A single factor may be too small for the two parts. */                                                      \
        return count == 1 ? unit / (x * g) : unit / ((high + low) * g) * scaling;                                      \
    }

TGAMMA(float, uint, 36, -44, 0x7fc00000u, 18, 0x1p-80f, 4097.0f)
TGAMMA(double, ulong, 172, -186, 0x7ff8000000000000UL, 60, 0x1p-200, 134217729.0)

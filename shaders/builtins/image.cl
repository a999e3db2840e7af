// Reading images with a sampler, and writing: the formulas of the OpenCL C specification, section "Image
// Addressing and Filtering".
//
// The reader of the lowering compiler makes calls of these functions, by name: the geometry and the kind of texel are
// part of it. Here an image of any geometry is an image2d_t; coordinates are x, y, z, the layer of an array comes after
// the last coordinate. A sampler is its property word, and what does not apply folds away once that is known.
//
// Every texel index is brought into the image before it is fetched, whatever the coordinate was: NaN, infinite, huge. Where
// kernels are checked those that CLK_ADDRESS_NONE leaves undefined are not, so that the check sees them.

typedef int int4 __attribute__((ext_vector_type(4)));
typedef uint uint4 __attribute__((ext_vector_type(4)));

#define IMAGE read_only image2d_t
float4 pumice_image_fetch_f(IMAGE, int, int, int);
int4 pumice_image_fetch_i(IMAGE, int, int, int);
uint4 pumice_image_fetch_u(IMAGE, int, int, int);
void pumice_image_store_f(IMAGE, int, int, int, float4);
void pumice_image_store_i(IMAGE, int, int, int, int4);
void pumice_image_store_u(IMAGE, int, int, int, uint4);
// The bits of a texel of 1, 2 or 4 bytes, whatever the format.
uint4 pumice_image_fetch_r(IMAGE, int, int, int);
void pumice_image_store_r(IMAGE, int, int, int, uint4);
uint pumice_image_info(IMAGE, uint);
// The device's own filter, at normalised coordinates; and whether it is to be used, known when a kernel is lowered.
float4 pumice_image_filter(IMAGE, sampler_t, float, float, float);
uint OVERLOAD pumice_device_filters(void);
// Whether kernels are checked, known as early.
uint OVERLOAD pumice_checks_images(void);
// Whether the device makes the greatest number of a NaN that it writes to a normalised channel.
uint OVERLOAD pumice_saturates_nan(void);

// Words of ImageInfo.
#define INFO_WIDTH 0
#define INFO_HEIGHT 1
#define INFO_DEPTH 2
#define INFO_ARRAY_SIZE 3
#define INFO_DATA_TYPE 4
#define INFO_FLAGS 7
#define FLAG_BORDER_ALPHA_0 1
#define FLAGS_TEXEL_BYTES 8

// Properties of a sampler.
#define NORMALIZED 1u
#define ADDRESS 0xeu
#define ADDRESS_CLAMP 4u
#define ADDRESS_REPEAT 6u
#define ADDRESS_MIRRORED 8u
#define LINEAR 0x20u

ALWAYS_INLINE int at_least(int a, int b) { return a > b ? a : b; }
ALWAYS_INLINE int at_most(int a, int b) { return a < b ? a : b; }
ALWAYS_INLINE int between(int x, int low, int high) { return at_most(at_least(x, low), high); }

// Is an index outside of the image to be left there?
ALWAYS_INLINE bool kept(uint s) { return pumice_checks_images() && !(s & ADDRESS); }
#define FAR 1073741824.0f
ALWAYS_INLINE int kept_index(float u) { return (int)fmin(fmax(floor(u), -FAR), FAR); }

// A coordinate in texels. In the modes that repeat it lies within the image, rounding apart.
ALWAYS_INLINE float in_texels(float c, uint s, float size)
{
    uint mode = s & ADDRESS;
    float repeated = c - floor(c), mirrored = fabs(c - 2.0f * rint(0.5f * c));
    c = mode == ADDRESS_REPEAT ? repeated : c;
    c = mode == ADDRESS_MIRRORED ? mirrored : c;
    return c * (s & NORMALIZED ? size : 1.0f);
}

// The index of a texel: in the image, or -1 or the size for the border.
ALWAYS_INLINE int nearest(float c, uint s, int size)
{
    float u = in_texels(c, s, (float)size);
    if (kept(s))
        return kept_index(u);
    int i = (int)fmin(fmax(floor(u), -1.0f), (float)size);
    uint mode = s & ADDRESS;
    int over = mode == ADDRESS_REPEAT ? size : 0, border = mode == ADDRESS_CLAMP;
    i -= i >= size ? over : 0;
    return between(i, -border, size - 1 + border);
}

ALWAYS_INLINE int nearest_int(int c, uint s, int size)
{
    if (kept(s))
        return c;
    int border = (s & ADDRESS) == ADDRESS_CLAMP;
    return between(c, -border, size - 1 + border);
}

// Two neighbours, and how far the coordinate is from the first to the second.
typedef struct {
    int low, high;
    float part;
} Pair;

ALWAYS_INLINE Pair neighbours(float c, uint s, int size)
{
    float at = in_texels(c, s, (float)size), u = at - 0.5f;
    u = fmin(fmax(u, -2.0f), (float)size + 1.0f);
    float low = floor(u);
    Pair p;
    // Neighbours of a place in the image may be outside.
    if (kept(s) && !(at >= 0.0f && at <= (float)size)) {
        p.part = 0.0f;
        p.low = p.high = kept_index(at);
        return p;
    }
    p.part = u - low;
    p.low = (int)low;
    p.high = p.low + 1;
    uint mode = s & ADDRESS;
    int over = mode == ADDRESS_REPEAT ? size : 0, border = mode == ADDRESS_CLAMP;
    p.low += p.low < 0 ? over : 0;
    p.high -= p.high >= size ? over : 0;
    p.low = between(p.low, -border, size - 1 + border);
    p.high = between(p.high, -border, size - 1 + border);
    return p;
}

ALWAYS_INLINE int layer(float c, int layers)
{
    return (int)fmin(fmax(rint(c), 0.0f), (float)(layers - 1));
}

#define BORDER(type, one) (type)(0, 0, 0, pumice_image_info(im, INFO_FLAGS) & FLAG_BORDER_ALPHA_0 ? 0 : one)

// A texel by its index in three dimensions, of which `n` have a border.
#define DEFINE_TEXEL(letter, type, one)                                                                                \
    ALWAYS_INLINE type texel_##letter(IMAGE im, uint s, int n, int x, int y, int z, int w, int h, int d)               \
    {                                                                                                                  \
        int in_x = kept(s) ? x : between(x, 0, w - 1);                                                                 \
        int in_y = n > 1 && !kept(s) ? between(y, 0, h - 1) : y;                                                       \
        int in_z = n > 2 && !kept(s) ? between(z, 0, d - 1) : z;                                                       \
        type t = pumice_image_fetch_##letter(im, in_x, in_y, in_z);                                                    \
        bool inside = (x == in_x) & (y == in_y) & (z == in_z);                                                         \
        bool has_border = (s & ADDRESS) == ADDRESS_CLAMP;                                                              \
        inside |= !has_border;                                                                                         \
        type border = has_border ? BORDER(type, one) : (type)0;                                                        \
        return (type)(inside ? t.x : border.x, inside ? t.y : border.y, inside ? t.z : border.z,                       \
                      inside ? t.w : border.w);                                                                        \
    }
DEFINE_TEXEL(f, float4, 1.0f)
DEFINE_TEXEL(i, int4, 1)
DEFINE_TEXEL(u, uint4, 1u)

#define WIDTH int w = (int)pumice_image_info(im, INFO_WIDTH), h = 1, d = 1;
#define HEIGHT h = (int)pumice_image_info(im, INFO_HEIGHT);
#define DEPTH d = (int)pumice_image_info(im, INFO_DEPTH);
#define LAYERS(f, c) f(c, (int)pumice_image_info(im, INFO_ARRAY_SIZE))
#define LAYER_INT(c, n) between(c, 0, n - 1)

// The nearest texel, by float and by integer coordinates.
#define DEFINE_NEAREST(letter, type)                                                                                   \
    ALWAYS_INLINE type nearest_1d_##letter(IMAGE im, uint s, float x, float y, float z)                                \
    {                                                                                                                  \
        WIDTH return texel_##letter(im, s, 1, nearest(x, s, w), 0, 0, w, h, d);                                        \
    }                                                                                                                  \
    ALWAYS_INLINE type nearest_1d_array_##letter(IMAGE im, uint s, float x, float y, float z)                          \
    {                                                                                                                  \
        WIDTH return texel_##letter(im, s, 1, nearest(x, s, w), LAYERS(layer, y), 0, w, h, d);                         \
    }                                                                                                                  \
    ALWAYS_INLINE type nearest_2d_##letter(IMAGE im, uint s, float x, float y, float z)                                \
    {                                                                                                                  \
        WIDTH HEIGHT return texel_##letter(im, s, 2, nearest(x, s, w), nearest(y, s, h), 0, w, h, d);                  \
    }                                                                                                                  \
    ALWAYS_INLINE type nearest_2d_array_##letter(IMAGE im, uint s, float x, float y, float z)                          \
    {                                                                                                                  \
        WIDTH HEIGHT return texel_##letter(im, s, 2, nearest(x, s, w), nearest(y, s, h), LAYERS(layer, z), w, h, d);   \
    }                                                                                                                  \
    ALWAYS_INLINE type nearest_3d_##letter(IMAGE im, uint s, float x, float y, float z)                                \
    {                                                                                                                  \
        WIDTH HEIGHT DEPTH return texel_##letter(im, s, 3, nearest(x, s, w), nearest(y, s, h), nearest(z, s, d), w, h, \
                                                 d);                                                                   \
    }                                                                                                                  \
    type pumice_sample_int_1d_##letter(IMAGE im, uint s, int x, int y, int z)                                          \
    {                                                                                                                  \
        WIDTH return texel_##letter(im, s, 1, nearest_int(x, s, w), 0, 0, w, h, d);                                    \
    }                                                                                                                  \
    type pumice_sample_int_1d_array_##letter(IMAGE im, uint s, int x, int y, int z)                                    \
    {                                                                                                                  \
        WIDTH return texel_##letter(im, s, 1, nearest_int(x, s, w), LAYERS(LAYER_INT, y), 0, w, h, d);                 \
    }                                                                                                                  \
    type pumice_sample_int_2d_##letter(IMAGE im, uint s, int x, int y, int z)                                          \
    {                                                                                                                  \
        WIDTH HEIGHT return texel_##letter(im, s, 2, nearest_int(x, s, w), nearest_int(y, s, h), 0, w, h, d);          \
    }                                                                                                                  \
    type pumice_sample_int_2d_array_##letter(IMAGE im, uint s, int x, int y, int z)                                    \
    {                                                                                                                  \
        WIDTH HEIGHT return texel_##letter(im, s, 2, nearest_int(x, s, w), nearest_int(y, s, h),                       \
                                           LAYERS(LAYER_INT, z), w, h, d);                                             \
    }                                                                                                                  \
    type pumice_sample_int_3d_##letter(IMAGE im, uint s, int x, int y, int z)                                          \
    {                                                                                                                  \
        WIDTH HEIGHT DEPTH return texel_##letter(im, s, 3, nearest_int(x, s, w), nearest_int(y, s, h),                 \
                                                 nearest_int(z, s, d), w, h, d);                                       \
    }
DEFINE_NEAREST(f, float4)
DEFINE_NEAREST(i, int4)
DEFINE_NEAREST(u, uint4)

// Integer texels have no filter but the nearest.
#define DEFINE_INTEGER(letter, type, geometry)                                                                         \
    type pumice_sample_##geometry##_##letter(IMAGE im, uint s, float x, float y, float z)                              \
    {                                                                                                                  \
        return nearest_##geometry##_##letter(im, s, x, y, z);                                                          \
    }
#define DEFINE_INTEGERS(letter, type)                                                                                  \
    DEFINE_INTEGER(letter, type, 1d)                                                                                   \
    DEFINE_INTEGER(letter, type, 1d_array)                                                                             \
    DEFINE_INTEGER(letter, type, 2d)                                                                                   \
    DEFINE_INTEGER(letter, type, 2d_array)                                                                             \
    DEFINE_INTEGER(letter, type, 3d)
DEFINE_INTEGERS(i, int4)
DEFINE_INTEGERS(u, uint4)

// Linear filters.
ALWAYS_INLINE float4 row(IMAGE im, uint s, int n, Pair x, int y, int z, int w, int h, int d)
{
    float4 a = texel_f(im, s, n, x.low, y, z, w, h, d);
    float4 b = texel_f(im, s, n, x.high, y, z, w, h, d);
    return (1.0f - x.part) * a + x.part * b;
}

ALWAYS_INLINE float4 plane(IMAGE im, uint s, int n, Pair x, Pair y, int z, int w, int h, int d)
{
    float4 a = texel_f(im, s, n, x.low, y.low, z, w, h, d);
    float4 b = texel_f(im, s, n, x.high, y.low, z, w, h, d);
    float4 c = texel_f(im, s, n, x.low, y.high, z, w, h, d);
    float4 e = texel_f(im, s, n, x.high, y.high, z, w, h, d);
    float px = x.part, py = y.part;
    return (1.0f - px) * (1.0f - py) * a + px * (1.0f - py) * b + (1.0f - px) * py * c + px * py * e;
}

// The device's border is transparent.
ALWAYS_INLINE bool device_filters(IMAGE im, uint s)
{
    return pumice_device_filters() &&
           ((s & ADDRESS) != ADDRESS_CLAMP || pumice_image_info(im, INFO_FLAGS) & FLAG_BORDER_ALPHA_0);
}

ALWAYS_INLINE float unit(float c, uint s, int size) { return s & NORMALIZED ? c : c / (float)size; }

float4 pumice_sample_1d_f(IMAGE im, uint s, float x, float y, float z, sampler_t sampler)
{
    if (!(s & LINEAR))
        return nearest_1d_f(im, s, x, y, z);
    WIDTH
    if (device_filters(im, s))
        return pumice_image_filter(im, sampler, unit(x, s, w), 0.0f, 0.0f);
    return row(im, s, 1, neighbours(x, s, w), 0, 0, w, h, d);
}

float4 pumice_sample_1d_array_f(IMAGE im, uint s, float x, float y, float z, sampler_t sampler)
{
    if (!(s & LINEAR))
        return nearest_1d_array_f(im, s, x, y, z);
    WIDTH
    if (device_filters(im, s))
        return pumice_image_filter(im, sampler, unit(x, s, w), y, 0.0f);
    return row(im, s, 1, neighbours(x, s, w), LAYERS(layer, y), 0, w, h, d);
}

float4 pumice_sample_2d_f(IMAGE im, uint s, float x, float y, float z, sampler_t sampler)
{
    if (!(s & LINEAR))
        return nearest_2d_f(im, s, x, y, z);
    WIDTH HEIGHT
    if (device_filters(im, s))
        return pumice_image_filter(im, sampler, unit(x, s, w), unit(y, s, h), 0.0f);
    return plane(im, s, 2, neighbours(x, s, w), neighbours(y, s, h), 0, w, h, d);
}

float4 pumice_sample_2d_array_f(IMAGE im, uint s, float x, float y, float z, sampler_t sampler)
{
    if (!(s & LINEAR))
        return nearest_2d_array_f(im, s, x, y, z);
    WIDTH HEIGHT
    if (device_filters(im, s))
        return pumice_image_filter(im, sampler, unit(x, s, w), unit(y, s, h), z);
    return plane(im, s, 2, neighbours(x, s, w), neighbours(y, s, h), LAYERS(layer, z), w, h, d);
}

float4 pumice_sample_3d_f(IMAGE im, uint s, float x, float y, float z, sampler_t sampler)
{
    if (!(s & LINEAR))
        return nearest_3d_f(im, s, x, y, z);
    WIDTH HEIGHT DEPTH
    if (device_filters(im, s))
        return pumice_image_filter(im, sampler, unit(x, s, w), unit(y, s, h), unit(z, s, d));
    Pair px = neighbours(x, s, w), py = neighbours(y, s, h), pz = neighbours(z, s, d);
    float4 a = plane(im, s, 3, px, py, pz.low, w, h, d);
    float4 b = plane(im, s, 3, px, py, pz.high, w, h, d);
    return (1.0f - pz.part) * a + pz.part * b;
}

#define HALF_FLOAT 0x10dd
#define FLOAT 0x10de

void pumice_write_f(IMAGE im, int x, int y, int z, float a, float b, float c, float d)
{
    if (pumice_saturates_nan()) {
        uint type = pumice_image_info(im, INFO_DATA_TYPE);
        bool normalised = type != HALF_FLOAT && type != FLOAT;
        a = normalised && __builtin_isnan(a) ? 0.0f : a;
        b = normalised && __builtin_isnan(b) ? 0.0f : b;
        c = normalised && __builtin_isnan(c) ? 0.0f : c;
        d = normalised && __builtin_isnan(d) ? 0.0f : d;
    }
    pumice_image_store_f(im, x, y, z, (float4)(a, b, c, d));
}

// Integers saturate to the width of the image's channels.
#define SIGNED_INT8 0x10d7
#define SIGNED_INT16 0x10d8
#define UNSIGNED_INT8 0x10da
#define UNSIGNED_INT16 0x10db

void pumice_write_i(IMAGE im, int x, int y, int z, int a, int b, int c, int d)
{
    uint type = pumice_image_info(im, INFO_DATA_TYPE);
    int high = type == SIGNED_INT8 ? 0x7f : type == SIGNED_INT16 ? 0x7fff : 0x7fffffff;
    int low = -high - 1;
    pumice_image_store_i(im, x, y, z,
                         (int4)(between(a, low, high), between(b, low, high), between(c, low, high),
                                between(d, low, high)));
}

void pumice_write_u(IMAGE im, int x, int y, int z, uint a, uint b, uint c, uint d)
{
    uint type = pumice_image_info(im, INFO_DATA_TYPE);
    uint high = type == UNSIGNED_INT8 ? 0xff : type == UNSIGNED_INT16 ? 0xffff : 0xffffffff;
    pumice_image_store_u(im, x, y, z,
                         (uint4)(a < high ? a : high, b < high ? b : high, c < high ? c : high, d < high ? d : high));
}

// Parts of at most 32 bits of blocks of sub-groups (cl_intel_subgroups). Coordinates count bytes in x. Texels have 1, 2
// or 4 bytes; what happens with others is undefined.

ALWAYS_INLINE uint texel_shift(IMAGE im)
{
    uint bytes = pumice_image_info(im, INFO_FLAGS) >> FLAGS_TEXEL_BYTES;
    return bytes >= 4 ? 2 : bytes >> 1;
}

// Outside of the image the texels of the edge are read.
ALWAYS_INLINE uint texel_bits(IMAGE im, int x, int y)
{
    x = between(x, 0, (int)pumice_image_info(im, INFO_WIDTH) - 1);
    y = between(y, 0, (int)pumice_image_info(im, INFO_HEIGHT) - 1);
    return pumice_image_fetch_r(im, x, y, 0).x;
}

uint pumice_block_read(IMAGE im, int x, int y, uint bytes)
{
    uint shift = texel_shift(im), size = 1u << shift, value = 0;
    if (!(x & (int)(size - 1)) && size <= bytes) {
        for (uint i = 0; i < bytes; i += size)
            value |= texel_bits(im, (x + (int)i) >> shift, y) << 8 * i;
        return value;
    }
    for (uint i = 0; i < bytes; i++) {
        int at = x + (int)i;
        value |= (texel_bits(im, at >> shift, y) >> 8 * (at & (int)(size - 1)) & 0xff) << 8 * i;
    }
    return value;
}

// `one`, `two`, `four`: the bits of this work-item, and those of as many from it on together. `x` begins a texel in the
// first of those that share it.
void pumice_block_write(IMAGE im, int x, int y, uint bytes, uint lane, uint one, uint two, uint four)
{
    uint shift = texel_shift(im), size = 1u << shift;
    if (size <= bytes) {
        uint mask = size == 4 ? ~0u : (1u << 8 * size) - 1;
        for (uint i = 0; i < bytes; i += size)
            pumice_image_store_r(im, (x + (int)i) >> shift, y, 0, (uint4)(one >> 8 * i & mask, 0, 0, 0));
        return;
    }
    uint sharing = size / bytes;
    if (lane % sharing == 0)
        pumice_image_store_r(im, x >> shift, y, 0, (uint4)(sharing == 2 ? two : four, 0, 0, 0));
}

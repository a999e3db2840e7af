// Stones of pumice on a sea at dusk: a signed-distance field, marched. One work-item a pixel and sample.

#define FAR 60.0f
// The field is long code: one copy of it in each loop will do.
#define KEEP_LOOP __attribute__((opencl_unroll_hint(1)))

// Stones: centre and radius. Then how far each is turned.
__constant float4 stones[7] = {
    (float4)(-0.62f, 0.34f, 0.10f, 1.00f), (float4)(1.55f, 0.10f, 1.70f, 0.55f),
    (float4)(1.05f, 0.02f, -0.85f, 0.20f), (float4)(-2.75f, 0.08f, 2.60f, 0.62f),
    (float4)(0.62f, 0.03f, -0.30f, 0.30f), (float4)(3.90f, 0.10f, 4.60f, 0.80f),
    (float4)(-1.95f, 0.00f, -0.62f, 0.15f)};
__constant float turns[7] = {0.3f, 1.9f, 4.1f, 2.7f, 5.2f, 0.9f, 3.3f};
// Waves: direction, frequency, height.
__constant float waves[7][4] = {{0.80f, 0.60f, 1.1f, 0.030f},  {-0.45f, 0.89f, 2.1f, 0.015f},
                                {0.97f, -0.22f, 4.3f, 0.0075f}, {0.30f, 0.95f, 7.7f, 0.0046f},
                                {-0.80f, 0.60f, 13.0f, 0.0030f}, {0.55f, 0.83f, 23.0f, 0.0018f},
                                {-0.20f, 0.98f, 41.0f, 0.0009f}};

float3 sun_direction(void) { return normalize((float3)(0.42f, 0.145f, 0.90f)); }

uint mix_bits(uint x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

float4 hash(int3 p)
{
    uint h = mix_bits((uint)p.x * 0x9e3779b1u + mix_bits((uint)p.y * 0x85ebca77u + mix_bits((uint)p.z)));
    return (float4)(h & 255, (h >> 8) & 255, (h >> 16) & 255, h >> 24) * (1.0f / 255.0f);
}

float smooth_max(float a, float b, float k)
{
    float h = fmax(k - fabs(a - b), 0.0f) / k;
    return fmax(a, b) + h * h * k * 0.25f;
}

float noise(float3 p)
{
    float3 base = floor(p), f = p - base;
    int3 i = convert_int3(base);
    f = f * f * (3.0f - 2.0f * f);
    float low = mix(mix(hash(i).x, hash(i + (int3)(1, 0, 0)).x, f.x),
                    mix(hash(i + (int3)(0, 1, 0)).x, hash(i + (int3)(1, 1, 0)).x, f.x), f.y);
    float high = mix(mix(hash(i + (int3)(0, 0, 1)).x, hash(i + (int3)(1, 0, 1)).x, f.x),
                     mix(hash(i + (int3)(0, 1, 1)).x, hash(i + (int3)(1, 1, 1)).x, f.x), f.y);
    return mix(low, high, f.z);
}

float fractal(float3 p, int octaves)
{
    float sum = 0.0f, weight = 0.5f;
    KEEP_LOOP
    for (int i = 0; i < octaves; i++) {
        sum += weight * noise(p);
        p = (float3)(0.8f * p.x - 0.6f * p.z, p.y, 0.6f * p.x + 0.8f * p.z) * 2.03f + 7.1f;
        weight *= 0.5f;
    }
    return sum;
}

// One bubble in each cell of a lattice, wholly inside of its cell: no neighbours to look at.
float bubbles(float3 p)
{
    float3 cell = floor(p);
    float4 h = hash(convert_int3(cell));
    float radius = 0.46f * sqrt(h.w);
    float3 centre = 0.5f + (h.xyz - 0.5f) * (1.0f - 2.0f * radius);
    return radius - length(p - cell - centre);
}

float stone(float3 p, float radius, float turn)
{
    float c = cos(turn), s = sin(turn);
    p = (float3)(c * p.x - s * p.z, p.y, s * p.x + c * p.z) / radius;
    float3 q = p * (float3)(0.88f, 1.22f, 1.0f);
    float lump = 0.22f * sin(2.1f * q.x + turn) * sin(1.9f * q.y + 1.0f) * sin(2.3f * q.z + 2.0f) +
                 0.07f * sin(4.7f * q.x) * sin(5.3f * q.y + turn) * sin(4.1f * q.z);
    float d = (length(q) - 1.0f + lump) * 0.78f;
    float size = 2.1f;
    KEEP_LOOP
    for (int i = 0; i < 4; i++) {
        d = smooth_max(d, bubbles(p * size + turn) / size * 0.85f, 0.11f / size);
        p = (float3)(0.36f * p.x + 0.48f * p.y - 0.80f * p.z, -0.80f * p.x + 0.60f * p.y,
                     0.48f * p.x + 0.64f * p.y + 0.60f * p.z);
        size *= 1.9f;
    }
    return d * radius;
}

float field(float3 p)
{
    float d = FAR;
    KEEP_LOOP
    for (int i = 0; i < 7; i++) {
        float4 s = stones[i];
        float ball = length(p - s.xyz) - 1.25f * s.w;
        if (ball < d) d = fmin(d, ball > 0.12f * s.w ? ball : stone(p - s.xyz, s.w, turns[i]));
    }
    return d;
}

float march(float3 o, float3 d, float end)
{
    float t = 0.01f;
    for (int i = 0; i < 110 && t < end; i++) {
        float step = field(o + d * t);
        if (step < 0.0006f * t + 0.0002f) return t;
        t += step * 0.9f;
    }
    return FAR;
}

float shadow(float3 o, float3 d)
{
    float light = 1.0f, t = 0.02f;
    for (int i = 0; i < 40 && t < 7.0f && light > 0.01f; i++) {
        float step = field(o + d * t);
        light = fmin(light, 14.0f * step / t);
        t += clamp(step, 0.012f, 0.4f);
    }
    light = clamp(light, 0.0f, 1.0f);
    return light * light * (3.0f - 2.0f * light);
}

float3 normal_of(float3 p, float e)
{
    float3 sum = 0.0f;
    KEEP_LOOP
    for (int i = 0; i < 4; i++) {
        float3 corner = (float3)(i == 0 || i == 3 ? 1 : -1, i >= 2 ? 1 : -1, i == 1 || i == 3 ? 1 : -1);
        sum += corner * field(p + corner * e);
    }
    return normalize(sum);
}

float3 sky(float3 d)
{
    float3 sun = sun_direction();
    float y = fmax(d.y, 0.0f), toward = fmax(dot(d, sun), 0.0f);
    float3 low = mix((float3)(0.86f, 0.42f, 0.30f), (float3)(1.25f, 0.62f, 0.24f), toward * toward);
    float3 colour = mix(low, (float3)(0.10f, 0.17f, 0.36f), 1.0f - exp(-4.2f * y));
    float2 plane = (float2)(d.x, d.z) / (y + 0.11f);
    float cloud = fractal((float3)(plane.x * 0.62f, 3.7f, plane.y * 1.5f), 5);
    cloud = smoothstep(0.46f, 0.78f, cloud) * smoothstep(0.0f, 0.10f, y);
    float3 lit = mix((float3)(0.42f, 0.29f, 0.36f), (float3)(1.9f, 0.86f, 0.45f), toward * toward * toward);
    colour = mix(colour, lit, 0.72f * cloud);
    colour += (float3)(1.0f, 0.55f, 0.22f) * (0.50f * pow(toward, 9.0f) + 1.2f * pow(toward, 90.0f));
    return colour + (float3)(16.0f, 10.5f, 5.6f) * smoothstep(0.99925f, 0.99965f, toward) * (1.0f - cloud);
}

float3 shade_stone(float3 p, float3 d, float distance)
{
    float3 sun = sun_direction(), n = normal_of(p, 0.0007f + 0.0005f * distance);
    float open = 1.0f, reach = 0.015f;
    KEEP_LOOP
    for (int i = 0; i < 5; i++) {
        open -= (reach - field(p + n * reach)) * (0.30f / reach) * 0.62f;
        reach *= 1.9f;
    }
    open = clamp(open, 0.04f, 1.0f);
    float grain = fractal(p * 9.0f, 3);
    float3 base = mix((float3)(0.34f, 0.28f, 0.24f), (float3)(0.80f, 0.73f, 0.65f), smoothstep(0.25f, 0.62f, grain));
    float wet = 1.0f - smoothstep(0.015f, 0.075f + 0.05f * grain, p.y);
    base *= 1.0f - 0.62f * wet;
    float direct = fmax(dot(n, sun), 0.0f);
    if (direct > 0.0f) direct *= shadow(p + n * 0.004f, sun);
    float3 half_way = normalize(sun - d);
    float shine = direct * pow(fmax(dot(n, half_way), 0.0f), 24.0f) * (0.10f + 0.9f * wet);
    float3 light = direct * (float3)(6.0f, 3.2f, 1.45f) +
                   open * ((0.55f + 0.45f * n.y) * (float3)(0.25f, 0.27f, 0.42f) +
                           fmax(-n.y, 0.0f) * (float3)(0.22f, 0.17f, 0.16f) +
                           fmax(0.3f + 0.7f * dot(n, (float3)(0.42f, 0.0f, 0.9f)), 0.0f) * (float3)(0.46f, 0.23f, 0.11f));
    float rim = pow(1.0f - fmax(-dot(n, d), 0.0f), 4.0f) * open;
    return base * light + shine * (float3)(3.0f, 1.9f, 1.0f) + rim * 0.25f * (float3)(1.0f, 0.6f, 0.4f);
}

float3 water_normal(float3 p, float distance)
{
    float sx = 0.0f, sz = 0.0f;
    KEEP_LOOP
    for (int i = 0; i < 7; i++) {
        float keep = exp(-0.006f * distance * waves[i][2]);
        float phase = (p.x * waves[i][0] + p.z * waves[i][1]) * waves[i][2] * 2.2f + 1.7f * i +
                      1.5f * noise((float3)(p.x * 0.7f, 0.5f * i, p.z * 0.7f));
        float slope = cos(phase) * waves[i][2] * waves[i][3] * keep;
        sx += slope * waves[i][0];
        sz += slope * waves[i][1];
    }
    return normalize((float3)(-sx, 1.0f, -sz));
}

// `accumulated`: sums over the samples of a pixel; w counts the rays.
__kernel void render(__global float4 *accumulated, int width, int height, int first_row, uint sample)
{
    int x = get_global_id(0), y = first_row + get_global_id(1);
    if (x >= width || y >= height) return;
    float4 jitter = hash((int3)(x, y, (int)sample)) - 0.5f;
    float u = (2.0f * (x + 0.5f + jitter.x) - width) / height, v = (height - 2.0f * (y + 0.5f + jitter.y)) / height;

    float3 o = (float3)(0.55f, 0.62f, -3.9f), ahead = normalize((float3)(-0.055f, -0.045f, 1.0f));
    float3 right = normalize(cross((float3)(0, 1, 0), ahead)), up = cross(ahead, right);
    float3 d = normalize(ahead * 1.75f + right * u + up * v);

    float3 colour = 0.0f;
    float weight = 1.0f, travelled = 0.0f;
    int rays = 0;
    KEEP_LOOP
    for (int bounce = 0; bounce < 2; bounce++) {
        rays++;
        float surface = d.y < -0.0005f ? -o.y / d.y : FAR;
        float t = march(o, d, fmin(surface, 14.0f));
        float3 p = o + d * fmin(t, surface);
        if (t >= FAR && surface >= FAR) {
            colour += weight * sky(d);
            break;
        }
        travelled += fmin(t, surface);
        float haze = exp(-0.0009f * travelled * travelled);
        float3 far_colour = sky(normalize((float3)(d.x, 0.012f, d.z)));
        if (t < surface) {
            rays++;
            colour += weight * mix(far_colour, shade_stone(p, d, travelled), haze);
            break;
        }
        float3 n = water_normal(p, travelled);
        float facing = fmax(-dot(n, d), 0.0f), fresnel = 0.02f + 0.98f * pow(1.0f - facing, 5.0f);
        float deep = field(p), foam = smoothstep(0.055f, 0.0f, deep) * smoothstep(0.35f, 0.75f, noise(p * 26.0f));
        float3 body = (float3)(0.012f, 0.050f, 0.066f) + (float3)(0.04f, 0.09f, 0.085f) * exp(-9.0f * fmax(deep, 0.0f));
        colour += weight * ((1.0f - fresnel) * haze * body + (1.0f - haze) * far_colour +
                            0.55f * foam * haze * (float3)(0.75f, 0.62f, 0.55f));
        weight *= fresnel * haze * (1.0f - 0.5f * foam);
        d = d - 2.0f * dot(d, n) * n;
        d.y = fabs(d.y) + 0.004f;
        d = normalize(d);
        o = p + (float3)(0, 0.003f, 0);
        if (bounce == 1 || weight < 0.004f) {
            colour += weight * far_colour;
            break;
        }
    }
    float4 value = (float4)(fmin(colour, 24.0f), (float)rays);
    int at = y * width + x;
    accumulated[at] = sample == 0 ? value : accumulated[at] + value;
}

// A quarter of the width and height, bright parts only.
__kernel void bright(__global const float4 *accumulated, __global float4 *out, int width, int small_width, int small_height,
                     float scale)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= small_width || y >= small_height) return;
    float4 sum = 0.0f;
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 4; i++) sum += accumulated[(4 * y + j) * width + 4 * x + i];
    sum *= scale / 16.0f;
    float level = fmax(sum.x, fmax(sum.y, sum.z));
    out[y * small_width + x] = sum * (fmax(level - 0.9f, 0.0f) / fmax(level, 1e-4f));
}

#define RADIUS 40
#define GROUP 64

// Blurs rows and writes columns: applied twice it blurs both ways. A row piece and its margins are shared in local memory.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void blur(__global const float4 *in, __global float4 *out, int width, int height, __local float4 *tile)
{
    int item = get_local_id(0), x = get_global_id(0), y = get_global_id(1), start = (int)get_group_id(0) * GROUP - RADIUS;
    for (int i = item; i < GROUP + 2 * RADIUS; i += GROUP)
        tile[i] = in[y * width + clamp(start + i, 0, width - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 sum = 0.0f;
    float total = 0.0f;
    for (int i = -RADIUS; i <= RADIUS; i++) {
        // A narrow and a wide bell.
        float w = 0.8f * exp(-0.16f * i * i) + 0.12f * exp(-0.0035f * i * i);
        sum += w * tile[item + RADIUS + i];
        total += w;
    }
    if (x < width) out[x * height + y] = sum / total;
}

__kernel void develop(__global const float4 *accumulated, __global const float4 *glow, __global uchar4 *image, int width,
                      int height, float scale)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    int sw = width / 4, sh = height / 4;
    float gx = clamp((x + 0.5f) / 4.0f - 0.5f, 0.0f, sw - 1.001f), gy = clamp((y + 0.5f) / 4.0f - 0.5f, 0.0f, sh - 1.001f);
    int ix = (int)gx, iy = (int)gy, jx = min(ix + 1, sw - 1), jy = min(iy + 1, sh - 1);
    float4 soft = mix(mix(glow[iy * sw + ix], glow[iy * sw + jx], gx - ix),
                      mix(glow[jy * sw + ix], glow[jy * sw + jx], gx - ix), gy - iy);
    float3 c = accumulated[y * width + x].xyz * scale + 0.55f * soft.xyz;
    float2 edge = (float2)((2.0f * x - width) / width, (2.0f * y - height) / height);
    c *= 0.98f * (1.0f - 0.20f * dot(edge, edge));
    c = c * (2.51f * c + 0.03f) / (c * (2.43f * c + 0.59f) + 0.14f);
    c = pow(clamp(c, 0.0f, 1.0f), 1.0f / 2.2f) * 255.0f + hash((int3)(x, y, -1)).xyz;
    image[y * width + x] = convert_uchar4_sat((float4)(c, 255.0f));
}

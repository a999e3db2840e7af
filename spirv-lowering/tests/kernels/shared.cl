// A large function called from many places: the compiler keeps one copy of it.
#define STEP(a, b, c, d, k) a += (b ^ (c & d)) + w[(k) & 15]; a = (a << 7) | (a >> 25); w[((k) + 3) & 15] ^= a;
#define FOUR(k) STEP(s[0], s[1], s[2], s[3], k) STEP(s[1], s[2], s[3], s[0], k + 1) STEP(s[2], s[3], s[0], s[1], k + 2) STEP(s[3], s[0], s[1], s[2], k + 5)
#define SIXTEEN(k) FOUR(k) FOUR(k + 4) FOUR(k + 8) FOUR(k + 12)

__attribute__((noinline)) void mix(private uint *s, private uint *w, uint rounds)
{
    for (uint r = 0; r < rounds; r++) {
        SIXTEEN(0) SIXTEEN(1) SIXTEEN(2) SIXTEEN(3) SIXTEEN(5) SIXTEEN(7)
    }
}

#define CALL(n) if (x & (1 << (n & 7))) { mix(s, w, 1 + (n & 1)); x += s[n & 3]; } mix(t, w, 1);
#define CALLS(n) CALL(n) CALL(n + 1) CALL(n + 2) CALL(n + 3) CALL(n + 4) CALL(n + 5) CALL(n + 6) CALL(n + 7)

kernel void shared_calls(global const uint *in, global uint *out)
{
    size_t i = get_global_id(0);
    uint x = in[i];
    uint s[4] = { x, x + 1, x * 3, x ^ 0x55 }, t[4] = { x, 2, 3, 4 }, w[16];
    for (int k = 0; k < 16; k++)
        w[k] = x * k;
    for (uint loop = 0; loop < (x & 3) + 1; loop++) {
        CALLS(0)
        CALLS(1)
        CALLS(2)
        CALLS(3)
        CALLS(4)
    }
    out[i] = s[0] ^ s[1] ^ s[2] ^ s[3] ^ t[0] ^ t[1] ^ t[2] ^ t[3] ^ w[5];
}

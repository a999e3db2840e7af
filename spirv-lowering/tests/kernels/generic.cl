typedef struct { int a; char b; double c; float d[4]; } Thing;

constant int table[4] = { 2, 3, 5, 7 };
global int counter = 5;

int sum(const int *p, int n)
{
    int s = 0;
    for (int i = 0; i < n; i++)
        s += p[i];
    return s;
}

kernel void generic_pointers(global int *a, local int *b, int n)
{
    int c[8];
    for (int i = 0; i < 8; i++)
        c[i] = a[i] * i;
    for (int i = 0; i < 64; i++)
        b[i] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    int *p = n > 3 ? (int *)a : n > 2 ? (int *)b : (int *)c;
    a[n] = sum(a, n) + sum(b, n) + sum(c, n) + sum(p, n);
}

kernel void structures(Thing t, global Thing *out, int i)
{
    out[i] = t;
    out[i].d[0] = t.d[i & 3] + table[i & 3];
    atomic_inc(&counter);
}

kernel void conversions(global const float *f, global uchar *u, global short *s, global half *h, global long *l)
{
    size_t i = get_global_id(0);
    u[i] = convert_uchar_sat_rte(f[i]);
    s[i] = convert_short_sat(f[i]);
    vstore_half_rtz(f[i], i, h);
    l[i] = convert_long_rtp(f[i]);
    ((global float *)l)[i] = convert_float_rtz(l[i]);
}

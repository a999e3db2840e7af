// One function of each element. In double precision a second argument that is the same everywhere is nearly 1.7.
#ifdef WITH_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define MATH(name, call, call64)                                                             \
    __kernel void float_##name(__global float *out, __global const float *in)                \
    {                                                                                        \
        size_t i = get_global_id(0);                                                         \
        float x = in[i];                                                                     \
        out[i] = call;                                                                       \
    }                                                                                        \
    __kernel void double_##name(__global double *out, __global const double *in)             \
    {                                                                                        \
        size_t i = get_global_id(0);                                                         \
        double x = in[i];                                                                    \
        out[i] = call64;                                                                     \
    }
#else
#define MATH(name, call, call64)                                                             \
    __kernel void float_##name(__global float *out, __global const float *in)                \
    {                                                                                        \
        size_t i = get_global_id(0);                                                         \
        float x = in[i];                                                                     \
        out[i] = call;                                                                       \
    }
#endif
MATH(sin, sin(x), sin(x))
MATH(cos, cos(x), cos(x))
MATH(exp, exp(x), exp(x))
MATH(log, log(x), log(x))
MATH(pow, pow(x, 1.7f), pow(x, 1.7))
MATH(tanh, tanh(x), tanh(x))
MATH(erf, erf(x), erf(x))

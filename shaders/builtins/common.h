// Declarations for the library. The default header is not used: what is defined here must not be known to the
// compiler as a built-in, or it would be turned back into an instruction that calls it.
//
// Only built-ins that the reader of the lowering compiler translates to operations, or that libclc defines, are
// declared; calls of them become OpenCL.std instructions.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
// Where rounding may differ the library says `mad`: the compiler would make `fma` of it, which is costly where it is not an
// instruction.
#pragma OPENCL FP_CONTRACT OFF

#define OVERLOAD __attribute__((overloadable))
#define ALWAYS_INLINE static __attribute__((always_inline))

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef half half2 __attribute__((ext_vector_type(2)));
typedef half half3 __attribute__((ext_vector_type(3)));
typedef half half4 __attribute__((ext_vector_type(4)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float3 __attribute__((ext_vector_type(3)));
typedef float float4 __attribute__((ext_vector_type(4)));

#define INFINITY __builtin_inff()
#define AS(type, value) __builtin_astype((value), type)

#define DECLARE1(name)                                                                                                 \
    float OVERLOAD name(float);                                                                                        \
    double OVERLOAD name(double);
#define DECLARE2(name)                                                                                                 \
    float OVERLOAD name(float, float);                                                                                 \
    double OVERLOAD name(double, double);

DECLARE1(fabs)
DECLARE1(floor)
DECLARE1(ceil)
DECLARE1(trunc)
DECLARE1(rint)
DECLARE2(copysign)
DECLARE2(fmin)
DECLARE2(fmax)
float OVERLOAD mad(float, float, float);
double OVERLOAD mad(double, double, double);

// What the compiler answers: whether the device has a true fused multiply-add, and that instruction, only to be used where
// it has.
int OVERLOAD __pumice_has_fma(float);
int OVERLOAD __pumice_has_fma(double);
float OVERLOAD __pumice_fused(float, float, float);
double OVERLOAD __pumice_fused(double, double, double);
ulong OVERLOAD mul_hi(ulong, ulong);
ulong OVERLOAD clz(ulong);

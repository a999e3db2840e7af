// Sizes: software stands in for what a device lacks, and must stay small.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void fma_of_double(global double *r)
{
    r[0] = fma(r[1], r[2], r[3]);
}

kernel void functions_of_double(global double *r)
{
    size_t i = get_global_id(0);
    double x = r[i];
    r[i] = exp(x) + sin(x) + log(fabs(x)) + pow(fabs(x), 0.3) + cbrt(x);
}

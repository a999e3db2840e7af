kernel void sines(global const float *in, global float *out)
{
    size_t i = get_global_id(0);
    out[i] = sin(in[i]);
}

kernel void powers(global const float *in, global float *out)
{
    size_t i = get_global_id(0);
    out[i] = pow(in[i], 1.5f) + exp(in[i]) * log(in[i]) + native_sin(in[i]) + fma(in[i], in[i], 2.0f);
}

kernel void doubles(global const double *in, global double *out)
{
    size_t i = get_global_id(0);
    out[i] = sqrt(in[i]) + sin(in[i]) + fma(in[i], in[i], 2.0);
}

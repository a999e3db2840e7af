kernel void print(global const float4 *v, int n)
{
    printf("item %d of %s: %v4f\n", n, "list", v[get_global_id(0)]);
}

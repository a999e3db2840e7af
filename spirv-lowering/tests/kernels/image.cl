#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable
__constant sampler_t smp = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR;
float4 f(read_only image2d_t im, sampler_t s, float2 c) { return read_imagef(im, s, c); }
kernel void k(read_only image2d_t a, read_only image2d_array_t b, read_only image3d_t c, read_only image1d_t d, read_only image1d_buffer_t e, read_only image2d_depth_t g, read_only image2d_array_depth_t h, read_only image1d_array_t h1, sampler_t s, global float4* o, global int4* oi, global uint4* ou, global half4* oh) {
  const sampler_t lit = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
  o[0] = f(a, smp, (float2)(1,2)); o[1] = read_imagef(a, lit, (int2)(1,2)); o[2] = read_imagef(a, s, (float2)(1,3)); o[3] = read_imagef(a,(int2)(1,4));
  oi[0] = read_imagei(b, s, (int4)(1,2,3,0)); ou[0] = read_imageui(c, s, (float4)(1,2,3,4)); o[4] = read_imagef(d, s, 1.0f); o[5]=read_imagef(e, 3); ou[5]=read_imageui(e, 3);
  o[6].x = read_imagef(g, s, (int2)(1,2)); o[6].y = read_imagef(g, (int2)(1,2)); o[6].z = read_imagef(h, s, (float4)(1,2,3,4)); o[7]=read_imagef(h1, s, (float2)(1,2));
  oh[0] = read_imageh(a, s, (float2)(1,2)); oh[1] = read_imageh(a, (int2)(1,2));
  oi[1].xy = get_image_dim(a); oi[1].z = get_image_width(a); oi[1].w = get_image_height(b); oi[2].x = get_image_depth(c); oi[2]=get_image_dim(c); oi[3].x = get_image_array_size(b); oi[3].y = get_image_channel_data_type(a); oi[3].z = get_image_channel_order(a);
  oi[4].xy = get_image_dim(b); oi[4].z = get_image_width(e); oi[5].xy=get_image_dim(g); oi[5].z = get_image_array_size(h); oi[6].x = get_image_width(h1); oi[6].y=get_image_array_size(h1);
}
kernel void w(write_only image2d_t a, write_only image2d_array_t b, write_only image3d_t c, write_only image1d_t d, write_only image1d_buffer_t e, write_only image2d_depth_t g, write_only image2d_array_depth_t h, write_only image1d_array_t h1, float4 v, int4 iv, uint4 uv, half4 hv) {
 write_imagef(a, (int2)(1,2), v); write_imagei(b, (int4)(1,2,3,4), iv); write_imageui(c, (int4)(1,2,3,4), uv); write_imageh(d, 1, hv); write_imagef(e, 2, v); write_imagef(g, (int2)(3,4), v.x); write_imagef(h, (int4)(3,4,5,6), v.x); write_imagei(h1, (int2)(1,2), iv);
}
kernel void rw(read_write image2d_t a, read_write image1d_buffer_t e, read_write image2d_array_t b, read_write image3d_t c) {
 float4 v = read_imagef(a, (int2)(1,2)); write_imagef(a, (int2)(2,3), v); atomic_work_item_fence(CLK_IMAGE_MEM_FENCE, memory_order_acq_rel, memory_scope_work_item); int4 q = read_imagei(e, 2); write_imagei(e, 1, q); write_imageui(b, (int4)(1), read_imageui(b,(int4)(2))); write_imagef(c, (int4)(1), read_imagef(c,(int4)(2))); 
}
kernel void filters(read_only image2d_t a, read_only image1d_array_t b, read_only image3d_t c, sampler_t s, global float4* o) {
  const sampler_t lit = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR;
  o[0] = read_imagef(a, s, (float2)(o[0].x, 2)) + read_imagef(b, lit, (float2)(o[0].y, 2)) + read_imagef(c, s, o[0]) + read_imagef(a, lit, o[0].xy);
}

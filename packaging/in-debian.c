/* SPDX-License-Identifier: MIT OR Apache-2.0
 * An OpenCL program like any other: compiles a kernel on every device of every platform and checks what it computes.
 * Exit status 0: there was at least one device, and all were right. */
#include <CL/cl.h>
#include <stdio.h>

#define COUNT 10007

static const char *source =
    "kernel void square(global const int *in, global int *out, int count) {\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < (size_t)count) out[i] = in[i] * in[i] + 1;\n"
    "}\n";

#define CHECK(what) do { cl_int got = (what); if (got != CL_SUCCESS) { printf("%s: %d\n", #what, got); return 1; } } while (0)

static int runs(cl_platform_id platform, cl_device_id device) {
    static cl_int in[COUNT], out[COUNT];
    cl_int status, count = COUNT;
    size_t size = 10048;
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
    for (int i = 0; i < COUNT; i++) in[i] = i - 5000;
    cl_context context = clCreateContext(properties, 1, &device, NULL, NULL, &status);
    CHECK(status);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
    CHECK(status);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    CHECK(status);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "square", &status);
    CHECK(status);
    cl_mem from = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof in, in, &status);
    CHECK(status);
    cl_mem to = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof out, NULL, &status);
    CHECK(status);
    CHECK(clSetKernelArg(kernel, 0, sizeof from, &from));
    CHECK(clSetKernelArg(kernel, 1, sizeof to, &to));
    CHECK(clSetKernelArg(kernel, 2, sizeof count, &count));
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    CHECK(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
    for (int i = 0; i < COUNT; i++) {
        if (out[i] != in[i] * in[i] + 1) {
            printf("element %d is %d\n", i, out[i]);
            return 1;
        }
    }
    CHECK(clReleaseMemObject(from));
    CHECK(clReleaseMemObject(to));
    CHECK(clReleaseKernel(kernel));
    CHECK(clReleaseProgram(program));
    CHECK(clReleaseCommandQueue(queue));
    CHECK(clReleaseContext(context));
    return 0;
}

int main(void) {
    cl_platform_id platforms[8];
    cl_uint platform_count = 0, ran = 0;
    cl_int status = clGetPlatformIDs(8, platforms, &platform_count);
    if (status != CL_SUCCESS) {
        printf("no platform: %d\n", status);
        return 1;
    }
    for (cl_uint p = 0; p < platform_count && p < 8; p++) {
        cl_device_id devices[16];
        cl_uint count = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &count) != CL_SUCCESS) continue;
        for (cl_uint d = 0; d < count && d < 16; d++, ran++) {
            if (runs(platforms[p], devices[d])) return 1;
        }
    }
    printf("%u device(s) computed what they should\n", ran);
    return ran == 0;
}

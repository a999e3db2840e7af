/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts the bytes of a file with OpenCL, and compares with the host's count. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static const char *source =
    "kernel void histogram(global const uchar *bytes, ulong size, global uint *counts)\n"
    "{\n"
    "    local uint mine[256];\n"
    "    for (size_t i = get_local_id(0); i < 256; i += get_local_size(0))\n"
    "        mine[i] = 0;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    for (size_t i = get_global_id(0); i < size; i += get_global_size(0))\n"
    "        atomic_inc(&mine[bytes[i]]);\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    for (size_t i = get_local_id(0); i < 256; i += get_local_size(0))\n"
    "        atomic_add(&counts[i], mine[i]);\n"
    "}\n";

static void check(cl_int status, const char *what)
{
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s: error %d\n", what, status);
        exit(1);
    }
}

static unsigned char *read_file(const char *name, size_t *size)
{
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(name);
        exit(1);
    }
    long length = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(length > 0 ? length : 1);
    if (length <= 0 || !bytes || fread(bytes, 1, length, file) != (size_t)length) {
        fprintf(stderr, "%s: cannot be read, or is empty\n", name);
        exit(1);
    }
    fclose(file);
    *size = length;
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 1;
    }
    size_t size;
    unsigned char *bytes = read_file(argv[1], &size);

    cl_platform_id platform;
    cl_device_id device;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    char name[256];
    check(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL), "clGetDeviceInfo");
    printf("device: %s\n", name);

    cl_int status;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, properties, &status);
    check(status, "clCreateCommandQueueWithProperties");

    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "clCreateProgramWithSource");
    if (clBuildProgram(program, 1, &device, "-cl-std=CL3.0", NULL, NULL) != CL_SUCCESS) {
        char log[4096] = "";
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        fprintf(stderr, "%s\n", log);
        return 1;
    }
    cl_kernel kernel = clCreateKernel(program, "histogram", &status);
    check(status, "clCreateKernel");

    cl_mem input = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, size, bytes, &status);
    check(status, "clCreateBuffer");
    cl_mem output = clCreateBuffer(context, CL_MEM_READ_WRITE, 256 * sizeof(cl_uint), NULL, &status);
    check(status, "clCreateBuffer");
    cl_uint zero = 0, counts[256];
    check(clEnqueueFillBuffer(queue, output, &zero, sizeof zero, 0, sizeof counts, 0, NULL, NULL),
          "clEnqueueFillBuffer");

    cl_ulong length = size;
    check(clSetKernelArg(kernel, 0, sizeof input, &input), "clSetKernelArg");
    check(clSetKernelArg(kernel, 1, sizeof length, &length), "clSetKernelArg");
    check(clSetKernelArg(kernel, 2, sizeof output, &output), "clSetKernelArg");
    size_t local = 64, global = 64 * 64;
    cl_event event;
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, &event),
          "clEnqueueNDRangeKernel");
    check(clEnqueueReadBuffer(queue, output, CL_TRUE, 0, sizeof counts, counts, 0, NULL, NULL),
          "clEnqueueReadBuffer");
    cl_ulong start, end;
    check(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL),
          "clGetEventProfilingInfo");
    check(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL),
          "clGetEventProfilingInfo");

    cl_uint expected[256] = {0};
    unsigned most = 0, wrong = 0;
    for (size_t i = 0; i < size; i++)
        expected[bytes[i]]++;
    for (unsigned i = 0; i < 256; i++) {
        wrong += counts[i] != expected[i];
        if (counts[i] > counts[most])
            most = i;
    }
    printf("%zu bytes in %.3f ms; byte %u occurs %u times\n", size, (end - start) / 1e6, most, counts[most]);
    printf("%s\n", wrong ? "WRONG" : "as on the host");

    clReleaseEvent(event);
    clReleaseMemObject(output);
    clReleaseMemObject(input);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    free(bytes);
    return wrong != 0;
}

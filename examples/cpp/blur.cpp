// SPDX-License-Identifier: MIT OR Apache-2.0
// Blurs a picture with images and a sampler, and compares some pixels with the host's result.
#define CL_HPP_TARGET_OPENCL_VERSION 300
#define CL_HPP_MINIMUM_OPENCL_VERSION 300
#define CL_HPP_ENABLE_EXCEPTIONS
#include <CL/opencl.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iostream>
#include <vector>

constexpr int width = 640, height = 480, radius = 6;

const char *source = R"(
kernel void blur(read_only image2d_t from, write_only image2d_t to, sampler_t edge,
                 constant float *weights, int radius, int2 step)
{
    const int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 sum = 0.0f;
    for (int i = -radius; i <= radius; i++)
        sum += weights[i + radius] * read_imagef(from, edge, at + i * step);
    write_imagef(to, at, sum);
}
)";

using Pixel = std::array<float, 4>;

std::vector<Pixel> draw()
{
    std::vector<Pixel> picture(width * height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const float disc = std::hypot(x - width / 2.f, y - height / 2.f) < 150.f;
            const float board = (x / 40 + y / 40) % 2;
            picture[y * width + x] = {disc, board, 1.f - disc, 1.f};
        }
    return picture;
}

std::vector<float> gauss()
{
    std::vector<float> weights;
    float sum = 0;
    for (int i = -radius; i <= radius; i++)
        weights.push_back(std::exp(-i * i / (2.f * 3.f * 3.f)));
    for (float weight : weights)
        sum += weight;
    for (float &weight : weights)
        weight /= sum;
    return weights;
}

// The blurred value of one pixel, computed on the host.
Pixel expected(const std::vector<Pixel> &picture, const std::vector<float> &weights, int x, int y)
{
    Pixel sum{};
    for (int j = -radius; j <= radius; j++)
        for (int i = -radius; i <= radius; i++) {
            const int column = std::clamp(x + i, 0, width - 1), row = std::clamp(y + j, 0, height - 1);
            const float weight = weights[i + radius] * weights[j + radius];
            for (int c = 0; c < 4; c++)
                sum[c] += weight * picture[row * width + column][c];
        }
    return sum;
}

int main()
try {
    cl::Device device = cl::Device::getDefault();
    cl::Context context(device);
    cl::CommandQueue queue(context, device);
    std::cout << "device: " << device.getInfo<CL_DEVICE_NAME>() << '\n';

    cl::Program program(context, source);
    program.build("-cl-std=CL3.0");
    cl::KernelFunctor<cl::Image2D, cl::Image2D, cl::Sampler, cl::Buffer, int, cl_int2> blur(program, "blur");

    const auto picture = draw();
    auto weights = gauss();
    const cl::ImageFormat format(CL_RGBA, CL_FLOAT);
    cl::Image2D from(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, format, width, height, 0,
                     const_cast<Pixel *>(picture.data()));
    cl::Image2D between(context, CL_MEM_READ_WRITE, format, width, height);
    cl::Image2D to(context, CL_MEM_READ_WRITE, format, width, height);
    cl::Sampler edge(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST);
    cl::Buffer table(context, weights.begin(), weights.end(), true);

    const cl::EnqueueArgs range(queue, cl::NDRange(width, height));
    blur(range, from, between, edge, table, radius, cl_int2{{1, 0}});
    blur(range, between, to, edge, table, radius, cl_int2{{0, 1}});

    std::vector<Pixel> result(width * height);
    queue.enqueueReadImage(to, CL_TRUE, {0, 0, 0}, {width, height, 1}, 0, 0, result.data());

    float worst = 0;
    for (int y = 0; y < height; y += 53)
        for (int x = 0; x < width; x += 29) {
            const Pixel right = expected(picture, weights, x, y);
            for (int c = 0; c < 4; c++)
                worst = std::max(worst, std::abs(right[c] - result[y * width + x][c]));
        }
    std::ofstream file("blur.ppm", std::ios::binary);
    file << "P6\n" << width << ' ' << height << "\n255\n";
    for (const Pixel &pixel : result)
        for (int c = 0; c < 3; c++)
            file.put(static_cast<char>(std::lround(255 * std::clamp(pixel[c], 0.f, 1.f))));
    std::cout << "blur.ppm written; largest difference from the host " << worst << '\n';
    return worst < 1e-4f ? 0 : 1;
} catch (const cl::BuildError &error) {
    for (const auto &[device, log] : error.getBuildLog())
        std::cerr << log << '\n';
    return 1;
} catch (const cl::Error &error) {
    std::cerr << error.what() << ": error " << error.err() << '\n';
    return 1;
}

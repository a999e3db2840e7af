# SPDX-License-Identifier: MIT OR Apache-2.0
"""Heat in a plate: 500 steps of the heat equation, on an OpenCL device and with NumPy."""
import sys
import time

import numpy as np
import pyopencl as cl

SIZE, STEPS = 256, 500

SOURCE = """
kernel void step(global const float *now, global float *next, float rate)
{
    const int x = get_global_id(0) + 1, y = get_global_id(1) + 1;
    const int width = get_global_size(0) + 2, at = y * width + x;
    const float around = now[at - 1] + now[at + 1] + now[at - width] + now[at + width];
    next[at] = now[at] + rate * (around - 4.0f * now[at]);
}
"""


def plate():
    """A cold plate whose upper and left edges are hot."""
    heat = np.zeros((SIZE + 2, SIZE + 2), dtype=np.float32)
    heat[0, :] = heat[:, 0] = 100.0
    return heat


def with_opencl(heat):
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    print("device:", context.devices[0].name)
    program = cl.Program(context, SOURCE).build()
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    now, following = (cl.Buffer(context, flags, hostbuf=heat) for _ in range(2))
    kernel = cl.Kernel(program, "step")
    begin = time.perf_counter()
    for _ in range(STEPS):
        kernel(queue, (SIZE, SIZE), None, now, following, np.float32(0.2))
        now, following = following, now
    result = np.empty_like(heat)
    cl.enqueue_copy(queue, result, now)
    print(f"{STEPS} steps of {SIZE} x {SIZE}: {time.perf_counter() - begin:.3f} s")
    return result


def with_numpy(heat):
    heat = heat.copy()
    for _ in range(STEPS):
        inner = heat[1:-1, 1:-1]
        around = heat[1:-1, :-2] + heat[1:-1, 2:] + heat[:-2, 1:-1] + heat[2:, 1:-1]
        heat[1:-1, 1:-1] = inner + np.float32(0.2) * (around - 4 * inner)
    return heat


def main():
    heat = plate()
    difference = np.abs(with_opencl(heat) - with_numpy(heat)).max()
    print(f"largest difference from NumPy: {difference:.2e} degrees")
    return int(difference > 0.01)


if __name__ == "__main__":
    sys.exit(main())

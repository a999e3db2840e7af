# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyOpenCL on Pumice, where nothing else of OpenCL is installed: for packaging/in-debian.sh and packaging/wheel/in-debian.sh.

    check-pyopencl.py [--found-twice]

--found-twice: the loader may find it in two places, and lists it twice then.
"""

import sys

import numpy
import pyopencl
import pyopencl.array
import pyopencl.clmath
import pyopencl.clrandom
import pyopencl.elementwise
import pyopencl.scan

platforms = pyopencl.get_platforms()
assert {platform.name for platform in platforms} == {"Pumice"}, platforms
assert len(platforms) == 1 or "--found-twice" in sys.argv, platforms
[device] = platforms[0].get_devices()
context = pyopencl.Context([device])
queue = pyopencl.CommandQueue(context)
host = numpy.random.default_rng(1).random(100003, dtype=numpy.float32)
array = pyopencl.array.to_device(queue, host)
assert abs(pyopencl.array.sum(array).get() - host.sum(dtype=numpy.float64)) < 1
assert numpy.allclose(pyopencl.clmath.sin(array).get(), numpy.sin(host), atol=1e-6)
whole = pyopencl.array.arange(queue, 50021, dtype=numpy.int32)
scan = pyopencl.scan.GenericScanKernel(context, numpy.int32, arguments="__global int *a", input_expr="a[i]",
                                       scan_expr="a + b", neutral="0", output_statement="a[i] = item;")
scan(whole)
assert (whole.get() == numpy.arange(50021, dtype=numpy.int32).cumsum(dtype=numpy.int32)).all()
try:
    pyopencl.Program(context, "kernel void k(global int *p) { *p = undeclared; }").build()
except pyopencl.RuntimeError as error:
    assert "undeclared" in str(error), error
else:
    raise AssertionError("it builds")

# SPDX-License-Identifier: MIT OR Apache-2.0
# The part of packaging/test-wheel that runs inside of a fresh Debian with Python, as a user without rights: installs the wheel
# in a virtual environment, and runs PyOpenCL's examples. /wheels has the wheels that pip would load, /examples the examples.
set -euo pipefail
cd "$HOME"
export PIP_DISABLE_PIP_VERSION_CHECK=1

fail() { echo "wheel: $*" >&2; exit 1; }
step() { echo "-- $*"; }
quiet() { "$@" >"$HOME/log" 2>&1 || { cat "$HOME/log" >&2; fail "failed: $*"; }; }

step 'nothing of OpenCL is here, and no compiler'
! ldconfig -p | grep -iE 'opencl|vulkan|llvm' || fail 'a library is here'
[ ! -e /etc/OpenCL ] || fail '/etc/OpenCL is here'
! ls /usr/bin | grep -E '^(clang|gcc|cc|zig)' || fail 'a compiler is here'

step 'two commands'
quiet python3 -m venv env
quiet env/bin/pip install --no-index --find-links /wheels pumice-opencl pyopencl

step "PyOpenCL's examples"
cp -r /examples "$HOME/examples" # some write files beside themselves
cd "$HOME/examples"
quiet "$HOME/env/bin/pip" install --no-index --find-links /wheels Mako # which two of them want
# Not: those that draw (OpenGL, matplotlib, images), that compile C++ (codepy), or that measure for minutes.
for example in demo.py demo_array.py demo_array_svm.py demo-struct-reduce.py demo_elementwise.py demo_elementwise_complex.py \
    demo_meta_template.py dump-properties.py n-body.py narray.py pi-monte-carlo.py svm.py; do
    echo "   $example"
    PYOPENCL_CTX=0 PYOPENCL_NO_CACHE=1 quiet "$HOME/env/bin/python" "$example"
done
cd "$HOME"

step 'results'
cat >check.py <<'END'
import numpy, pyopencl, pyopencl.array, pyopencl.clmath, pyopencl.scan
# Under `pumice run` the loader finds it in two places, and lists it twice.
platforms = pyopencl.get_platforms()
assert {platform.name for platform in platforms} == {"Pumice"}, platforms
platform = platforms[0]
[device] = platform.get_devices()
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
END
env/bin/python check.py || fail 'PyOpenCL'

step 'the command'
env/bin/pumice doctor >doctor.txt || fail "pumice doctor: $(cat doctor.txt)"
grep -q '^  ok .*/compiler/bin/zig' doctor.txt || fail "pumice doctor: $(cat doctor.txt)"
grep -q '^  ok .*/pyopencl/.libs/pumice.icd, for PyOpenCL' doctor.txt || fail "pumice doctor: $(cat doctor.txt)"
grep -q '^  ok .*compiled and ran a kernel' doctor.txt || fail "pumice doctor: $(cat doctor.txt)"
env/bin/python -m pumice_opencl run env/bin/python check.py || fail 'pumice run'

step 'goes away'
quiet env/bin/pip uninstall -y pumice-opencl
[ ! -e env/lib/python3*/site-packages/pumice_opencl ] || fail "pip left $(find env/lib/python3*/site-packages/pumice_opencl)"
[ -z "$(find env -name '*pumice*')" ] || fail "pip left $(find env -name '*pumice*')"

# SPDX-License-Identifier: MIT OR Apache-2.0
# The part of packaging/test-wheel that runs inside of a fresh Debian with Python, as a user without rights: installs the wheel
# in a virtual environment, and runs PyOpenCL's examples. /wheels has the wheels that pip would load, /examples the examples,
# /check-pyopencl.py is what both packages are tried with.
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
env/bin/python /check-pyopencl.py || fail 'PyOpenCL'

step 'the command'
env/bin/pumice doctor >doctor.txt || fail "pumice doctor: $(cat doctor.txt)"
grep -q '^  ok .*/compiler/bin/zig' doctor.txt || fail "pumice doctor: $(cat doctor.txt)"
grep -q '^  ok .*/pyopencl/.libs/pumice.icd, for PyOpenCL' doctor.txt || fail "pumice doctor: $(cat doctor.txt)"
grep -q '^  ok .*compiled and ran a kernel' doctor.txt || fail "pumice doctor: $(cat doctor.txt)"
env/bin/python -m pumice_opencl run env/bin/python /check-pyopencl.py --found-twice || fail 'pumice run'

step 'goes away'
quiet env/bin/pip uninstall -y pumice-opencl
[ ! -e env/lib/python3*/site-packages/pumice_opencl ] || fail "pip left $(find env/lib/python3*/site-packages/pumice_opencl)"
[ -z "$(find env -name '*pumice*')" ] || fail "pip left $(find env -name '*pumice*')"

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Puts the wheel `pumice-opencl` together: called by `ci/package wheel`, with all that goes into it.

The tag says the oldest glibc on which all of it runs: it is read from what the files ask of the system's libraries. The same
files and the same version give the same bytes.
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from archive import Archive, arguments  # noqa: E402

# What PEP 600 lets a wheel ask of the system, of what is used here.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "libstdc++.so.6",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# The symbols of libstdc++ that a glibc can be expected with: GLIBCXX_3.4.N, and the minor version of glibc.
LIBSTDCXX = [(19, 17), (24, 28), (28, 31), (29, 34), (30, 35), (32, 38), (33, 39)]


def fail(why):
    sys.exit(f"wheel: {why}")


def asks(file):
    """The minor version of the glibc that a program or library asks for; 0 for one that asks nothing of the system."""
    said = subprocess.run(["readelf", "-dV", str(file)], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"\(NEEDED\)\s+Shared library: \[(\S+)\]", said))
    if needed - SYSTEM:
        fail(f"{file} needs {', '.join(sorted(needed - SYSTEM))}, which systems need not have")
    minors = [int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", said)]
    for minor in map(int, re.findall(r"\bGLIBCXX_3\.4\.(\d+)", said)):
        enough = [glibc for has, glibc in LIBSTDCXX if has >= minor]
        minors.append(enough[0] if enough else fail(f"{file} needs GLIBCXX_3.4.{minor}"))
    return max(minors, default=0)


class Wheel(Archive):
    """A zip file with the list of what is in it."""

    def __init__(self, path, date, info, kept):
        super().__init__(path, date, kept)
        self.info = info
        self.record = []

    def add(self, name, data, mode=0o644):
        if isinstance(data, str):
            data = data.encode()
        super().add(name, data, mode)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self):
        """Adds the list of files and the directory."""
        name = f"{self.info}/RECORD"
        self.add(name, "".join(self.record) + f"{name},,\n")
        super().close()


def main():
    options = arguments(__doc__.splitlines()[0])
    build, zig = options.build, options.zig
    compiler = zig / "zig"
    glibc = max(asks(file) for file in (build / "libpumice.so", build / "pumice", compiler))
    tag = f"py3-none-manylinux_2_{glibc}_{options.machine}"
    name = f"pumice_opencl-{options.version}"
    info = f"{name}.dist-info"
    path = options.out / f"{name}-{tag}.whl"
    wheel = Wheel(path, options.date, info, options.out)
    for file in sorted((HERE / "pumice_opencl").glob("*.py")):
        wheel.add(f"pumice_opencl/{file.name}", file.read_bytes())
    wheel.add("pumice_opencl/libpumice.so", (build / "libpumice.so").read_bytes(), 0o755)
    wheel.add("pumice_opencl/pumice", (build / "pumice").read_bytes(), 0o755)
    # Where the library looks for a compiler, and that for its header.
    wheel.add("pumice_opencl/compiler/bin/zig", compiler.read_bytes(), 0o755)
    header = options.headers / "opencl-c-base.h"
    wheel.add(f"pumice_opencl/compiler/lib/clang/{options.clang}/include/{header.name}", header.read_bytes())
    # PyOpenCL's own loader reads the .icd files of this folder. The dynamic linker takes $ORIGIN for it, whose library calls.
    wheel.add("pyopencl/.libs/pumice.icd", "$ORIGIN/../../pumice_opencl/libpumice.so\n")
    root = HERE.parent.parent
    licences = {
        "LICENSE-MIT": root / "LICENSE-MIT",
        "LICENSE-APACHE": root / "LICENSE-APACHE",
        "THIRD-PARTY": options.licences,
        "compiler/zig": zig / "LICENSE",
        "compiler/clang": options.clang_licences,
        "compiler/musl": zig / "lib/libc/musl/COPYRIGHT",
    }
    for file, source in licences.items():
        wheel.add(f"{info}/licenses/{file}", source.read_bytes())
    wheel.add(f"{info}/METADATA", "\n".join([
        "Metadata-Version: 2.4",
        "Name: pumice-opencl",
        f"Version: {options.version}",
        "Summary: OpenCL for the processor and for GPUs with Vulkan, with its compiler; PyOpenCL finds it",
        "License-Expression: (MIT OR Apache-2.0) AND MIT AND Apache-2.0 WITH LLVM-exception",
        *(f"License-File: {file}" for file in licences),
        "Requires-Python: >=3.8",
        "Provides-Extra: pyopencl",
        'Requires-Dist: pyopencl; extra == "pyopencl"',
        "Description-Content-Type: text/markdown",
        "",
        (HERE / "README.md").read_text(),
    ]))
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: ci/package\nRoot-Is-Purelib: false\nTag: {tag}\n")
    wheel.add(f"{info}/entry_points.txt", "[console_scripts]\npumice = pumice_opencl:main\n")
    wheel.close()
    print(path)


main()

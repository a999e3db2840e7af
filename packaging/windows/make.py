#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Puts the zip for Windows together, and one with its symbols: called by `ci/package zip`, with all that goes into them."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from archive import Archive, arguments  # noqa: E402


def main():
    options = arguments(__doc__)
    root = HERE.parent.parent
    include = f"compiler/lib/clang/{options.clang}/include"
    for name, files in {
        f"pumice-{options.version}-windows-{options.machine}": {
            "pumice.dll": options.build / "pumice.dll",
            "pumice.exe": options.build / "pumice.exe",
            "README.txt": HERE / "README.txt",
            # Where the library looks for a compiler, and that for its headers.
            "compiler/bin/zig.exe": options.zig / "zig.exe",
            f"{include}/opencl-c.h": options.headers / "opencl-c.h",
            f"{include}/opencl-c-base.h": options.headers / "opencl-c-base.h",
            "licences/LICENSE-MIT": root / "LICENSE-MIT",
            "licences/LICENSE-APACHE": root / "LICENSE-APACHE",
            "licences/THIRD-PARTY": options.licences,
            "licences/zig": options.zig / "LICENSE",
            "licences/clang": options.clang_licences,
        },
        f"pumice-{options.version}-windows-{options.machine}-symbols": {
            file: options.build / file for file in ("pumice.dll.debug", "pumice.exe.debug")
        },
    }.items():
        archive = Archive(options.out / f"{name}.zip", options.date, options.out)
        for file, source in files.items():
            # What a person reads there has the ends of lines of Windows.
            data = source.read_bytes()
            archive.add(f"{name}/{file}", data.replace(b"\n", b"\r\n") if file == "README.txt" else data)
        archive.close()
        print(options.out / f"{name}.zip")


main()

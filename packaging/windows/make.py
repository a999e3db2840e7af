#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Puts the zip for Windows together, and one with its symbols: called by `ci/package zip`, with all that goes into them."""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from archive import Archive  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for option, meaning in [
        ("--version", "of the package"),
        ("--build", "folder with pumice.dll and pumice.exe, and their symbols (.debug)"),
        ("--zig", "folder `ziglang` of Zig's wheel"),
        ("--clang", "the version of the clang in it"),
        ("--headers", "folder with the headers of OpenCL of that clang"),
        ("--clang-licences", "its licences"),
        ("--licences", "those of what is compiled into Pumice"),
        ("--out", "folder for both, and for what is kept for the next ones"),
    ]:
        parser.add_argument(option, required=True, help=meaning)
    parser.add_argument("--date", type=int, required=True, help="of all files, in seconds since 1970")
    options = parser.parse_args()
    build, zig, headers, out = (pathlib.Path(path) for path in (options.build, options.zig, options.headers, options.out))
    root = HERE.parent.parent
    include = f"compiler/lib/clang/{options.clang}/include"
    for name, files in {
        f"pumice-{options.version}-windows-x86_64": {
            "pumice.dll": build / "pumice.dll",
            "pumice.exe": build / "pumice.exe",
            "README.txt": HERE / "README.txt",
            # Where the library looks for a compiler, and that for its headers.
            "compiler/bin/zig.exe": zig / "zig.exe",
            f"{include}/opencl-c.h": headers / "opencl-c.h",
            f"{include}/opencl-c-base.h": headers / "opencl-c-base.h",
            "licences/LICENSE-MIT": root / "LICENSE-MIT",
            "licences/LICENSE-APACHE": root / "LICENSE-APACHE",
            "licences/THIRD-PARTY": pathlib.Path(options.licences),
            "licences/zig": zig / "LICENSE",
            "licences/clang": pathlib.Path(options.clang_licences),
        },
        f"pumice-{options.version}-windows-x86_64-symbols": {
            file: build / file for file in ("pumice.dll.debug", "pumice.exe.debug")
        },
    }.items():
        archive = Archive(out / f"{name}.zip", options.date, out)
        for file, source in files.items():
            # What a person reads there has the ends of lines of Windows.
            data = source.read_bytes()
            archive.add(f"{name}/{file}", data.replace(b"\n", b"\r\n") if file == "README.txt" else data)
        archive.close()
        print(out / f"{name}.zip")


main()

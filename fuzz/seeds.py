#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""First inputs for the fuzz targets `binary` and `lowered`, out of a compile cache (src/compile/store, compile/executable.rs).

    seeds.py CACHE binary|lowered CORPUS

A section is its length in eight bytes, then so many bytes. An entry begins with eight bytes of magic and a hash.
"""
import hashlib
import pathlib
import struct
import sys

EXECUTABLE = 4  # CL_PROGRAM_BINARY_TYPE_EXECUTABLE


def sections(data):
    while len(data) >= 8:
        (length,) = struct.unpack_from("<Q", data)
        yield data[8 : 8 + length]
        data = data[8 + length :]


def put(*parts):
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def number(value):
    return struct.pack("<I", value)


def entries(cache, kind):
    return [path.read_bytes()[40:] for path in sorted((cache / kind).glob("*")) if not path.name.startswith(".")]


def binaries(cache):
    """Bodies of binaries behind the device's UUID, which the target puts in front."""
    # In front of the module its length, behind it what else the cache knows.
    modules = [next(sections(entry)) for entry in entries(cache, "spv")]
    for at, executable in enumerate(entries(cache, "vk")):
        module = modules[at % len(modules)] if modules else b""
        options = b"-cl-std=CL3.0 -w" if at % 2 else b""
        constants = [number(7), b"\1\0\0\0"] if at % 3 == 0 else []
        count = number(len(constants) // 2)
        yield put(number(EXECUTABLE), options, number(1), module, count, *constants, b"key", executable)
    for module in modules[:8]:
        yield put(number(1), b"", number(1), module, number(0))


def lowered(cache):
    for executable in entries(cache, "vk"):
        yield from list(sections(executable))[1:]


def main():
    cache, kind, corpus = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    for seed in {"binary": binaries, "lowered": lowered}[kind](cache):
        if len(seed) <= 65536:
            (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


if __name__ == "__main__":
    main()

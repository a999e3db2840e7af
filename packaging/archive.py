# SPDX-License-Identifier: MIT OR Apache-2.0
"""For wheel/make.py and windows/make.py: their options, and zip files whose bytes depend on nothing but what is put into them.

Files are deflated as far as it goes (libdeflate, where Python has it), which for a compiler takes a minute and is kept for the
next time.
"""

import argparse
import hashlib
import pathlib
import struct
import sys
import time
import zlib

# Larger files are worth the time that the best compression takes, and a place to keep it.
LARGE = 32 << 20


def arguments(description):
    """What `ci/package` calls with."""
    parser = argparse.ArgumentParser(description=description)
    for option, kind, meaning in [
        ("--version", str, "of the package; of a wheel as PEP 440 has it"),
        ("--machine", str, "x86_64 or aarch64"),
        ("--build", pathlib.Path, "folder with Pumice's library and command, stripped, and their symbols (.debug)"),
        ("--zig", pathlib.Path, "folder `ziglang` of Zig's wheel"),
        ("--clang", str, "the version of the clang in it"),
        ("--headers", pathlib.Path, "folder with the headers of OpenCL of that clang"),
        ("--clang-licences", pathlib.Path, "its licences"),
        ("--licences", pathlib.Path, "those of what is compiled into Pumice"),
        ("--out", pathlib.Path, "folder for what is made, and for what is kept for the next time"),
        ("--date", int, "of all files, in seconds since 1970"),
    ]:
        parser.add_argument(option, type=kind, required=True, help=meaning)
    return parser.parse_args()


def deflated(data, kept):
    """Raw deflate of some bytes; that of large ones is kept in a folder."""
    try:
        import deflate

        def compress():
            return bytes(deflate.deflate_compress(data, 12))
    except ImportError:
        print("zip: without libdeflate (pip install deflate) it becomes larger", file=sys.stderr)

        def compress():
            best = zlib.compressobj(9, zlib.DEFLATED, -15)
            return best.compress(data) + best.flush()

    if len(data) < LARGE:
        return compress()
    path = kept / (hashlib.sha256(data).hexdigest() + ".deflate")
    try:
        packed = path.read_bytes()
        if zlib.decompress(packed, -15) == data:
            return packed
    except (OSError, zlib.error):
        pass
    packed = compress()
    path.write_bytes(packed)
    return packed


class Archive:
    """A zip file that is written from its beginning to its end."""

    def __init__(self, path, date, kept):
        """A new file; its parts have the date, in seconds since 1970. `kept` is the folder for what was deflated."""
        self.file = open(path, "wb")
        self.kept = kept
        self.central = []
        when = time.gmtime(max(date, 315532800))  # 1980, where the format's time begins
        self.stamp = (when.tm_hour << 11 | when.tm_min << 5 | when.tm_sec // 2,
                      (when.tm_year - 1980) << 9 | when.tm_mon << 5 | when.tm_mday)

    def add(self, name, data, mode=0o644):
        """One file."""
        if isinstance(data, str):
            data = data.encode()
        packed = deflated(data, self.kept)
        raw = name.encode()
        # Version 2.0, no flags, deflated, times, CRC and sizes.
        common = struct.pack("<HHHHHIIIHH", 20, 0, 8, *self.stamp, zlib.crc32(data), len(packed), len(data), len(raw), 0)
        at = self.file.tell()
        self.file.write(b"PK\3\4" + common + raw + packed)
        # Made on Unix, where the upper half of the attributes is the mode.
        self.central.append(b"PK\1\2" + struct.pack("<BB", 20, 3) + common +
                            struct.pack("<HHHII", 0, 0, 0, (0o100000 | mode) << 16, at) + raw)

    def close(self):
        """Adds the directory."""
        at = self.file.tell()
        for entry in self.central:
            self.file.write(entry)
        size = self.file.tell() - at
        count = len(self.central)
        self.file.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, size, at, 0))
        self.file.close()

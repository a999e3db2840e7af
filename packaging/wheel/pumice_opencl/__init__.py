# SPDX-License-Identifier: MIT OR Apache-2.0
"""The OpenCL driver Pumice, as files beside this one. PyOpenCL of the same environment finds it by itself.

Other programs that use an OpenCL loader are run as `pumice run PROGRAM`, or find it by what `LIBRARY` says in an .icd file.
"""

import os
import pathlib
import sys

__all__ = ["LIBRARY", "main"]

_HERE = pathlib.Path(__file__).resolve().parent

#: The driver, for an .icd file.
LIBRARY = str(_HERE / "libpumice.so")


def main():
    """Becomes the command `pumice`, with this process's arguments."""
    command = str(_HERE / "pumice")
    os.execv(command, ["pumice", *sys.argv[1:]])

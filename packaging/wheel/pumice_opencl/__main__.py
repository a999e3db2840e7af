# SPDX-License-Identifier: MIT OR Apache-2.0
"""`python -m pumice_opencl` is the command `pumice`."""

from pumice_opencl import main

main()

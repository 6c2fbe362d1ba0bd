# SPDX-License-Identifier: MIT
"""Environments for a host that hinders cellblock (hinder.c)."""
import pathlib
import subprocess

import pytest

from world import CELLBLOCK, TESTS

# Of one file that was put (struct run_file of repl/json/run.h): its list has an
# item more than there are files.
FILE_BYTES = 24


def _library(cb):
    if b"__asan_init" in pathlib.Path(CELLBLOCK).read_bytes():
        pytest.skip("AddressSanitizer has its own allocator")
    so = cb.base / "hinder.so"
    if not so.exists():
        subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1",
                        "-fno-builtin", "-Wall", "-Wextra", "-o", so,
                        TESTS / "lib" / "hinder.c"], check=True)
    return str(so)


def slowly(cb, ms=5):
    """Others run for so long before each look at the clock."""
    return {"LD_PRELOAD": _library(cb), "HINDER_JUMP_MS": str(ms)}


def without_memory_for_files(cb, n):
    """There is none for the list of n files that are put."""
    return {"LD_PRELOAD": _library(cb),
            "HINDER_CALLOC": f"{n + 1}x{FILE_BYTES}"}

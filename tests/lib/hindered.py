# SPDX-License-Identifier: MIT
"""Environments for a host that hinders cellblock, or whose clocks are other
ones (hinder.c). The product knows nothing of it."""
import os
import pathlib
import struct

import pytest

from world import ASAN, PATIENCE, TESTS, compiled

# Of one file that was put (struct run_file of repl/json/json.h): its list has an
# item more than there are files.
FILE_BYTES = 24
# How much faster the clock runs for a test that waits for a constant of the
# product. On a slow host, and where the library cannot be loaded, such a test
# waits for longer.
SPEED = 1 if ASAN else max(1, int(5 / PATIENCE))


def _library(base):
    if ASAN:
        pytest.skip("AddressSanitizer wants to be the first library")
    so = pathlib.Path(base) / "hinder.so"
    if not so.exists():
        compiled(so, TESTS / "lib" / "hinder.c", "-shared", "-fPIC",
                 "-fno-builtin")
    return str(so)


def fast(base):
    """Time goes by SPEED times as fast. The library is put into `base`."""
    if SPEED == 1:
        return {}
    return {"LD_PRELOAD": _library(base), "HINDER_SPEED": str(SPEED)}


def slow(base):
    """Time goes by a tenth as fast, for a test that has to act before a time of
    the product is over."""
    if ASAN:
        return {}
    return {"LD_PRELOAD": _library(base), "HINDER_SLOW": "10"}


def slowly(cb, us=5000):
    """Others run for so long before each look at the clock."""
    return {"LD_PRELOAD": _library(cb.base), "HINDER_JUMP_US": str(us)}


def without_memory_for_files(cb, n):
    """An environment without memory for the list of n files that are put."""
    return {"LD_PRELOAD": _library(cb.base),
            "HINDER_CALLOC": f"{n + 1}x{FILE_BYTES}"}


def without_processes(base):
    """An environment in which no process can be made while a file exists; the file
    comes with it."""
    file = pathlib.Path(base) / "no-processes"
    return {"LD_PRELOAD": _library(base), "HINDER_FORK": str(file)}, file


def without_directory(base, name):
    """An environment in which no directory of this name can be made in an open
    one."""
    return {"LD_PRELOAD": _library(base), "HINDER_MKDIRAT": name}


def slow_disk(base):
    """An environment in which the alarms of a minute and more come six times as
    soon, and each 16 KiB takes 25 ms: after 6.6 MB one of a minute has come."""
    return {"LD_PRELOAD": _library(base), "HINDER_WRITE_MS": "25",
            "HINDER_ALARM_DEN": "6"}


def slow_writes(base):
    """An environment in which each 16 KiB that is written to a file takes 25 ms."""
    return {"LD_PRELOAD": _library(base), "HINDER_WRITE_MS": "25"}


def short_alarms(base):
    """An environment in which an alarm of a minute comes after a second."""
    return {"LD_PRELOAD": _library(base), "HINDER_ALARM_DEN": "60"}


def long_alarms(base, times):
    """An environment in which alarms come so many times as late."""
    if ASAN:
        return {}
    return {"LD_PRELOAD": _library(base), "HINDER_ALARM_NUM": str(times)}


class Clocks:
    """The clocks that all processes of a test see."""

    def __init__(self, cb):
        self.path = cb.base / "clocks"
        self.path.write_bytes(bytes(16))
        cb.env.update(LD_PRELOAD=_library(cb.base),
                      HINDER_CLOCKS=str(self.path))

    def set(self, day=0, slept=0):
        with open(self.path, "r+b", buffering=0) as f:
            os.pwrite(f.fileno(), struct.pack("=qq", day, slept), 0)

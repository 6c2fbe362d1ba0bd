# SPDX-License-Identifier: MIT
"""How fast this host is, and how busy. The runner imports this first: others read
the variable that is set here when they are imported."""
import os
import sys
import time

# CPU time that Python takes to start with, in seconds: 0.015 is usual. On a host
# that takes so long fewer tests run at once, or they would meet the limits that
# they set, and they wait longer for what they wait for. So they do where others
# keep the processors busy.
SLOW_START = 0.025
SLOW_PATIENCE, LONG_PATIENCE = "4", "3"
LOOKS, LOOK_SECONDS = 25, 0.04


def start_cost():
    pid = os.posix_spawn("/usr/bin/python3", ["python3", "-S", "-c", "pass"],
                         os.environ)
    used = os.wait4(pid, 0)[2]
    return used.ru_utime + used.ru_stime


def others_that_run():
    """How many threads of others want a processor at this moment."""
    with open("/proc/loadavg") as f:
        return int(f.read().split()[3].partition("/")[0]) - 1


def is_busy(cores):
    """The load average does not say it: the build that has just ended is in it,
    and it rises only a minute after the processors were taken."""
    seen = []
    for _ in range(LOOKS):
        seen.append(others_that_run())
        time.sleep(LOOK_SECONDS)
    return sorted(seen)[LOOKS // 2] >= cores


CORES = len(os.sched_getaffinity(0))
IS_SLOW = min(start_cost() for _ in range(3)) > SLOW_START
# The tests that run alone have the host to themselves. The other long ones keep each
# other busy, however quiet the host is.
ALONE_PATIENCE = os.environ.get(
    "CELLBLOCK_TEST_PATIENCE",
    SLOW_PATIENCE if IS_SLOW or is_busy(CORES) else "1")
os.environ.setdefault("CELLBLOCK_TEST_PATIENCE", max(
    ALONE_PATIENCE, LONG_PATIENCE if "--rest" in sys.argv else "1"))
if IS_SLOW:
    CORES = max(CORES // 2, 1)

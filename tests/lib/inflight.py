# SPDX-License-Identifier: MIT
"""Descriptors on their way through sockets, which the kernel counts for each
user."""
import contextlib
import os
import resource
import socket
import subprocess
import sys

import hosttree

FEW = 64
# More than the cells of a person have whose calls do not wait.
CELLS = 1500
SEND = f"""
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, ({FEW}, {FEW}))
ends = socket.socketpair()
socket.send_fds(ends[0], [b'x'], [0])
"""


@contextlib.contextmanager
def held(n=500):
    """Meanwhile this user has about so many."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with a, b, open(os.devnull) as null:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
        try:
            for _ in range(n // 250):
                socket.send_fds(a, [b"x"], [null.fileno()] * 250)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        yield


def wait_landed():
    """Wait until this user has few of them. Those of an earlier test go a while
    after its processes: the kernel collects them when it has time."""
    hosttree.until(lambda: subprocess.run(
        [sys.executable, "-c", SEND], stderr=subprocess.DEVNULL,
        check=False).returncode == 0, "what an earlier test has in flight")

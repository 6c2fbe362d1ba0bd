# SPDX-License-Identifier: MIT
"""The processor time that a request takes, of all processes that work for it:
the server, the maker of jails, wardens, janitors, init and Python, with what the
kernel does in their names. Not in it are the kernel's own workers, which take a
network namespace apart."""
import os
import pathlib
import shutil
import subprocess
import time

from hosttree import stat_of
from served import FORMS
from world import PYTHON

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
STARTS, REQUESTS = 20, 60
IMPORTS = {"code": "import sys; print(1)"}  # which needs what site does

# How others start a program behind walls of this kind.
BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr",
         *(word for name in ("bin", "lib", "lib64")
           for word in ("--symlink", f"usr/{name}", f"/{name}")),
         "--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev",
         "--tmpfs", "/tmp", "--die-with-parent", PYTHON, "-c", "pass"]
NSJAIL = ["nsjail", "-Mo", "-Q", "--chroot", "/", "--", PYTHON, "-c", "pass"]


# Orphans of a program become this process's, which waits for them.
STARTER = """
import ctypes, os, resource, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
for _ in range(int(sys.argv[1])):
    subprocess.run(sys.argv[2:], check=True)
try:
    while True:
        os.wait()
except ChildProcessError:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
print((used.ru_utime + used.ru_stime) * 1000, file=sys.stderr)
"""


def of_starts(argv):
    """Milliseconds a start, with all processes of it."""
    said = subprocess.run([PYTHON, "-c", STARTER, str(STARTS), *argv],
                          check=True, stdin=subprocess.DEVNULL, cwd="/",
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return float(said.stderr.split()[-1]) / STARTS


def of_server(server):
    """Of the server, of its child that makes jails, and of all whose end that
    child has seen. A moment later the last jail is gone, and all spares are
    made."""
    time.sleep(1)
    front = server.process.pid
    pids = [front, *pathlib.Path(
        f"/proc/{front}/task/{front}/children").read_text().split()]
    return TICK_MS * sum(int(t) for pid in pids for t in stat_of(pid)[11:15])


def of_requests(server, path, body):
    before = of_server(server)
    server.ask(path, REQUESTS, body=body)
    return (of_server(server) - before) / REQUESTS


def turns(server, n):
    """{what: [milliseconds, in turns]}, Python alone first."""
    rows = {"python3 -c pass": lambda: of_starts([PYTHON, "-c", "pass"])}
    for argv in BWRAP, NSJAIL:
        if shutil.which(argv[0]):
            rows[f"{argv[0]} python3 -c pass"] = \
                lambda argv=argv: of_starts(argv)
    for path, body in (*FORMS.items(), ("/v1/execute", IMPORTS)):
        rows[f"{path}, {next(iter(body.values()))!r}"] = \
            lambda path=path, body=body: of_requests(server, path, body)
    found = {what: [] for what in rows}
    for _ in range(n):
        for what, measure in rows.items():
            found[what].append(measure())
    return found

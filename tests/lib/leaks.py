# SPDX-License-Identifier: MIT
"""Checks that a run leaves nothing behind.

The runner adopts orphans (PR_SET_CHILD_SUBREAPER). So every process that a
suite has started stays a descendant of the runner and can be found, however
the process was detached.
"""
import ctypes
import os
import shutil
import signal
import time

import hosttree

PR_SET_CHILD_SUBREAPER = 36
PLACES = ("/tmp", "/dev/shm", "/run", "/var/tmp", "/run/lock")
# The host ids of jails that root starts (jail.uids).
JAIL_UIDS = range(2130706432, 2130771968)


def adopt_orphans():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def reap_orphans(but):
    """Reap adopted processes that have ended. Processes in `but` are left to
    the threads that wait for them."""
    me = os.getpid()
    for pid in hosttree.all_pids():
        s = hosttree.stat_of(pid)
        if s and s[0] == b"Z" and int(s[1]) == me and pid not in but:
            os.waitpid(pid, os.WNOHANG)


def _files():
    found = {}
    for place in PLACES:
        try:
            for entry in os.scandir(place):
                found[entry.path] = entry.stat(follow_symlinks=False).st_uid
        except OSError:
            pass
    return found


class Snapshot:
    def __init__(self):
        self.cgroups = hosttree.cgroups()
        self.mounts = hosttree.mounts()
        self.files = _files()


def _new_files(before, people):
    """New files of the product, recognised by name or by owner."""
    made = {p.entry.pw_uid for p in people if p.made}
    return sorted(
        path for path, uid in _files().items()
        if path not in before.files and "cbtest-" not in path
        and not _is_lock_directory(path)
        and ("cellblock" in path or uid in made or uid in JAIL_UIDS))


def _is_lock_directory(path):
    """Whether `path` is the directory of the id locks. Its empty lock file
    stays, because all sessions must lock the same file."""
    if path != "/run/cellblock":
        return False
    try:
        return all(e.name == "uids" and e.stat().st_size == 0
                   for e in os.scandir(path))
    except PermissionError:
        return True


def _left(before, people):
    _reap()
    me = hosttree.descendants(os.getpid())
    processes = [p for p, t in me.items() if hosttree.is_alive(p, t)]
    return {
        "process": hosttree.describe(processes) if processes else "",
        "cgroup": " ".join(sorted(hosttree.new_cgroups(before.cgroups))),
        "mount": " ".join(sorted(hosttree.mounts() - before.mounts)),
        "file": " ".join(_new_files(before, people)),
    }


def check(before, people, tally):
    """Four tests: no process, cgroup, mount or file is left behind."""
    end = time.monotonic() + 10 * hosttree.PATIENCE
    left = _left(before, people)
    while any(left.values()) and time.monotonic() < end:
        time.sleep(0.02)
        left = _left(before, people)
    for kind, what in left.items():
        if what:
            tally.fail(f"no {kind} is left behind", what, "tests/run")
            print(f"left behind: {kind}: {what}")
        else:
            tally.add(1)
    print("nothing" if not any(left.values()) else "")


def end_descendants():
    """Kill all descendants, until none is left."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        _reap()
        left = hosttree.descendants(os.getpid())
        if not left:
            return
        for pid, start in left.items():
            if hosttree.is_alive(pid, start):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        time.sleep(0.01)


def remove_tree(path):
    shutil.rmtree(path, ignore_errors=True)

# SPDX-License-Identifier: MIT
"""Checks that a run leaves nothing behind.

Orphans stay below their worker, and those of a worker below the runner
(ownhost.py). So every process that a suite has started can be found, however
the process was detached.
"""
import contextlib
import os
import shutil
import signal
import time

import hosttree

PLACES = ("/tmp", "/dev/shm", "/run", "/var/tmp", "/run/lock")
# The host ids of jails that root starts (jail.uids).
JAIL_UIDS = range(2130706432, 2130771968)


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
    processes = [p for p, t in hosttree.mine().items()
                 if hosttree.is_alive(p, t)]
    return {
        "process": hosttree.describe(processes) if processes else "",
        "cgroup": " ".join(sorted(hosttree.new_cgroups(before.cgroups))),
        "mount": " ".join(sorted(hosttree.mounts() - before.mounts)),
        "file": " ".join(_new_files(before, people)),
    }


def check(before, people, tally):
    """Four tests: no process, cgroup, mount or file is left behind."""
    tally.expect(4)
    end = time.monotonic() + 10 * hosttree.PATIENCE
    left = _left(before, people)
    while any(left.values()) and time.monotonic() < end:
        time.sleep(0.02)
        left = _left(before, people)
    for kind, what in left.items():
        if what:
            tally.fail(f"no {kind} is left behind", what, "tests/run")
        else:
            tally.add(1)


def ticks():
    """Now, as the start time of a process."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * hosttree.TICK)


def cpu_seconds():
    """The processor time of this worker and of all that has ended below it,
    orphans included."""
    used = sum(os.times()[:4])
    if "CELLBLOCK_TEST_BELOW" in os.environ:
        s = hosttree.stat_of(os.environ["CELLBLOCK_TEST_BELOW"])
        used += (int(s[13]) + int(s[14])) / hosttree.TICK
    return used


def list_processes(since):
    """A line for each process that this one's tests have started since then."""
    lines = []
    for pid, start in sorted(hosttree.mine().items()):
        status = hosttree.status_of(pid)
        if start >= since and status:
            lines.append("  ".join(status.get(key, "?") for key in (
                "NSpid", "PPid", "Name", "State", "Threads")))
    return "\n".join(lines) or "none"


def end_descendants(since=0):
    """Kill all that this process has started since then, until none is left."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if not since:
            _reap()
        left = [pid for pid, start in hosttree.mine().items()
                if start >= since and hosttree.is_alive(pid, start)]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def remove_tree(path):
    shutil.rmtree(path, ignore_errors=True)

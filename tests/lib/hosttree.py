# SPDX-License-Identifier: MIT
"""The processes of a session, seen from the host.

This module reads only files that any user may read: /proc/PID/stat and status.
A process is identified by its pid and start time, because a pid can be reused.
"""
import contextlib
import os
import pathlib
import re
import signal
import time

PATIENCE = float(os.environ.get("CELLBLOCK_TEST_PATIENCE", "1"))
TICK = os.sysconf("SC_CLK_TCK")


def stat_of(pid):
    """The fields of /proc/PID/stat after the name, or None: [0] is the state,
    [1] the parent."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:                        # a file object takes longer than the reading
        return os.read(fd, 4096).rpartition(b")")[2].split()
    except OSError:
        return None
    finally:
        os.close(fd)


def status_of(pid):
    """/proc/PID/status as a dict, {} when the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return dict(line.rstrip("\n").split(":\t", 1)
                        for line in f if ":\t" in line)
    except OSError:
        return {}


def memory_of(pid, what="VmRSS"):
    """The bytes of a process that are in memory; with VmHWM, the most so far."""
    return int(status_of(pid)[what].split()[0]) << 10


def ticks_of(pid):
    """The CPU ticks of a process, 0 when it is gone."""
    s = stat_of(pid)
    return int(s[11]) + int(s[12]) if s else 0


def assert_powerless(pid):
    """A process without a capability, whose system calls are filtered."""
    status = status_of(pid)
    assert int(status["CapEff"], 16) == 0, status
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status


def all_pids():
    return [int(n) for n in os.listdir("/proc") if n.isdigit()]


def descendants(root):
    """Every process below `root`, without `root` itself: {pid: start time}."""
    parents = {}
    for pid in all_pids():
        s = stat_of(pid)
        if s:
            parents[pid] = (int(s[1]), int(s[19]))
    found, new = {}, {root}
    while new:
        new = {p for p, (up, _) in parents.items()
               if up in new and p not in found}
        found.update((p, parents[p][1]) for p in new)
    return found


def mine():
    """Every process that this one's tests have started, orphans included:
    {pid: start time}. A worker's orphans lie beside it (ownhost.py)."""
    top = int(os.environ.get("CELLBLOCK_TEST_BELOW", os.getpid()))
    found = descendants(top)
    found.pop(os.getpid(), None)
    return found


def send(pids, number=signal.SIGKILL):
    """Send a signal to each of these processes. One may have ended meanwhile,
    as by the end of another of them."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


# In a session's cgroup (jail/walls/cgroup/impl.h).
LEAVES = "jail", "guests", "warden"


def cgroups():
    """The directories that cellblock has made below /sys/fs/cgroup for this
    user. Tests of another user run at the same time."""
    found = set()
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        found.update(path for path in (os.path.join(top, d) for d in dirs)
                     if "cellblock" in path and _is_mine(path))
    return found


def _is_mine(path):
    try:
        return os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False


def cgroups_of(pid):
    """The cgroups of cellblock that a process is in."""
    try:
        with open(f"/proc/{pid}/cgroup") as f:
            names = tuple(re.findall(r"/cellblock.*$", f.read(), re.M))
    except OSError:
        return set()
    return {c for c in cgroups() if c.endswith(names)} if names else set()


def new_cgroups(before):
    """The cgroups made since `before`, without those of other people's
    sessions. A session is another's if a cgroup of it holds a process that does
    not descend from this one. Its cgroups in other hierarchies and their parents
    are, too."""
    new = cgroups() - before
    ours = {*mine(), os.getpid()}
    theirs = {session_of(path) for path in new if _members(path) - ours}
    used = {path for path in new if session_of(path) in theirs}
    return {path for path in new - used
            if not any(u.startswith(path + "/") for u in used)}


def session_of(cgroup):
    """The name of the session that a cgroup is of."""
    while os.path.basename(cgroup) in LEAVES:
        cgroup = os.path.dirname(cgroup)
    return os.path.basename(cgroup)


def wait_removed(look, seconds=10):
    """Wait until look() finds nothing any more."""
    until(lambda: not look(),
          lambda: f"the removal of {' '.join(sorted(look()))}", seconds)


def _members(cgroup):
    try:
        with open(os.path.join(cgroup, "cgroup.procs")) as f:
            return {int(pid) for pid in f}
    except OSError:
        return set()


def open_in(pid):
    """What a process has open, without what is closed meanwhile."""
    found = []
    with contextlib.suppress(OSError):
        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(os.readlink(fd))
    return found


def thread_states(pid):
    """The state letters of all threads, in one string. A process whose first
    thread has ended lives on in the others."""
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return ""
    states = (stat_of(f"{pid}/task/{tid}") for tid in tids)
    return "".join(s[0].decode() for s in states if s)


def is_alive(pid, start):
    s = stat_of(pid)
    return bool(s) and int(s[19]) == start \
        and bool(thread_states(pid).strip("ZX"))


def cgroup_v2_of(pid):
    """The directory of the process's cgroup below the v2 mount, or None."""
    try:
        with open(f"/proc/{pid}/cgroup") as f:
            own = [line.rstrip("\n")[4:] for line in f
                   if line.startswith("0::/")]
    except OSError:
        return None
    return "/sys/fs/cgroup/" + own[0] if own else None


def is_stopped(pid):
    """Whether every thread is stopped, frozen or dead. Threads frozen by
    cgroup v2 look asleep, so cgroup.events is read for them."""
    if not thread_states(pid).strip("TtDZX"):
        return True
    try:
        with open(f"{cgroup_v2_of(pid)}/cgroup.events") as f:
            return "frozen 1\n" in f.read()
    except OSError:
        return False


def until(condition, what, seconds=10):
    """Wait for a condition on the host, which is checked every few ms, or less
    often where that takes long: some conditions look through all of /proc, or
    start a program. `what` names the condition; it may be a function that is
    called on failure."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        assert now < end, f"waited for {what() if callable(what) else what}"
        time.sleep(min(max(0.005, 15 * (now - began)), 0.2))


def check_each(pids, check):
    """Call check(pid) for each process. Beside a cell some live only while a
    checkpoint is made: what is wrong with one that ends at once is forgiven."""
    for pid in pids:
        try:
            check(pid)
        except (AssertionError, KeyError, OSError):
            with contextlib.suppress(AssertionError):
                until(lambda p=pid: (stat_of(p) or [b"X"])[0] in b"XZ",
                      "its end", 1)
                continue
            raise


class Tree:
    """The processes of a session, found from the pid of its front end."""

    def __init__(self, front):
        self.front = front
        self.seen = {}
        self.cgroups = set()
        self.look()

    def look(self):
        now = descendants(self.front)
        s = stat_of(self.front)
        if s:
            now[self.front] = int(s[19])
        for pid in now.keys() - self.seen.keys():
            self.cgroups |= cgroups_of(pid)
        self.seen.update(now)
        return now

    def inside(self):
        """The processes of the jail: [(pid in the jail, pid on the host)]."""
        depth = len(status_of(os.getpid())["NSpid"].split())
        found = []
        for pid in self.look():
            numbers = status_of(pid).get("NSpid", "").split()
            if len(numbers) > depth:
                found.append((int(numbers[-1]), pid))
        return sorted(found)

    @property
    def init(self):
        return until(lambda: next(
            (pid for number, pid in self.inside() if number == 1), None),
            "init")

    @property
    def warden(self):
        return int(stat_of(self.init)[1])

    def guests(self):
        return [pid for number, pid in self.inside() if number != 1]

    def cpu_ticks(self):
        """The CPU ticks that all processes of the jail have used."""
        return sum(ticks_of(pid) for _, pid in self.inside())

    def guests_ran(self):
        """How long each thread of the guests has run, in ns; to the tick where
        the kernel does not say it better."""
        ran = {}
        for pid in self.guests():
            with contextlib.suppress(FileNotFoundError):    # it has ended
                for path in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    try:
                        ran[path] = int(
                            (path / "schedstat").read_text().split()[0])
                    except OSError:
                        ran[path] = ticks_of(pid)
        return ran

    def wait_at_rest(self):
        """Wait until no guest runs for a moment, or waits for a processor. Returns
        guests_ran()."""
        last = [None]

        def rests():
            before, last[0] = last[0], self.guests_ran()
            return last[0] and last[0] == before and self.nothing_runs()
        until(rests, "the guests to rest")
        return last[0]

    def nothing_runs(self):
        """Whether no process of the jail is running."""
        return all("R" not in thread_states(p) for p in self.guests())

    def alive(self):
        return sorted(p for p, t in self.seen.items() if is_alive(p, t))

    def wait_gone(self, seconds=10):
        """Wait until every process and cgroup of the session is gone."""
        until(lambda: not self.alive(),
              lambda: f"the end of {describe(self.alive())}", seconds)
        wait_removed(lambda: {c for c in self.cgroups if os.path.exists(c)},
                     seconds)

    def kill(self, pid):
        self.look()
        os.kill(pid, signal.SIGKILL)


def describe(pids):
    names = []
    for pid in pids:
        status = status_of(pid)
        names.append(f"{pid} ({status.get('Name', '?')}, "
                     f"{status.get('State', '?')})")
    return ", ".join(names) or "nothing"


def mounts():
    with open("/proc/self/mountinfo") as f:
        return {line.split()[4] for line in f}

# SPDX-License-Identifier: MIT
"""Each system call of the set-up is made to fail once, and each process is
killed before each of its calls.

tracer.c lists the calls that each process makes from the fork of the warden
until Python starts. Then each call fails with EPERM in a run of its own. In
each run:

  - either the call may fail, and the program runs in a whole jail (INSIDE
    below finds every wall up); or the exit status is 125, with a message;
  - nothing is left: no process, no mount, no cgroup;
  - the run ends.

Then the process is killed before each of these calls, in a run of its own.
Again nothing is left.
"""
import collections
import concurrent.futures
import errno
import os
import re
import subprocess

import pytest

import hosttree
from world import ASAN, CELLBLOCK, PATIENCE, PYTHON, TESTS, WHOLE, compiled

# Root's jails are built with root's means, a person's in a user namespace.
pytestmark = pytest.mark.both

TRACER = TESTS / "inject" / "tracer.c"
ROLES = ("front", "warden", "janitor", "init", "guest")
# Calls in a loop over signals, capabilities or paths all fail in the same way.
# So only this many of them are tried, the first and the last among them.
SAMPLE = 8
SECONDS = 30 * PATIENCE
SURVEYS = 3
# Of the calls, where not all of them are tried.
ONE_IN = 16
# The C library aborts when its futex call fails, which setlocale() makes even
# without other threads. AddressSanitizer's allocator aborts when it gets no
# memory.
FATAL = {"futex"}
if ASAN:
    FATAL.add("mmap")
MESSAGE = re.compile(r"(?m)^cellblock: \S.{10,}$")

# With a /run of its own, the session has its own id locks. So no other session
# of root cleans up what this one leaves.
OWN_RUN = ("unshare", "--mount", "sh", "-c",
           'mount -t tmpfs t /run && exec "$@"', "sh")

# Runs in the jail, and prints WHOLE only if every wall is up.
INSIDE = r"""
import os, resource, socket
bad = []
try:
    status = dict(l.split(':\t', 1) for l in open('/proc/self/status')
                  if ':\t' in l)
except OSError:
    status = {}
    if os.path.exists('/proc') and os.listdir('/proc'):
        bad.append('half of a /proc')
def is_(key, value):
    if status and status[key].split()[0] != value:
        bad.append(key + ' ' + status[key].strip())
for caps in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
    is_(caps, '0' * 16)
is_('NoNewPrivs', '1')
is_('Seccomp', '2')
is_('Uid', '1000')
is_('Gid', '1000')
if os.getresuid() != (1000,) * 3 or os.getresgid() != (1000,) * 3:
    bad.append('ids')
for path in (@WITNESS@, '/root', '/var', '/boot', '/sys/kernel', '/etc/shadow',
             '/mnt'):
    if os.path.lexists(path): bad.append('host file ' + path)
for path in ('/x', '/usr/x', '/etc/x', '/dev/x'):
    try:
        open(path, 'w').close(); bad.append('writable ' + path)
    except OSError: pass
for path in ('/home/x', '/tmp/x', '/dev/shm/x'):
    open(path, 'w').close()
for call in (lambda: os.chroot('/usr'), lambda: os.setuid(0),
             lambda: os.mkfifo('/usr/x'), lambda: os.kill(-1, 0),
             lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)):
    try:
        call(); bad.append('a call that is refused')
    except OSError: pass
if status and len([d for d in os.listdir('/proc') if d.isdigit()]) > 2:
    bad.append('host processes')
if socket.gethostname() != 'cellblock': bad.append('host name')
for n in range(1, 1000):
    try:
        if socket.if_indextoname(n) != 'lo': bad.append('network')
    except OSError: pass
def limit(which, most):
    if not 0 <= resource.getrlimit(which)[1] <= most:
        bad.append('rlimit %d' % which)
limit(resource.RLIMIT_CORE, 1)
limit(resource.RLIMIT_NOFILE, 1024)
limit(resource.RLIMIT_NPROC, 10000)
limit(resource.RLIMIT_STACK, 8 << 20)
if not hasattr(os, 'getpgrp') or os.getpid() == 1: bad.append('pid')
for fd in range(3, 1024):
    try: os.fstat(fd)
    except OSError: continue
    bad.append('descriptor %d' % fd)
print('BROKEN ' + ', '.join(bad) if bad else 'WHOLE')
"""


class Injector:
    """Runs cellblock under the tracer."""

    def __init__(self, directory):
        self.directory = directory
        self.tracer = compiled(directory / "tracer", TRACER, "-lseccomp")
        self.witness = directory / "witness"
        self.witness.write_text("of the host")
        self.code = INSIDE.replace("@WITNESS@", repr(str(self.witness)))

    def run(self, report, *what, wrapper=()):
        return subprocess.run(
            [*wrapper, self.tracer, report, *what,
             CELLBLOCK, "-t", f"{SECONDS / 2:.0f}s", "-c", self.code],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=SECONDS, cwd=self.directory,
            env={"PATH": os.environ["PATH"], "HOME": str(self.directory),
                 "LANG": "C.UTF-8"})

    def survey(self):
        """The calls of each role in order: {role: [(name, nth)]}. The survey
        ends when Python starts. If the janitor has hardly run by then, the
        survey is repeated. Only calls of all SURVEYS count: on a busy host one
        waits, and so calls, more often."""
        for _ in range(4):
            first, *others = [self.survey_once() for _ in range(SURVEYS)]
            found = {role: [] for role in ROLES}
            for key, nths in first.items():
                found[key[0]] += [(key[1], nth) for nth in sample(
                    [n for n in nths
                     if all(n in again.get(key, []) for again in others)])]
            if len(found["janitor"]) > 10 or os.geteuid() != 0:
                break
        return found

    def survey_once(self):
        """{(role, name, option of prctl): [nth]}"""
        report = self.directory / "survey"
        r = self.run(report, "survey")
        assert (r.returncode, r.stdout) == (0, "WHOLE\n"), r
        groups = collections.OrderedDict()
        for line in report.read_text().splitlines():
            words = line.split()
            if len(words) != 4:
                assert line == "not reached", line
                continue
            role, name, nth, arg0 = words
            if name in FATAL:
                continue
            key = (role, name, arg0 if name == "prctl" else "")
            groups.setdefault(key, []).append(int(nth))
        return groups

    def kill(self, role, name, nth):
        """Kill a process before a call. Returns None if nothing is left, "-"
        if the call was not made, or else a description of what is left."""
        cgroups = hosttree.cgroups()
        report = self.directory / f"killed-{role}-{name}-{nth}"
        alone = os.geteuid() == 0 and role != "janitor"
        try:
            r = self.run(report, role, name, str(nth), "kill",
                         wrapper=OWN_RUN if alone else ())
        except subprocess.TimeoutExpired:
            return "the run hung"
        said = report.read_text()
        report.unlink()
        left = re.findall(r"^left \d+ (.*)$", said, re.M)
        if left:
            return f"left behind: {left}, status {r.returncode}: {r.stderr}"
        if role == "janitor":
            # Without its janitor, only that of another session removes the
            # cgroup.
            next_session(self.directory)
        try:
            hosttree.wait_removed(lambda: hosttree.new_cgroups(cgroups))
        except AssertionError as e:
            return str(e)
        return "-" if "not reached" in said else None

    def attempt(self, role, name, nth):
        """Make a call fail. Returns None if all is well, "-" if the call was
        not made this time, or else a description of what is broken."""
        report = self.directory / f"report-{role}-{name}-{nth}"
        try:
            r = self.run(report, role, name, str(nth), str(errno.EPERM))
        except subprocess.TimeoutExpired:
            return "the run hung"
        said = report.read_text()
        left = re.findall(r"^left \d+ (.*)$", said, re.M)
        report.unlink()
        if left:
            return f"left behind: {left}, status {r.returncode}: {r.stderr}"
        if r.stdout == "WHOLE\n" and r.returncode == 0:
            return None if "not reached" not in said else "-"
        if r.stdout == "" and r.returncode == 125:
            if MESSAGE.search(r.stderr):
                return None
            return f"refused without a message: {r.stderr!r}"
        return (f"status {r.returncode}, stdout {r.stdout[-300:]!r}, "
                f"stderr {r.stderr[-300:]!r}")


def insist(attempt, *call):
    """Try again if the call was not made. Some calls, such as a wait, depend
    on which process was faster."""
    result = "-"
    for _ in range(4):
        if result == "-":
            result = attempt(*call)
    return result


def next_session(directory):
    r = subprocess.run([CELLBLOCK, "-c", "pass"], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=SECONDS,
                       cwd=directory, check=False,
                       env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8",
                            "HOME": str(directory)})
    assert r.returncode == 0, r


def sample(nths):
    if len(nths) <= SAMPLE:
        return nths
    step = (len(nths) - 1) / (SAMPLE - 1)
    return [nths[round(i * step)] for i in range(SAMPLE)]


@pytest.fixture(scope="module")
def injector(tmp_path_factory):
    directory = tmp_path_factory.mktemp("inject")
    for path in (directory, directory.parent):
        path.chmod(0o755)
    return Injector(directory)


@pytest.fixture(scope="module")
def calls(injector):
    return injector.survey()


def calls_of(calls, role):
    todo = calls[role]
    if role == "janitor" and os.geteuid() != 0 and not todo:
        pytest.skip("there is no janitor without a cgroup")
    assert len(todo) > 10, todo
    return todo if WHOLE else todo[::ONE_IN]


@pytest.mark.sampled
@pytest.mark.limit(180)
@pytest.mark.parametrize("role", ROLES)
def test_a_call_that_fails_leaves_a_whole_jail_or_a_refusal(
        injector, calls, role):
    todo = calls_of(calls, role)
    cgroups, mounts = hosttree.cgroups(), hosttree.mounts()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(
            lambda call: insist(injector.attempt, role, *call), todo))
    bad = [f"{name} #{nth}: {why}"
           for (name, nth), why in zip(todo, results) if why not in (None, "-")]
    missed = results.count("-")
    assert not bad, "\n".join([f"{len(bad)} of {len(todo)}:", *bad])
    if role == "janitor":
        # Of what a janitor could not remove, the next session's takes care.
        next_session(injector.directory)
    hosttree.wait_removed(lambda: hosttree.new_cgroups(cgroups))
    hosttree.wait_removed(lambda: hosttree.mounts() - mounts)
    assert missed <= len(todo) / 10 + 1, \
        f"{missed} of {len(todo)} calls were never made: " + " ".join(
            f"{name}#{nth}" for (name, nth), why in zip(todo, results)
            if why == "-")
    print(f"{role}: {len(todo) - missed} calls were made to fail")


@pytest.mark.sampled
@pytest.mark.limit(180)
@pytest.mark.parametrize("role", ROLES)
def test_a_kill_before_any_call_leaves_nothing(injector, calls, role):
    """One run at a time: a session beside it would remove what this one
    leaves."""
    todo = calls_of(calls, role)
    mounts, missed = hosttree.mounts(), 0
    for name, nth in todo:
        why = insist(injector.kill, role, name, nth)
        assert why in (None, "-"), f"{name} #{nth}: {why}"
        missed += why == "-"
    hosttree.wait_removed(lambda: hosttree.mounts() - mounts)
    assert missed <= len(todo) / 10 + 1, \
        f"{missed} of {len(todo)} calls were never made"


def test_control_missing_walls_are_found(injector):
    """The same code outside a jail finds every wall missing."""
    r = subprocess.run([PYTHON, "-c", injector.code], capture_output=True,
                       text=True, check=False, cwd=injector.directory)
    assert "WHOLE" not in r.stdout
    assert "BROKEN" in r.stdout or "Error" in r.stderr, r

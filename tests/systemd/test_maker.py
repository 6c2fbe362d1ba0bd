# SPDX-License-Identifier: MIT
"""The maker of sessions as a service, with its units."""
import contextlib
import os
import pathlib
import re
import socket

import pytest

import hosttree
from lab import BINARY, drop_in, rows, run, show

pytestmark = pytest.mark.limit(120)
SESSIONS = pathlib.Path(
    "/sys/fs/cgroup/system.slice/cellblock-sessions.service")


# Jails that are made ahead: one of each kind.
SPARES = 3


def prompt(person, *words, before=()):
    """A session of somebody who logs in."""
    return person.session(*before, str(BINARY), *words).start()


def cgroups():
    """In the directories of persons."""
    return list((SESSIONS / "cellblock").glob("*/[0-9]*"))


def inodes():
    """{cgroup: its number}: one that is made anew has another."""
    found = {}
    for p in cgroups():
        with contextlib.suppress(OSError):  # it is gone meanwhile
            found[p] = p.stat().st_ino
    return found


LIMITS = ("jail/memory.max", "jail/memory.swap.max", "jail/memory.oom.group",
          "jail/pids.max", "cpu.max")


def limits(place):
    """The limits of a session that the kernel keeps."""
    return {name: (place / name).read_text().strip() for name in LIMITS}


def kept(place, name):
    """One of them, or None: not set yet, or its session is over."""
    with contextlib.suppress(OSError, ValueError):
        return int((place / name).read_text())
    return None


@pytest.fixture(name="maker", autouse=True)
def _maker():
    run("systemctl", "start", "cellblock.socket")
    yield
    for unit in ("cellblock.socket", "cellblock-maker.service",
                 "cellblock-sessions.service"):
        run("systemctl", "stop", unit, check=False)
        assert show(unit, "ActiveState") in ("inactive", "failed")


def test_limits_are_the_same_as_in_roots_shell(person):
    theirs = rows(person.here("--check", "--json").stdout)
    assert theirs == rows(run(str(BINARY), "--check", "--json").stdout)
    assert theirs["memory"][:2] == ("cgroup v2", "strong")
    control = rows(person.here("-s", "session.maker=off", "--check",
                               "--json").stdout)
    assert control["memory"][1] == "weak"


def test_sessions_lie_in_a_unit_that_the_maker_is_not_in(person):
    s = prompt(person)
    s.run("x = 41")
    hosttree.until(lambda: len(cgroups()) == 1 + SPARES,
                   "its cgroup, and those of the spares", 30)
    # A session in the making has no limits yet, and no process.
    hosttree.until(lambda: {kept(p, "jail/memory.max") for p in cgroups()}
                   == {512 << 20}, "the limits of all", 30)
    main = int(show("cellblock-maker.service", "MainPID"))
    its = pathlib.Path(hosttree.cgroup_v2_of(main))
    assert its.name == "cellblock-maker.service"
    hosttree.until(lambda: len((its / "cgroup.procs").read_text().split())
                   == 2, "the maker, and its child that waits")
    s.leave()
    hosttree.until(lambda: len(cgroups()) == SPARES,
                   "the end of the cgroup", 30)


def test_a_maker_that_ends_ends_no_session(person):
    s = prompt(person)
    assert s.run("x = 41") == "", s.picture()
    first = show("cellblock-maker.service", "MainPID")
    run("systemctl", "restart", "cellblock-maker.service")
    assert show("cellblock-maker.service", "MainPID") != first
    assert s.run("x + 1").startswith("42"), s.picture()
    run("systemctl", "kill", "-s", "KILL", "--kill-who=main",
        "cellblock-maker.service")
    assert s.run("x + 2").startswith("43")
    # The socket is there all the while, and starts it anew.
    said = rows(person.here("--check", "--json").stdout)
    assert said["memory"][:2] == ("cgroup v2", "strong")
    run("systemctl", "stop", "cellblock-maker.service")
    assert s.run("x + 3").startswith("44")
    s.leave()


def test_the_end_of_the_sessions_unit_is_that_of_all_sessions(person):
    s = prompt(person)
    s.run("x = 41")
    run("systemctl", "stop", "cellblock-sessions.service")
    hosttree.until(lambda: not cgroups(), "the end of the cgroup", 30)
    s.wait_exit()


def test_without_the_sessions_unit_the_maker_makes_none(person):
    """Its jails would lie where the limits of that unit do not hold."""
    assert person.here("-c", "print(1)").stdout == "1\n"
    hosttree.until(lambda: len(cgroups()) == SPARES, "the spares", 60)
    run("systemctl", "stop", "cellblock-sessions.service")
    assert show("cellblock-maker.service", "ActiveState") == "inactive"
    s = prompt(person)
    s.run("x = 41")
    assert show("cellblock-sessions.service", "ActiveState") == "active"
    hosttree.until(lambda: len(cgroups()) == 1 + SPARES, "all of them", 60)
    assert not pathlib.Path("/sys/fs/cgroup/cellblock").exists()
    s.leave()


SOCKET = "/run/cellblock/maker"


def test_a_maker_that_is_stopped_is_not_asked(person):
    run("systemctl", "stop", "cellblock.socket", "cellblock-maker.service")
    r = person.here("-c", "print(1)")
    assert (r.stdout, r.stderr) == ("1\n", "")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(SOCKET)
    os.chmod(SOCKET, 0o666)
    r = person.here("-c", "print(1)")
    control = person.here("--check")
    os.unlink(SOCKET)
    assert (r.stdout, r.stderr) == ("1\n", "")
    assert "ask the maker of sessions" in control.stderr


# ---- jails that are made ahead ----

STRICT = ("-M", "96M", "-s", "session.processes=9", "-s", "session.cpus=0.5")
# Shared memory is no limit of a single process.
TAKES = ("import mmap; m = mmap.mmap(-1, 400 << 20); "
         "[m.__setitem__(i, 1) for i in range(0, len(m), 4096)] and 0")


class Ahead:
    """The cgroups of spares, and what the maker says of them."""

    def __init__(self, log):
        self.log = log
        self.known = {}

    def ready(self):
        """Wait until all are there that come after the last claim."""
        def are_there():
            said = self.log.read_text().rpartition(", made ahead\n")[2]
            return re.findall(r"^spare jails: (\d+)$", said, re.M)[-1:] \
                == [str(SPARES)]
        hosttree.until(are_there, "the spares", 60)
        self.known = inodes()

    def claimed(self, mib):
        """The cgroup of one of them, if it has so much memory by now."""
        found = [p for p in cgroups() if kept(p, "jail/memory.max") == mib << 20]
        assert len(found) == 1
        assert inodes()[found[0]] == self.known.get(found[0])
        return found[0]

    def count(self):
        return self.log.read_text().count(", made ahead\n")


@pytest.fixture
def ahead(maker):
    """A maker that says what it does, and whose spares are there."""
    log = pathlib.Path("/run/maker.log")
    with drop_in("cellblock-maker.service",
                 f"[Service]\nExecStart=\nExecStart={BINARY} -v --maker\n"
                 f"StandardError=truncate:{log}\n"):
        run("systemctl", "start", "cellblock-maker.service")
        a = Ahead(log)
        hosttree.until(log.exists, "its log", 30)
        a.ready()
        yield a
    log.unlink()


def test_a_claim_lowers_what_the_kernel_keeps_of_a_spare(person, ahead):
    before = {p: limits(p) for p in ahead.known}
    assert {b["jail/memory.max"] for b in before.values()} == {str(512 << 20)}
    s = prompt(person, *STRICT)
    assert s.run("x = 41") == "", s.picture()
    hosttree.until(lambda: ahead.count() == 1, "the log")
    mine = ahead.claimed(96)
    assert limits(mine)["cpu.max"] == "50000 100000"
    assert kept(mine, "jail/pids.max") < int(before[mine]["jail/pids.max"])
    # The control: such a session that was not made ahead.
    fresh = prompt(person, *STRICT, before=["NO_COLOR=1"])
    fresh.run("1")
    other, = [p for p in cgroups()
              if p != mine and kept(p, "jail/memory.max") == 96 << 20]
    assert ahead.count() == 1
    assert limits(other) == limits(mine)
    fresh.leave()
    # All of the jail is in it, and what works for it.
    for below in "jail", "jail/guests", "warden":
        assert (mine / below / "cgroup.procs").read_text()
    assert kept(mine, "warden/memory.max") and kept(mine, "warden/pids.max")
    assert re.search(r"memory\s+96 MiB.*cgroup v2", s.run(":limits"))
    s.leave()
    hosttree.until(lambda: not mine.exists(), "the end of its cgroup", 30)


def number(place, file, key):
    return int(dict(line.split() for line in
                    (place / file).read_text().splitlines())[key])


def test_the_kernel_ends_a_cell_over_the_limits_of_a_claim(person, ahead):
    s = prompt(person, *STRICT)
    assert s.run("x = 41") == "", s.picture()
    mine = ahead.claimed(96)
    assert number(mine, "jail/memory.events", "oom_kill") == 0
    s.enter(TAKES)
    s.expect(r"\[memory limit: 96 MiB")
    s.wait_prompt()
    assert number(mine, "jail/memory.events", "oom_kill") > 0
    assert "\n42" in "\n" + s.run("x + 1")
    assert number(mine, "jail/pids.events", "max") == 0
    assert "start new thread" in s.run(
        "import threading; [threading.Thread(target=threading.Event().wait,"
        " daemon=True).start() for _ in range(40)]")
    assert number(mine, "jail/pids.events", "max") > 0
    # A word on checkpoints may come above it.
    assert "\n43" in "\n" + s.run("x + 2")
    s.leave()
    hosttree.until(lambda: not mine.exists(), "the end of its cgroup", 30)


@pytest.mark.parametrize("how", ["-c", "-e"])
def test_the_kernel_ends_a_program_over_the_limits_of_a_claim(
        person, ahead, how):
    r = person.here(*STRICT, how, TAKES, check=False)
    assert r.returncode == 137 and "memory limit: 96 MiB" in r.stderr, r
    hosttree.until(lambda: ahead.count() == 1, "the log")
    ahead.ready()
    r = person.here(*STRICT, how, "print(6 * 7)")
    assert r.stdout == "42\n", r
    hosttree.until(lambda: ahead.count() == 2, "the log")


def test_a_claim_of_the_least_memory_is_kept(person, ahead):
    """Where a spare has more already, the kernel ends it."""
    s = prompt(person, "-M", "16M")
    assert s.run("x = 41") == "", s.picture()
    assert s.run("x + 1").startswith("42")
    assert 16 << 20 in [kept(p, "jail/memory.max") for p in cgroups()]
    s.leave()
    hosttree.until(lambda: len(cgroups()) == SPARES, "its end", 60)


def test_a_maker_that_is_started_anew_has_spares_of_its_own(person, ahead):
    s = prompt(person, "-M", "96M")
    assert s.run("x = 41") == "", s.picture()
    hosttree.until(lambda: ahead.count() == 1, "the log")
    mine = ahead.claimed(96)
    ahead.ready()
    old = ahead.known
    run("systemctl", "restart", "cellblock-maker.service")

    def are_new():
        now = inodes()
        return len(now) == 1 + SPARES and \
            [p for p in now if now[p] == old.get(p)] == [mine]
    hosttree.until(are_new, "others", 60)
    assert s.run("x + 1").startswith("42")
    s.leave()
    hosttree.until(lambda: mine not in inodes(), "the end of the session", 30)

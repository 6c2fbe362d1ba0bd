# SPDX-License-Identifier: MIT
"""Each person has one share of the cores, however many sessions they have: as
the kernel shows it, and as it divides."""
import contextlib
import os
import pathlib
import re
import subprocess
import time

import pytest

import hosttree
import makerhost
from makerhost import ready, start, was_ahead
from world import PATIENCE

LOOP = "while True: pass"


def cpu_cgroup(pid):
    """The cgroup of a process that has its share of the cores."""
    v2 = hosttree.cgroup_v2_of(pid)
    if v2 and "/cellblock" in v2:
        return pathlib.Path(v2)
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if "cpu" in names.split(","):
            return pathlib.Path("/sys/fs/cgroup/cpu" + path)
    raise AssertionError(f"no cpu cgroup of {pid}")


def ids(host):
    """{host id: name of the person} of all sessions of the maker."""
    return {int(i): who for who, i in re.findall(
        r"^(\S+) \(uid \d+\): a session as host id (\d+)", host.said(), re.M)}


def places(host):
    """[(person, their directory)] of the sessions that live, by the log."""
    names, found = ids(host), {}
    for pid in hosttree.mine():
        status = hosttree.status_of(pid)
        uid = int(status.get("Uid", "-1").split()[0])
        if uid in names and status.get("Name") == "cellblock-init":
            with contextlib.suppress(OSError):      # it has just ended
                found[uid] = names[uid], cpu_cgroup(pid).parents[1]
    return sorted(found.values())


def weight(directory):
    for name in "cpu.weight", "cpu.shares":
        if (directory / name).exists():
            return int((directory / name).read_text())
    raise AssertionError(f"no weight in {directory}")


@pytest.fixture(name="shares")
def _shares(host):
    """A host that has them: --check says so."""
    ann, bob = start(host, policy="[session]\nper_user = 6\n"
                     "[cell]\ntimeout = 100s\ncpu = 100s\n")
    if "equal shares" not in ann.run("--check").text:
        pytest.skip("no cgroup shares the cores out here")
    ready(host)
    return host, ann, bob


def in_place(host, n):
    def all_places():
        found = places(host)
        return found if len(found) == n else None
    return hosttree.until(all_places, f"{n} sessions")


def test_all_sessions_of_a_person_have_one_share(shares):
    host, ann, bob = shares
    before = len(makerhost.made(host))
    first = ann.session().start()
    first.run("1")
    assert was_ahead(host, before + 1)
    ready(host)
    second = ann.session("--new").start()
    other = bob.session().start()
    (_, of_ann), (_, of_second), (_, of_bob) = sorted(
        in_place(host, 3), key=lambda p: p[0] != ann.name)
    assert of_ann == of_second != of_bob
    assert weight(of_ann) == weight(of_bob)
    # The first goes, and the directory stays for the second.
    first.leave()
    in_place(host, 2)
    assert of_ann.exists()
    second.leave()
    other.leave()
    hosttree.until(lambda: not of_ann.exists() and not of_bob.exists(),
                   "the end of the directories", 30)


def test_who_has_no_session_has_the_directory_of_a_spare(shares):
    host, ann, bob = shares
    for person in ann, bob, ann:
        ready(host)
        n = len(makerhost.made(host))
        s = person.session().start()
        s.run("1")
        assert was_ahead(host, n + 1)
        [(who, directory)] = in_place(host, 1)
        assert who == person.name
        s.leave()
        hosttree.until(lambda d=directory: not d.exists(), "its end", 30)


def test_programs_beside_a_session_share_with_it(shares):
    host, ann, _ = shares
    s = ann.session().start()
    s.run("1")
    [(_, directory)] = in_place(host, 1)
    running = [ann.popen("-c", "import time; time.sleep(100)")
               for _ in range(3)]
    assert {d for _, d in in_place(host, 4)} == {directory}
    for p in running:
        p.kill()
    in_place(host, 1)
    s.leave()


def test_a_killed_maker_and_its_sessions_leave_no_directory(shares):
    host, ann, bob = shares
    s, t = ann.session().start(), bob.session().start()
    found = [d for _, d in in_place(host, 2)]
    host.kill()
    host.start()
    ready(host)
    assert "42" in s.run("6 * 7")
    u = ann.session("--new").start()
    assert "2" in u.run("1 + 1")
    assert len({d for who, d in in_place(host, 3) if who == ann.name}) == 1
    for one in s, t, u:
        one.leave()
    hosttree.until(lambda: not any(d.exists() for d in found),
                   "the end of the directories", 30)


# ---- after an upgrade ----

def earlier_build(host, uid):
    """A session as builds before persons' directories made it, all of whose own
    processes were killed: flat, with a process, in each hierarchy."""
    locks = os.stat(f"/proc/{host.holder.pid}/root/run/cellblock/uids")
    name = f"{uid}-{locks.st_dev:x}-{locks.st_ino:x}"
    p = subprocess.Popen(["sleep", "infinity"])
    made = []
    for top in pathlib.Path("/sys/fs/cgroup").glob("*/cellblock"):
        (top / name / "jail").mkdir(parents=True)
        (top / name / "jail" / "cgroup.procs").write_text(str(p.pid))
        made.append(top / name)
    return p, made


def test_what_an_earlier_build_left_is_removed(shares):
    host, ann, _ = shares
    s = ann.session().start()
    p, made = earlier_build(host, makerhost.JAIL_UIDS[7])
    if not made:
        p.kill()
        pytest.skip("only with cgroup v1")
    s.leave()
    assert p.wait(timeout=30 * hosttree.PATIENCE) == -9
    hosttree.until(lambda: not any(d.exists() for d in made),
                   "the end of what was left", 30)


# ---- a crowd ----

CROWD = ("import os, time\nif True:\n"
         "  while True:\n"
         "    try:\n"
         "      if not os.fork(): time.sleep({nap}) or os._exit(0)\n"
         "    except OSError: pass\n")


def guests(host, who):
    """The processes of Python in the person's session."""
    names = ids(host)
    for pid in hosttree.mine():
        status = hosttree.status_of(pid)
        if names.get(int(status.get("Uid", "-1").split()[0])) == who.name and \
                status.get("Name") == "python3":
            yield pid


def freezer(host, who):
    """The state of the guests in the freezer of the person's session."""
    for pid in guests(host, who):
        for c in hosttree.cgroups_of(pid):
            for name in "freezer.state", "cgroup.events":
                path = pathlib.Path(c, name)
                if path.parent.name == "guests" and path.exists():
                    return path
    return None


def is_frozen(path):
    text = path.read_text()
    return "frozen 1" in text or text.startswith("FR")


def test_a_crowd_runs_in_turns_and_ends_as_any_cell(shares):
    host, ann, _ = shares
    s = ann.session("-t", "100s").start()
    s.run("x = 41")
    s.enter(CROWD.format(nap=1000) + "\n")
    found = hosttree.until(lambda: freezer(host, ann), "the guests", 30)
    for _ in range(3):
        hosttree.until(lambda: is_frozen(found), "a rest", 30)
        hosttree.until(lambda: not is_frozen(found), "a turn", 30)
    s.type("\x03")
    s.wait_prompt()
    assert "KeyboardInterrupt" in s.all_text()
    # (the children that are left may leave no room for a checkpoint)
    # (and those that had no turn yet say only now that they were interrupted)
    assert "42" in s.run("x + 1").split("\n")
    # At a limit, and killed.
    seconds = int(2 * PATIENCE)
    t = ann.session("--new", "-t", f"{seconds}s").start()
    t.run("x = 41; import signal; signal.signal(2, signal.SIG_IGN);")
    t.enter(CROWD.format(nap=1000) + "\n")
    t.expect(rf"time limit: {seconds} s · killed")
    t.wait_prompt()
    assert t.run("x + 1").split("\n")[-1] == "42"
    # A program.
    p = ann.run("-t", f"{seconds}s", "-c", CROWD.format(nap=1000))
    assert p.code == 137 and b"time limit" in p.err, p


def test_few_processes_never_rest(shares):
    """The control."""
    host, ann, _ = shares
    s = ann.session("-t", "100s").start()
    s.enter("import os, time\nfor i in range(8):\n"
            "  if not os.fork():\n    while True: pass\n\nwhile True: pass\n")
    found = hosttree.until(lambda: freezer(host, ann), "the guests", 30)

    def computing():
        return [t for t in map(hosttree.ticks_of, guests(host, ann)) if t]
    # Until the cell begins they are frozen, as at every prompt.
    hosttree.until(lambda: len(computing()) > 8, "the loops", 30)
    began, used = time.monotonic(), sum(computing())

    def has_gone_on():
        assert not is_frozen(found)
        return time.monotonic() > began + 1 and sum(computing()) > used
    hosttree.until(has_gone_on, "more of the loops", 30)
    s.type("\x03")
    s.wait_prompt()


# ---- the kernel's division ----

@pytest.mark.alone
def test_five_busy_sessions_get_what_one_gets(shares):
    """All on one core, where the kernel's counts say what each has got."""
    host, ann, bob = shares
    people = [bob, *[ann] * 5]
    sessions = [p.session("--new").start() for p in people]
    found = in_place(host, 6)
    of_ann, = {d for who, d in found if who == ann.name}
    of_bob, = {d for who, d in found if who == bob.name}
    for s in sessions:
        s.type(LOOP + "\r")

    names = ids(host)

    def computing():
        """{pid: person} of what has used the CPU for long: the guests."""
        found = {}
        for pid in hosttree.mine():
            uid = int(hosttree.status_of(pid).get("Uid", "-1").split()[0])
            if uid in names and hosttree.ticks_of(pid) > 30:
                found[pid] = names[uid]
        return found
    hosttree.until(lambda: len(computing()) == 6, "six that compute", 60)
    busy = computing()
    for pid in busy:
        os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
    before = {pid: hosttree.ticks_of(pid) for pid in busy}

    def used():
        sums = {ann.name: 0, bob.name: 0}
        for pid, who in busy.items():
            sums[who] += hosttree.ticks_of(pid) - before[pid]
        return sums
    hosttree.until(lambda: sum(used().values()) > 200, "use of the core", 40)
    got = used()
    assert .5 < got[ann.name] / got[bob.name] < 2, (got, of_ann, of_bob)
